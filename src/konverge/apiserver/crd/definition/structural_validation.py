"""Validation that a schema is structural.

A structural schema names every field outside of `allOf`, `anyOf`, `oneOf` and `not`; inside those it may only narrow
values. The errors are sorted, as upstream. Upstream: pkg/apiserver/schema/validation.go and complete.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from konverge.apiserver.crd.schema.structural import Schema, junctors, nested
from konverge.apiserver.field_errors import FieldError, forbidden, invalid, required
from konverge.apiserver.go.regexp import RegexError, compile_pattern

Level = Literal["root", "item", "field"]

_EMPTY_TYPE = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED = {
    "id": "id",
    "$schema": "schema",
    "$ref": "$ref",
    "patternProperties": "patternProperties",
    "dependencies": "dependencies",
    "additionalItems": "additionalItems",
    "definitions": "definitions",
}
"""Keywords in the order in which they are tested, and their names in messages."""
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def unsupported(raw: Schema) -> str:
    """The first keyword in the schema that no structural schema can have, as an error text."""
    if not _UNSUPPORTED.keys().isdisjoint(raw):
        for key, name in _UNSUPPORTED.items():
            if raw.get(key) or (key == "additionalItems" and raw.get(key) is not None):
                return f"OpenAPIV3Schema '{name}' is not supported"
    if isinstance(raw.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    return next((error for sub in nested(raw) if (error := unsupported(sub))), "")


def check(raw: Schema, path: str) -> list[FieldError]:
    errors = [*_invariants(raw, "root", path), *_completeness(raw, raw, path, path)]
    return sorted(errors, key=str)


def _invariants(raw: Schema, level: Level, path: str) -> Iterator[FieldError]:  # upstream: validateStructuralInvariants
    items, additional = raw.get("items"), raw.get("additionalProperties")
    if raw.get("type") == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if isinstance(items, Mapping):
        yield from _invariants(items, "item", f"{path}.items")
    for name, sub in (raw.get("properties") or {}).items():
        yield from _invariants(sub, "field", f"{path}.properties[{name}]")
    if additional is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, Mapping):
        yield from _invariants(additional, "field", f"{path}.additionalProperties")
    yield from _extensions(raw, path)
    yield from _value_validation(
        raw, path, skip_any=raw.get("anyOf") == _INT_OR_STRING, skip_first_all=_is_all_pattern(raw)
    )
    yield from _generic(raw, level, path)
    yield from _metadata(raw, level, path)


def _is_all_pattern(raw: Schema) -> bool:
    return bool(raw.get("allOf")) and raw["allOf"][0].get("anyOf") == _INT_OR_STRING


def _extensions(raw: Schema, path: str) -> Iterator[FieldError]:
    if raw.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if raw.get(name):
                yield invalid(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")


def _generic(raw: Schema, level: Level, path: str) -> Iterator[FieldError]:
    kind = raw.get("type") or ""
    embedded = raw.get("x-kubernetes-embedded-resource")
    free = raw.get("x-kubernetes-int-or-string") or raw.get("x-kubernetes-preserve-unknown-fields")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    elif not kind and not free:
        yield required(f"{path}.type", _EMPTY_TYPE[level])
    if embedded and raw.get("additionalProperties") is not None:
        yield forbidden(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if level == "root" and kind and kind != "object":
        yield invalid(f"{path}.type", kind, "must be object at the root")


def _metadata(raw: Schema, level: Level, path: str) -> Iterator[FieldError]:
    properties = raw.get("properties") or {}
    embedded = bool(raw.get("x-kubernetes-embedded-resource"))
    resource = level == "root" or embedded
    for name in ("kind", "apiVersion"):
        if resource and name in properties and properties[name].get("type") != "string":
            yield invalid(f"{path}.properties[{name}].type", properties[name].get("type") or "", "must be string")
    if "metadata" in properties:
        metadata, place = properties["metadata"], f"{path}.properties[metadata]"
        if resource and metadata.get("type") != "object":
            yield invalid(f"{place}.type", metadata.get("type") or "", "must be object")
        if level == "root" and not _only_names(metadata):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield forbidden(place, detail)
    if embedded and not raw.get("x-kubernetes-preserve-unknown-fields") and not properties:
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", detail)


def _only_names(metadata: Schema) -> bool:
    properties = set(metadata.get("properties") or ())
    others = [name for name, value in metadata.items() if value and name not in ("type", "properties", "default")]
    return properties <= {"name", "generateName"} and not others


def _value_validation(
    raw: Schema, path: str, *, skip_any: bool = False, skip_first_all: bool = False
) -> Iterator[FieldError]:
    for place, sub in junctors(raw):
        if not (skip_any and place.startswith("anyOf")):
            skip_inner = skip_first_all and place == "allOf[0]"
            yield from _nested_value_validation(sub, f"{path}.{place}", skip_any=skip_inner)
    if raw.get("pattern"):
        try:
            compile_pattern(raw["pattern"])
        except RegexError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(f"{path}.pattern", raw["pattern"], detail)


# What must not stand inside a junctor: (keyword, detail).
_FORBIDDEN_INSIDE = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def _nested_value_validation(raw: Schema, path: str, *, skip_any: bool = False) -> Iterator[FieldError]:
    """Upstream: validateNestedValueValidation."""
    yield from _value_validation(raw, path, skip_any=skip_any)
    if isinstance(raw.get("items"), Mapping):
        yield from _nested_value_validation(raw["items"], f"{path}.items")
    for name, sub in (raw.get("properties") or {}).items():
        yield from _nested_value_validation(sub, f"{path}.properties[{name}]")
    for name, detail in _FORBIDDEN_INSIDE:
        value = raw.get(name)
        if value or isinstance(value, Mapping) or (name == "default" and value is not None):
            yield forbidden(f"{path}.{name}", detail)
    if "metadata" in (raw.get("properties") or {}):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(raw: Schema, node: Schema | None, at: str, path: str) -> Iterator[FieldError]:
    """Every field that a junctor names must be declared outside of it. Upstream: validateStructuralCompleteness."""
    for place, sub in junctors(raw):
        yield from _nested_completeness(sub, node, at, f"{path}.{place}")


def _nested_completeness(raw: Schema, node: Schema | None, at: str, path: str) -> Iterator[FieldError]:
    if node is None:
        yield required(at, f"because it is defined in {path}")
        return
    yield from _completeness(raw, node, at, path)
    if isinstance(raw.get("items"), Mapping):
        items = node.get("items")
        yield from _nested_completeness(
            raw["items"], items if isinstance(items, Mapping) else None, f"{at}.items", f"{path}.items"
        )
    declared = node.get("properties") or {}
    for name, sub in (raw.get("properties") or {}).items():
        place = f".properties[{name}]"
        yield from _nested_completeness(sub, declared.get(name), at + place, path + place)
