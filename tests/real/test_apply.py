"""Creates, updates, patches and applies in random order, on the real server and on ours: the same answers.

Compared are code, message and the whole object, with managedFields as sets of paths; names that a server makes up (uid,
resourceVersion, times) are taken out.
"""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.real.sides import NAMESPACE, Side, differences, normal, thorough

Obj = dict[str, Any]
NAMES = count()


def some(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Obj]:
    """An object with any of these members."""
    return st.fixed_dictionaries({}, optional=members)


small = st.sampled_from(["1", "2", "3"])
numbers = st.integers(1, 3)
maps = st.dictionaries(st.sampled_from(["a", "b", "c"]), small, max_size=3)
metadata = some(labels=maps, annotations=maps)


def unique(key: Any, items: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, max_size=3, unique_by=key)


config_maps = some(metadata=metadata, data=maps, immutable=st.just(False))
stacks = some(
    metadata=metadata,
    spec=some(
        ports=unique(
            lambda port: (port["port"], port.get("proto", "TCP")),
            st.fixed_dictionaries(
                {"port": numbers}, optional={"proto": st.sampled_from(["TCP", "UDP"]), "name": small}
            ),
        ),
        tags=unique(lambda tag: tag, small),
        args=st.lists(small, max_size=2),
        env=maps,
        atom=some(a=small, b=small),
        free=st.dictionaries(st.sampled_from(["x", "y"]), st.one_of(small, numbers, maps, st.lists(small)), max_size=2),
        mixed=some(
            x=small, closed=some(a=small, unknown=small), list=st.lists(some(a=small, unknown=small), max_size=1)
        ),
        n=numbers,
    ),
    status=some(phase=small, more=maps),
)
containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["a", "b"]), "image": small},
    optional={
        "args": st.lists(small, max_size=2),
        "env": unique(lambda env: env["name"], st.fixed_dictionaries({"name": small}, optional={"value": small})),
        "ports": unique(
            lambda port: (port["containerPort"], port.get("protocol", "TCP")),
            st.fixed_dictionaries({"containerPort": numbers}, optional={"protocol": st.sampled_from(["TCP", "UDP"])}),
        ),
        "resources": some(limits=st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["1", "2", "1000m"])})),
    },
)
deployments = st.builds(
    lambda meta, replicas, items, grace: {
        "metadata": meta,
        "spec": {
            **({"replicas": replicas} if replicas else {}),
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": items, **({"terminationGracePeriodSeconds": grace} if grace else {})},
            },
        },
    },
    metadata,
    st.one_of(st.none(), numbers),
    st.lists(containers, min_size=1, max_size=2, unique_by=lambda item: item["name"]),
    st.one_of(st.none(), numbers),
)

managers = st.sampled_from(["one", "two", "three"])
JSON, APPLY = "application/json", "application/apply-patch+yaml"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"


def steps(objects: st.SearchStrategy[Obj], patches: list[str]) -> st.SearchStrategy[list[Any]]:
    step = st.tuples(
        st.sampled_from(["POST", "PUT", *patches, APPLY, APPLY, APPLY]), managers, st.booleans(), objects, st.booleans()
    )
    return st.lists(step, min_size=3, max_size=8)


def perform(side: Side, collection: str, kind: Obj, name: str, step: Any) -> Any:
    verb, manager, force, obj, status = step
    where = f"{collection}/{name}" + ("/status" if status and "status" in obj else "")
    meta = {**obj.get("metadata", {}), "name": name}
    body = {**kind, **obj, "metadata": meta}
    if verb == "POST":
        return side.send("POST", collection, body, fieldManager=manager)
    if verb == "PUT":
        code, live = side.send("GET", f"{collection}/{name}")
        version = live["metadata"].get("resourceVersion", "") if code == 200 else ""
        return side.send("PUT", where, {**body, "metadata": {**meta, "resourceVersion": version}}, fieldManager=manager)
    if verb == APPLY:
        forced = {"force": "true"} if force else {}
        return side.send("PATCH", where, body, APPLY, fieldManager=manager, **forced)
    return side.send("PATCH", where, obj, verb, fieldManager=manager)


def compared(sides: tuple[Side, Side], collection: str, kind: Obj, sequence: list[Any]) -> None:
    name = f"o{next(NAMES)}"
    done = []
    for step in sequence:
        real, ours = (perform(side, collection, kind, name, step) for side in sides)
        done.append(step)
        assert differences(normal(ours), normal(real)) == [], f"after {json.dumps(done)}"


@pytest.mark.spec("S-07")
@thorough(60)
@given(sequence=steps(config_maps, [MERGE, STRATEGIC]))
def test_config_maps_are_written_alike(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    compared(sides, f"/api/v1/namespaces/{NAMESPACE}/configmaps", {"apiVersion": "v1", "kind": "ConfigMap"}, sequence)


@pytest.mark.spec("S-07")
@thorough(60)
@given(sequence=steps(stacks, [MERGE]))
def test_custom_resources_are_written_alike(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    kind = {"apiVersion": "differ.example.com/v1", "kind": "Stack"}
    compared(sides, f"/apis/differ.example.com/v1/namespaces/{NAMESPACE}/stacks", kind, sequence)


@pytest.mark.spec("S-07")
@thorough(60)
@given(sequence=steps(deployments, [MERGE, STRATEGIC]))
def test_deployments_are_written_alike(sides: tuple[Side, Side], sequence: list[Any]) -> None:
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    compared(sides, f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments", kind, sequence)
