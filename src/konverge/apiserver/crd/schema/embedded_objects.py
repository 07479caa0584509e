"""Whole objects inside custom resources (`x-kubernetes-embedded-resource`): their kind, version and metadata.

Such an object is coerced and validated like one that stands alone: unknown members of its metadata are removed, their
types must be right, its names and labels valid. Upstream: pkg/apiserver/schema/objectmeta.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.apiserver.crd.schema.structural import Structural
from konverge.apiserver.field_errors import FieldError, invalid, required
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.kinds.rules.names import label_errors
from konverge.apiserver.schema import object_meta
from konverge.apiserver.schema.decode import DecodeError, from_obj
from konverge.objects.names import dns_1035_errors, dns_label_errors, path_segment_errors, qualified_name_errors


def coerce(value: Any, node: Structural | None, path: str, unknown: list[str]) -> FieldError | None:
    """Decode embedded metadata in place; returns the first error, and adds the unknown members to `unknown`."""
    if node is None:
        return None
    if isinstance(value, list):
        errors = (coerce(item, node.items, f"{path}[{i}]", unknown) for i, item in enumerate(value))
        return next((error for error in errors if error is not None), None)
    if not isinstance(value, dict):
        return None
    if node.embedded:
        error = _coerce_resource(value, path, unknown)
        if error is not None:
            return error
    for key, item in value.items():
        prop = node.properties.get(key)
        where = f"{path}.{key}" if path else key
        if prop is None:
            prop, where = node.values, f"{path}[{key}]"
        error = coerce(item, prop, where, unknown)
        if error is not None:
            return error
    return None


def _coerce_resource(obj: dict[str, Any], path: str, unknown: list[str]) -> FieldError | None:
    for name in ("apiVersion", "kind"):
        if name in obj and not isinstance(obj[name], str):
            return invalid(f"{path}.{name}", obj[name], "must be a string")
    metadata = obj.get("metadata")
    if metadata is None:
        return None
    given = dict(sorted(metadata.items())) if isinstance(metadata, dict) else metadata
    try:
        decoded = from_obj(object_meta(), given)
    except DecodeError as error:
        return invalid(f"{path}.metadata", given, str(error))
    unknown += [f"{path}.metadata.{text.removeprefix('unknown field ')[1:-1]}" for text in decoded.strict]
    obj["metadata"] = decoded.obj
    return None


def check(value: Any, node: Structural | None, path: str) -> Iterator[FieldError]:
    """The errors of embedded objects."""
    if node is None:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from check(item, node.items, f"{path}[{index}]")
    elif isinstance(value, dict):
        if node.embedded:
            yield from check_resource(value, path)
        for key, item in sorted(value.items()):
            if key in node.properties:
                yield from check(item, node.properties[key], f"{path}.{key}" if path else key)
            elif node.additional is not None:
                yield from check(item, node.values, f"{path}[{key}]")


def check_resource(obj: dict[str, Any], path: str) -> Iterator[FieldError]:
    at = f"{path}." if path else ""
    for name in ("apiVersion", "kind"):
        if name not in obj:
            yield required(f"{at}{name}")
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if version is not None and not version:
        yield invalid(f"{at}apiVersion", version, "must not be empty")
    elif isinstance(version, str) and version.count("/") > 1:
        yield invalid(f"{at}apiVersion", version, f"unexpected GroupVersion string: {version}")
    if kind is not None and not kind:
        yield invalid(f"{at}kind", kind, "must not be empty")
    elif isinstance(kind, str) and (errors := dns_1035_errors(kind.lower())):
        detail = "may have mixed case, but should otherwise match: " + ",".join(errors)
        yield invalid(f"{at}kind", kind, detail)
    if isinstance(obj.get("metadata"), dict):
        yield from _metadata(obj["metadata"], f"{at}metadata")


def _metadata(metadata: dict[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("generateName", "name"):
        for error in path_segment_errors(metadata.get(name) or ""):
            yield invalid(f"{path}.{name}", metadata[name], error)
    for error in dns_label_errors(metadata["namespace"]) if metadata.get("namespace") else ():
        yield invalid(f"{path}.namespace", metadata["namespace"], error)
    if metadata.get("generation", 0) < 0:
        yield invalid(f"{path}.generation", metadata["generation"], "must be greater than or equal to 0")
    yield from label_errors(metadata.get("labels"), f"{path}.labels")
    for key in sorted(metadata.get("annotations") or {}):
        for error in qualified_name_errors(key.lower()):
            yield invalid(f"{path}.annotations", key, error)


def strict_errors(unknown: list[str]) -> list[str]:
    """The texts of strict decoding for dropped fields."""
    return [f"unknown field {quote(path)}" for path in unknown]
