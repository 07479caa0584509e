"""Structural schemas: an OpenAPI v3 schema of a CustomResourceDefinition as a tree of nodes.

A structural schema says for every field of an object what it is, before it says which values are allowed. The tree
holds the former (types, properties, defaults, list kinds, rules); the latter (limits, patterns, anyOf …) stays in
`raw`, from which `values` compiles its checks. Upstream: pkg/apiserver/schema/structural.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

Schema = Mapping[str, Any]


class Structural(msgspec.Struct, eq=False):
    """One node: what a value at this place is."""

    raw: Schema
    type: str = ""
    nullable: bool = False
    default: Any = None
    """None is "no default": the API treats `default: null` as absent."""
    properties: dict[str, Structural] = msgspec.field(default_factory=dict)
    items: Structural | None = None
    additional: Structural | bool | None = None
    embedded: bool = False
    preserve: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    rules: tuple[Schema, ...] = ()

    @property
    def values(self) -> Structural | None:
        """The schema of a map's values (`additionalProperties: {…}`)."""
        return self.additional if isinstance(self.additional, Structural) else None

    def child(self, key: str) -> Structural | None:
        """The schema of a member, declared or by `additionalProperties`."""
        declared = self.properties.get(key)
        return declared if declared is not None else self.values

    def children(self) -> Iterator[Structural]:
        yield from self.properties.values()
        if self.items is not None:
            yield self.items
        if isinstance(self.additional, Structural):
            yield self.additional


def build(raw: Schema) -> Structural:
    """The tree of a schema that has passed the definition's validation."""
    additional = raw.get("additionalProperties")
    items = raw.get("items")
    return Structural(
        raw=raw,
        type=raw.get("type", ""),
        nullable=bool(raw.get("nullable")),
        default=raw.get("default"),
        properties={name: build(sub) for name, sub in (raw.get("properties") or {}).items()},
        items=build(items) if isinstance(items, Mapping) else None,
        additional=build(additional) if isinstance(additional, Mapping) else additional,
        embedded=bool(raw.get("x-kubernetes-embedded-resource")),
        preserve=bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        int_or_string=bool(raw.get("x-kubernetes-int-or-string")),
        list_type=raw.get("x-kubernetes-list-type") or "",
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        map_type=raw.get("x-kubernetes-map-type") or "",
        rules=tuple(raw.get("x-kubernetes-validations") or ()),
    )


def schema_of(validation: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    schema = (validation or {}).get("openAPIV3Schema")
    return schema if isinstance(schema, Mapping) else None


def types_of(raw: Schema) -> tuple[str, ...]:
    """The types that a value may have; none means any."""
    return ("integer", "string") if raw.get("x-kubernetes-int-or-string") else (raw["type"],) if raw.get("type") else ()


def has(node: Structural, wanted: str) -> bool:
    """True when any node has the attribute set. Walks are skipped for schemas that do not need them."""
    return bool(getattr(node, wanted)) or any(has(child, wanted) for child in node.children())


def mixes(node: Structural) -> bool:
    """Whether something is declared below a place where unknown fields are kept."""
    return (node.preserve and any(True for _ in node.children())) or any(mixes(child) for child in node.children())


# Where a schema may hold other schemas. `items` may also be a list in a definition that is yet to be refused.
_MANY = ("allOf", "anyOf", "oneOf")
_NAMED = ("properties", "patternProperties", "definitions")
_ONE = ("not", "items", "additionalProperties", "additionalItems")


def junctors(raw: Schema) -> Iterator[tuple[str, Schema]]:
    """The schemas of not, allOf, oneOf and anyOf, with their places: `allOf[0]`."""
    if isinstance(raw.get("not"), Mapping):
        yield "not", raw["not"]
    for name in ("allOf", "oneOf", "anyOf"):
        for index, sub in enumerate(raw.get(name) or ()):
            yield f"{name}[{index}]", sub


def nested(raw: Schema) -> Iterator[Schema]:
    """Every schema directly inside a schema, junctors included."""
    for name in _ONE:
        if isinstance(raw.get(name), Mapping):
            yield raw[name]
        elif name == "items" and isinstance(raw.get(name), list):
            yield from raw[name]
    for name in _MANY:
        yield from raw.get(name) or ()
    for name in _NAMED:
        yield from (raw.get(name) or {}).values()
    for dependency in (raw.get("dependencies") or {}).values():
        if isinstance(dependency, Mapping):
            yield dependency


def walk(raw: Schema) -> Iterator[Schema]:
    """The schema and every schema below it."""
    yield raw
    for sub in nested(raw):
        yield from walk(sub)
