from __future__ import annotations

from konverge.apiserver.schema import DEDUCED, UNTYPED, Kind, from_structural, object_meta


def test_without_a_schema_anything_goes() -> None:
    assert from_structural(None) is DEDUCED


def test_every_custom_resource_has_metadata() -> None:
    node = from_structural({"type": "object"})
    assert node.fields["metadata"].node is object_meta()
    assert node.element is DEDUCED


def test_members_have_the_types_of_the_schema() -> None:
    node = from_structural(
        {
            "type": "object",
            "properties": {
                "spec": {
                    "type": "object",
                    "properties": {
                        "ports": {
                            "type": "array",
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["port", "proto"],
                            "items": {
                                "type": "object",
                                "properties": {
                                    "port": {"type": "integer"},
                                    "proto": {"type": "string", "default": "TCP"},
                                },
                            },
                        },
                        "atom": {"type": "object", "x-kubernetes-map-type": "atomic"},
                        "list": {"type": "array"},
                        "either": {"x-kubernetes-int-or-string": True},
                        "when": {"type": "string", "format": "date-time"},
                        "map": {"type": "object", "additionalProperties": {"type": "string"}},
                    },
                }
            },
        }
    )
    spec = node.fields["spec"].node
    assert spec.element is None
    ports = spec.fields["ports"].node
    assert (ports.list_type, ports.map_keys, ports.key_defaults) == ("map", ("port", "proto"), {"proto": "TCP"})
    assert spec.fields["atom"].node.atomic
    assert spec.fields["list"].node.element is UNTYPED
    assert spec.fields["either"].node.kind is Kind.ANY
    assert spec.fields["when"].node.checked_scalar == "untyped"
    inner = spec.fields["map"].node.element
    assert inner is not None
    assert inner.checked_scalar == "string"


def test_preserving_unknown_fields_goes_down() -> None:
    node = from_structural(
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}},
        }
    )
    assert node.element is DEDUCED
    assert node.fields["spec"].node.element is DEDUCED


def test_embedded_resources_have_metadata() -> None:
    node = from_structural(
        {"type": "object", "properties": {"template": {"type": "object", "x-kubernetes-embedded-resource": True}}}
    )
    assert node.fields["template"].node.fields["metadata"].node is object_meta()
