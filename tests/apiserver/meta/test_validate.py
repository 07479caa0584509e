"""Validation of metadata on creation."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.meta import validate


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
