"""The rules of metadata, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.meta import system, validate
from konverge.apiserver.status import ApiError


def errors(metadata: dict[str, Any], **more: Any) -> list[str]:
    rules = {"namespaced": True, "name_check": None, "builtin": True, **more}
    return [str(error) for error in validate.on_create({"namespace": "ns", **metadata}, **rules)]


def test_plain_metadata_is_valid() -> None:
    assert errors({"name": "a", "labels": {"a": "b"}, "finalizers": ["example.com/x"]}) == []


@pytest.mark.parametrize(
    ("metadata", "start"),
    [
        ({}, "metadata.name: Required value: name or generateName is required"),
        ({"name": "Upper"}, 'metadata.name: Invalid value: "Upper": a lowercase RFC 1123 subdomain'),
        ({"name": "a", "labels": {"a b": "c"}}, 'metadata.labels: Invalid value: "a b": name part must consist'),
        ({"name": "a", "annotations": {"x": "y" * 300_000}}, "metadata.annotations: Too long"),
        ({"name": "a", "finalizers": ["plain"]}, 'metadata.finalizers[0]: Invalid value: "plain": name is neither'),
        (
            {"name": "a", "ownerReferences": [{"apiVersion": "v1", "kind": "K", "name": "n"}]},
            "metadata.ownerReferences[0].uid",
        ),
        ({"name": "a", "generation": -1}, "metadata.generation: Invalid value: -1"),
        ({"name": "a", "managedFields": [{"manager": "m"}]}, "metadata.managedFields[0].operation: Required value"),
    ],
)
def test_invalid_metadata_is_refused(metadata: dict[str, Any], start: str) -> None:
    messages = errors(metadata)
    assert messages
    assert messages[0].startswith(start)


def test_custom_resources_may_have_plain_finalizers() -> None:
    assert errors({"name": "a", "finalizers": ["plain"]}, builtin=False) == []


def test_cluster_scoped_objects_have_no_namespace() -> None:
    assert errors({"name": "a"}, namespaced=False) == ["metadata.namespace: Forbidden: not allowed on this type"]


@given(st.text(min_size=0, max_size=100))
def test_generated_names_keep_their_base_and_fit(base: str) -> None:
    name = system.generate_name(base)
    assert name.startswith(base[:58])
    assert len(name) == min(len(base), 58) + 5


def test_an_update_keeps_what_the_server_owns() -> None:
    old = {"uid": "u", "creationTimestamp": "t", "deletionTimestamp": "d", "deletionGracePeriodSeconds": 0}
    metadata: dict[str, Any] = {"creationTimestamp": "other", "deletionTimestamp": "other"}
    system.keep(metadata, old)
    assert metadata == old


def test_the_namespace_of_a_body_must_match_the_path() -> None:
    metadata: dict[str, Any] = {}
    system.match_namespace(metadata, "a")
    assert metadata == {"namespace": "a"}
    system.match_namespace(metadata, "")
    assert metadata == {}
    with pytest.raises(ApiError):
        system.match_namespace({"namespace": "b"}, "a")


@pytest.mark.parametrize(("with_status", "counts"), [(True, False), (False, True)])
def test_generation_counts_the_status_only_without_a_subresource(with_status: bool, counts: bool) -> None:
    old = {"spec": {"a": 1}, "status": {"b": 1}, "metadata": {"x": 1}}
    new = {"spec": {"a": 1}, "status": {"b": 2}, "metadata": {"x": 2}}
    assert system.changed_beyond_metadata(new, old, status_too=not with_status) is counts
