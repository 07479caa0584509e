"""Validation of the keywords of a schema in a definition, beyond its being structural.

Upstream: ValidateCustomResourceDefinitionOpenAPISchema (pkg/apis/apiextensions/validation/validation.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from konverge.apiserver.crd.schema.field_path import FieldPathError, resolve
from konverge.apiserver.crd.schema.structural import Schema, junctors
from konverge.apiserver.field_errors import FieldError, forbidden, invalid, not_supported, required

TYPES = ("array", "boolean", "integer", "number", "object", "string")
_META = ("metadata", "kind", "apiVersion")
# Keywords that are not supported; whether they count when they are empty too.
_UNSUPPORTED = {
    "id": False,
    "additionalItems": True,
    "patternProperties": False,
    "definitions": False,
    "dependencies": True,
    "$ref": True,
}


class Place(msgspec.Struct, frozen=True):
    """What holds for a schema because of where it stands."""

    path: str
    root: bool = False
    no_defaults: str | None = None
    """Why defaults are not allowed here; None where they are."""
    inside_meta: bool = False
    no_old_self: str = ""
    """The outermost part of the schema in which old and new values cannot be matched."""
    in_junctor: bool = False
    """Inside not, allOf …: rules are not validated."""


class Findings(msgspec.Struct):
    """Errors about schemas, and errors about CEL rules: rules are only validated where the schema has no error."""

    schema: list[FieldError]
    rules: list[FieldError]


RuleCheck = Callable[[Schema, Place, Any], list[FieldError]]
"""(schema, place, context of the rules) -> errors of x-kubernetes-validations."""


class Checker(msgspec.Struct, frozen=True):
    """One walk over a schema. An option is False when the stored definition breaks that requirement already."""

    valid_types: bool = True
    atomic_sets: bool = True
    list_keys: bool = True
    check_rules: RuleCheck | None = None

    def check(self, raw: Schema, place: Place, context: Any = None) -> Findings:
        findings = Findings(list(self._keywords(raw, place)), [])
        for sub, where, sub_context in self._below(raw, place, context):
            inner = self.check(sub, where, sub_context)
            findings.schema += inner.schema
            findings.rules += inner.rules
        findings.schema += self._lists_and_maps(raw, place.path)
        if raw.get("x-kubernetes-validations"):
            findings.schema += _rule_texts(raw, place.path)
            if not findings.schema and context is not None and self.check_rules is not None:
                findings.rules += self.check_rules(raw, place, context)
        return findings

    def _keywords(self, raw: Schema, place: Place) -> Iterator[FieldError]:
        path, kind = place.path, raw.get("type") or ""
        if self.valid_types and kind and kind not in TYPES:
            yield not_supported(f"{path}.type", kind, list(TYPES))
        if raw.get("default") is not None and place.no_defaults is not None:
            yield forbidden(f"{path}.default", f"must not be set {place.no_defaults}".strip())
        for name, even_empty in _UNSUPPORTED.items():
            if raw.get(name) or (even_empty and raw.get(name) is not None):
                yield forbidden(f"{path}.{name}", f"{name} is not supported")
        if kind == "null":
            yield forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
        if raw.get("items") and isinstance(raw["items"], list):
            yield forbidden(f"{path}.items", "items must be a schema object and not an array")
        if place.inside_meta and raw.get("x-kubernetes-embedded-resource"):
            yield forbidden(f"{path}.x-kubernetes-embedded-resource", "must not be used inside of resource meta")
        if raw.get("uniqueItems"):
            detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
            yield forbidden(f"{path}.uniqueItems", detail)
        additional = raw.get("additionalProperties")
        if raw.get("properties") and (additional is False or isinstance(additional, Mapping)):
            detail = "additionalProperties and properties are mutual exclusive"
            yield forbidden(f"{path}.additionalProperties", detail)

    def _below(self, raw: Schema, place: Place, context: Any) -> Iterator[tuple[Schema, Place, Any]]:
        path = place.path
        inner = replace(place, root=False)
        if isinstance(raw.get("additionalProperties"), Mapping):
            values = replace(inner, path=f"{path}.additionalProperties")
            if place.inside_meta:
                values = replace(values, no_defaults="inside additionalProperties applying to object metadata")
            sub = raw["additionalProperties"]
            yield sub, values, context and context.below(sub)
        for name, sub in sorted((raw.get("properties") or {}).items()):
            yield sub, self._property(raw, place, name), context and context.below(sub)
        named = ((f"definitions[{name}]", sub) for name, sub in (raw.get("definitions") or {}).items())
        for where, sub in (*junctors(raw), *named):
            yield sub, replace(inner, path=f"{path}.{where}", in_junctor=True), None
        items = raw.get("items")
        below = inner if raw.get("x-kubernetes-list-type") == "map" else _uncorrelated(inner, path)
        if isinstance(items, Mapping):
            yield items, replace(below, path=f"{path}.items"), context and context.below(items)
        for index, sub in enumerate(items if isinstance(items, list) else ()):
            yield sub, replace(below, path=f"{path}.items[{index}]"), context and context.below(sub)
        for name, sub in (raw.get("dependencies") or {}).items():
            if isinstance(sub, Mapping):
                yield sub, replace(inner, path=f"{path}.dependencies[{name}]"), None

    def _property(self, raw: Schema, place: Place, name: str) -> Place:
        below = replace(place, root=False, path=f"{place.path}.properties[{name}]")
        if raw.get("x-kubernetes-map-type") not in (None, "granular", "atomic"):
            below = _uncorrelated(below, place.path)
        if (place.root or raw.get("x-kubernetes-embedded-resource")) and name in _META:
            below = replace(below, inside_meta=True)
            if place.root:
                below = replace(below, no_defaults=f"in top-level {name}")
        return below

    def _lists_and_maps(self, raw: Schema, path: str) -> Iterator[FieldError]:
        if raw.get("x-kubernetes-preserve-unknown-fields") is False:
            yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
        map_type, list_type = raw.get("x-kubernetes-map-type"), raw.get("x-kubernetes-list-type")
        yield from _typed(raw, path, "object", "x-kubernetes-map-type")
        if map_type is not None and map_type not in ("atomic", "granular"):
            yield not_supported(f"{path}.x-kubernetes-map-type", map_type, ["atomic", "granular"])
        if list_type is not None and raw.get("type") != "array":
            yield from _typed(raw, path, "array", "x-kubernetes-list-type")
        elif self.atomic_sets:
            yield from set_items(raw, path)
        if list_type is not None and list_type not in ("atomic", "set", "map"):
            yield not_supported(f"{path}.x-kubernetes-list-type", list_type, ["atomic", "set", "map"])
        keys = raw.get("x-kubernetes-list-map-keys")
        if keys and list_type != "map":
            detail = "must be map if x-kubernetes-list-map-keys is non-empty"
            place = f"{path}.x-kubernetes-list-type"
            yield required(place, detail) if list_type is None else invalid(place, list_type, detail)
        if list_type == "map":
            yield from _map_list(raw, path)
        if self.list_keys:
            yield from map_keys(raw, path)


def _uncorrelated(place: Place, path: str) -> Place:
    return place if place.no_old_self else replace(place, no_old_self=path)


def _typed(raw: Schema, path: str, wanted: str, keyword: str) -> Iterator[FieldError]:
    kind = raw.get("type") or ""
    if raw.get(keyword) is not None and kind != wanted:
        detail = f"must be {wanted} if {keyword} is specified"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)


def set_items(raw: Schema, path: str) -> Iterator[FieldError]:
    """The items of a set are compared as a whole, so they must be atomic."""
    items = raw.get("items")
    if raw.get("x-kubernetes-list-type") != "set" or not isinstance(items, Mapping):
        return
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    list_type = items.get("x-kubernetes-list-type")
    if items.get("type") == "array" and list_type not in (None, "atomic"):
        yield invalid(f"{path}.items.x-kubernetes-list-type", list_type, detail)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield invalid(f"{path}.items.x-kubernetes-map-type", list_type, detail)


def _map_list(raw: Schema, path: str) -> Iterator[FieldError]:
    keys, items = raw.get("x-kubernetes-list-map-keys") or [], raw.get("items")
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    if items is None:
        yield required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")
    if not isinstance(items, Mapping):
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.items.type", items.get("type") or "", detail)
        return
    seen: set[str] = set()
    for key in keys:
        prop = (items.get("properties") or {}).get(key)
        if prop is None:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        elif prop.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.properties[{key}].type", "object", detail)
        if key in seen:
            yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "must not contain duplicate entries")
        seen.add(key)


def map_keys(raw: Schema, path: str) -> Iterator[FieldError]:  # upstream: validateMapListKeysMapSet
    """Keys of map lists must always have a value; items of sets and maps are never null."""
    items, list_type = raw.get("items"), raw.get("x-kubernetes-list-type")
    if not isinstance(items, Mapping) or list_type not in ("set", "map"):
        return
    if items.get("nullable"):
        yield forbidden(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}")
    for key in raw.get("x-kubernetes-list-map-keys") or () if list_type == "map" else ():
        prop = (items.get("properties") or {}).get(key)
        if prop is None:
            continue
        place, reason = f"{path}.items.properties[{key}]", "this property is in x-kubernetes-list-map-keys, so it"
        if key not in (items.get("required") or ()) and prop.get("default") is None:
            yield required(f"{place}.default", f"{reason} must have a default or be a required property")
        if prop.get("nullable"):
            yield forbidden(f"{place}.nullable", f"{reason} cannot be nullable")


_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]


def _rule_texts(raw: Schema, path: str) -> Iterator[FieldError]:
    for index, rule in enumerate(raw["x-kubernetes-validations"]):
        place = f"{path}.x-kubernetes-validations[{index}]"
        text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
        if not text:
            yield required(f"{place}.rule", "rule is not specified")
        elif message and not message.strip():
            yield invalid(f"{place}.message", message, "must be non-empty if specified")
        elif _lines(message.strip()):
            yield invalid(f"{place}.message", message, "must not contain line breaks")
        elif _lines(text) and not message.strip():
            yield required(f"{place}.message", "message must be specified if rule contains line breaks")
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            yield required(f"{place}.messageExpression", "messageExpression must be non-empty if specified")
        if rule.get("reason") is not None and rule["reason"] not in _REASONS:
            yield not_supported(f"{place}.reason", rule["reason"], _REASONS)
        field_path = rule.get("fieldPath") or ""
        if field_path and not field_path.strip():
            yield invalid(f"{place}.fieldPath", field_path, "must be non-empty if specified")
        if _lines(field_path):
            yield invalid(f"{place}.fieldPath", field_path, "must not contain line breaks")
        if field_path:
            try:
                resolve(field_path, raw)
            except FieldPathError:
                yield invalid(f"{place}.fieldPath", field_path, "must be a valid path")


def _lines(text: str) -> bool:
    return "\n" in text or "\r" in text
