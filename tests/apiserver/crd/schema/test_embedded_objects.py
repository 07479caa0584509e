"""Metadata of embedded objects is decoded as that of any object."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.embedded_objects import coerce

NODE = structural.build({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {}})


def test_unknown_and_empty_members_of_metadata_are_removed() -> None:
    obj: dict[str, Any] = {"kind": "K", "metadata": {"name": "n", "labels": {}, "color": "red", "generation": None}}
    unknown: list[str] = []
    assert coerce(obj, NODE, "spec.template", unknown) is None
    assert obj["metadata"] == {"name": "n"}
    assert unknown == ["spec.template.metadata.color"]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("m", "json: cannot unmarshal string into Go value of type v1.ObjectMeta"),
        ({"labels": {"a": 1}}, "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        (
            {"finalizers": "f"},
            "json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string",
        ),
        (
            {"ownerReferences": {}},
            "json: cannot unmarshal object into Go struct field ObjectMeta.ownerReferences of type []v1.OwnerReference",
        ),
    ],
)
def test_metadata_of_a_wrong_type_is_an_error(metadata: Any, message: str) -> None:
    error = coerce({"kind": "K", "metadata": metadata}, NODE, "spec.template", [])
    assert error is not None
    assert (error.path, error.detail) == ("spec.template.metadata", message)
