"""Types of custom resources, from their structural schemas.

Upstream: the schema that kube-openapi's pkg/schemaconv makes of a definition for structured-merge-diff.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.schema.builtin import object_meta
from konverge.apiserver.schema.node import DEDUCED, UNTYPED, Field, Kind, TypeNode

Schema = dict[str, Any]
_SCALARS = {"integer": "integer", "number": "float64", "boolean": "bool"}
_STRING = TypeNode(Kind.SCALAR, scalar="string", go="string")
_ANY_SCALAR = TypeNode(Kind.SCALAR, scalar="untyped")


def from_structural(schema: Schema | None, *, preserve_unknown: bool = False) -> TypeNode:
    """The type of a custom resource; without a schema, whatever it holds."""
    if schema is None:
        return DEDUCED
    node = _type(schema, preserve_unknown)
    if node.kind is not Kind.STRUCT:
        node = TypeNode(Kind.STRUCT, element=node.element, atomic=node.atomic)
    node.fields.update(_object_fields())
    return node


def _object_fields() -> dict[str, Field]:
    """apiVersion, kind and metadata, which a schema need not declare."""
    fields = (Field("apiVersion", _STRING), Field("kind", _STRING), Field("metadata", object_meta()))
    return {field.name: field for field in fields}


def _type(schema: Schema, preserve: bool) -> TypeNode:
    preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
    match schema.get("type"):
        case "object":
            return _object(schema, preserve)
        case "array":
            return _list(schema, preserve)
        case "string":
            # A format makes structured merge accept any scalar, as for the built-in times.
            return _ANY_SCALAR if schema.get("format") not in (None, "", "byte") else _STRING
        case "integer" | "number" | "boolean" as name:
            return TypeNode(Kind.SCALAR, scalar=_SCALARS[name], go=name)
    return _untyped(schema, preserve)


def _untyped(schema: Schema, preserve: bool) -> TypeNode:
    """No type: any scalar, a list as a whole, a map by members."""
    members = _object(schema, preserve)
    return TypeNode(Kind.ANY, fields=members.fields, element=members.element, atomic=members.atomic)


def _object(schema: Schema, preserve: bool) -> TypeNode:
    properties = {name: Field(name, _type(inner, preserve)) for name, inner in (schema.get("properties") or {}).items()}
    if schema.get("x-kubernetes-embedded-resource") is True:
        properties |= _object_fields()
    element = _members(schema, preserve, declared=bool(properties))
    kind = Kind.STRUCT if properties else Kind.MAP
    return TypeNode(kind, fields=properties, element=element, atomic=schema.get("x-kubernetes-map-type") == "atomic")


def _members(schema: Schema, preserve: bool, *, declared: bool) -> TypeNode | None:
    """The type of members without a declaration; None when there must be none."""
    more = schema.get("additionalProperties")
    if more is None:
        return DEDUCED if preserve or not declared else None
    if isinstance(more, dict):
        return _type(more, preserve)
    return DEDUCED if more else None


def _list(schema: Schema, preserve: bool) -> TypeNode:
    items: Schema | None = schema.get("items")
    element = UNTYPED if items is None else _type(items, preserve)
    relation = schema.get("x-kubernetes-list-type", "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ()) if relation == "map" else ()
    declared = (items or {}).get("properties") or {}
    defaults = {key: declared[key]["default"] for key in keys if "default" in declared.get(key, {})}
    return TypeNode(
        Kind.LIST,
        element=element,
        atomic=relation == "atomic",
        list_type=relation,
        map_keys=keys,
        key_defaults=defaults,
    )
