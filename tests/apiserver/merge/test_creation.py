"""The short way to a creation's entry finds what the long way through a comparison finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.merge import Owner, creation, reset_fields
from konverge.apiserver.merge.managed_fields import tracked
from tests.apiserver.merge.kinds import CONFIG_MAP, DEPLOYMENT, STACK, Obj

NAMES = st.sampled_from(["a", "b", "app.kubernetes.io/name"])
TEXTS = st.dictionaries(NAMES, st.sampled_from(["", "x", "y"]), max_size=3)
METADATA = st.fixed_dictionaries(
    {"name": st.just("n")},
    optional={
        "namespace": st.just("ns"),
        "uid": st.just("u"),
        "creationTimestamp": st.sampled_from([None, "2026-01-01T00:00:00Z"]),
        "resourceVersion": st.just("7"),
        "labels": TEXTS,
        "annotations": TEXTS,
        "finalizers": st.lists(NAMES, unique=True, max_size=2),
    },
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES}, optional={"image": st.just("i"), "resources": st.just({}), "args": st.lists(NAMES, max_size=2)}
    ),
    max_size=3,
    unique_by=lambda container: container["name"],
)
TEMPLATE = st.fixed_dictionaries(
    {"metadata": st.fixed_dictionaries({}, optional={"labels": TEXTS})},
    optional={"spec": st.fixed_dictionaries({"containers": CONTAINERS}, optional={"nodeSelector": TEXTS})},
)
SPEC = st.fixed_dictionaries(
    {"template": TEMPLATE, "strategy": st.sampled_from([{}, {"type": "Recreate"}]), "selector": st.none()},
    optional={"replicas": st.integers(0, 2)},
)
PORTS = st.lists(
    st.fixed_dictionaries({"port": st.integers(1, 3)}, optional={"name": NAMES}),
    max_size=2,
    unique_by=lambda port: port["port"],
)
FREE = st.recursive(
    st.one_of(st.none(), st.integers(0, 1), TEXTS), lambda inner: st.dictionaries(NAMES, inner, max_size=2)
)
STACK_SPEC = st.fixed_dictionaries(
    {},
    optional={
        "ports": PORTS,
        "tags": st.lists(NAMES, unique=True, max_size=2),
        "args": st.lists(NAMES, max_size=2),
        "env": TEXTS,
        "atom": st.just({"a": "1"}),
        "free": FREE,
        "n": st.integers(0, 1),
    },
)


def both_ways(obj: Obj, owner: Owner) -> tuple[Any, Any]:
    entries = list(tracked({}, None, obj, owner).values())
    return creation.owned(obj, owner), entries[0].fields if entries else {}


def owner(node: Any, api_version: str, kind: str, plural: str) -> Owner:
    own = reset_fields.may_own(api_version.rpartition("/")[0], plural, has_status=plural != "configmaps")
    return Owner(node=node, manager="m", api_version=api_version, kind=kind, now="", may_own=own)


@pytest.mark.spec("S-07")
@given(metadata=METADATA, data=st.fixed_dictionaries({}, optional={"data": TEXTS, "immutable": st.booleans()}))
def test_a_creation_of_a_plain_kind_owns_what_a_comparison_finds(metadata: Obj, data: Obj) -> None:
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **data}
    short, long = both_ways(obj, owner(CONFIG_MAP, "v1", "ConfigMap", "configmaps"))
    assert short == long


@given(metadata=METADATA, spec=SPEC, status=st.sampled_from([{}, {"replicas": 1}]))
def test_a_creation_of_a_kind_with_structs_owns_what_a_comparison_finds(metadata: Obj, spec: Obj, status: Obj) -> None:
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec, "status": status}
    short, long = both_ways(obj, owner(DEPLOYMENT, "apps/v1", "Deployment", "deployments"))
    assert short == long


@given(metadata=METADATA, rest=st.fixed_dictionaries({}, optional={"spec": STACK_SPEC, "status": FREE, "other": FREE}))
def test_a_creation_of_a_custom_kind_owns_what_a_comparison_finds(metadata: Obj, rest: Obj) -> None:
    obj = {"apiVersion": "x.io/v1", "kind": "Stack", "metadata": metadata, **rest}
    short, long = both_ways(obj, owner(STACK, "x.io/v1", "Stack", "stacks"))
    assert short == long
