"""The documents of custom kinds: their schemas as published, their paths by template.

A published schema is the definition's own, with the fields that every object has (kind, apiVersion, metadata). OpenAPI
v2 knows less than v3, so its form of a schema leaves out what its clients would refuse.

Upstream: apiextensions-apiserver/pkg/controller/openapi/builder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

from konverge.apiserver.openapi import builtin
from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.strategy import Obj

_INFO = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_SCALE = "io.k8s.api.autoscaling."
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_COMBINATORS = ("allOf", "anyOf", "oneOf", "not")


def served_in(registry: Registry, group: str, version: str) -> list[Served]:
    """The custom kinds of a group-version."""
    return [served for served in registry.versions(group).get(version, {}).values() if served.custom]


def group_versions(registry: Registry) -> Iterator[tuple[str, str]]:
    """The group-versions that have custom kinds."""
    for group in registry.groups():
        for version in registry.versions(group):
            if served_in(registry, group, version):
                yield group, version


def document(kinds: list[Served]) -> bytes:
    """The v3 document of a group-version with these custom kinds."""
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for served in kinds:
        paths |= operations(served, "v3")
        schemas |= models(served, v2=False)
    common = builtin.schemas(name for name in builtin.index().custom if _needed(name, kinds))
    elsewhere = builtin.index().elsewhere
    common = builtin.restricted(common, lambda listed: listed not in elsewhere)
    schemas |= {name: msgspec.Raw(schema) for name, schema in common.items()}
    ordered = {name: schemas[name] for name in sorted(schemas)}
    document = {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": ordered},
    }
    return msgspec.json.encode(document)


def _needed(name: str, kinds: list[Served]) -> bool:
    return not name.startswith(_SCALE) or any("scale" in served.subresources for served in kinds)


# --- paths


@cache
def _template(scope: str, generation: str) -> str:
    return builtin.member(f"custom/{scope}.{generation}").decode()


def operations(served: Served, generation: str) -> dict[str, Any]:
    """The paths of a kind."""
    resource = served.resource
    values = {
        "GROUP": resource.group,
        "MODEL": _reversed(resource.group),
        "TAG": f"{_identifier(_short(resource.group))}_{resource.version}",
        "OPERATION": _identifier(_short(resource.group), capital=True) + _identifier(resource.version, capital=True),
        "VERSION": resource.version,
        "PLURAL": resource.plural,
        "LISTKIND": served.list_kind,
        "KIND": resource.kind,
    }
    template = _template("namespaced" if resource.namespaced else "cluster", generation)
    text = re.sub("%([A-Z]+)%", lambda match: values[match[1]], template)
    paths: dict[str, Any] = msgspec.json.decode(text)
    missing = {"status", "scale"} - served.subresources.keys()
    return {path: item for path, item in paths.items() if path.rpartition("/")[2] not in missing}


def _short(group: str) -> str:
    return group.removesuffix(".k8s.io")


def _identifier(text: str, *, capital: bool = False) -> str:
    """A name as one camel-case word."""
    words = [word for word in re.split("[^A-Za-z0-9_]+", text) if word]
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    return joined if capital else joined[:1].lower() + joined[1:]


def _reversed(group: str) -> str:
    return ".".join(reversed(group.split(".")))


# --- schemas


def models(served: Served, *, v2: bool) -> dict[str, Any]:
    """The schemas of a kind and of its list."""
    resource, definition = served.resource, served.definition
    assert definition is not None
    version = next(v for v in definition["spec"]["versions"] if v["name"] == resource.version)
    prefix = f"{_reversed(resource.group)}.{resource.version}."
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
    published = _published(schema, v2, bool(definition["spec"].get("preserveUnknownFields")))
    listed = _list_model(served, f"{prefix}{resource.kind}", v2)
    for kind, model in ((resource.kind, published), (served.list_kind, listed)):
        model["x-kubernetes-group-version-kind"] = [
            {"group": resource.group, "kind": kind, "version": resource.version}
        ]
        fields = version.get("selectableFields")
        if fields:
            selectable = [{"fieldPath": field["jsonPath"].removeprefix(".")} for field in fields]
            model["x-kubernetes-selectable-fields"] = selectable
    return {f"{prefix}{resource.kind}": published, f"{prefix}{served.list_kind}": listed}


def _published(schema: Obj, v2: bool, preserves: bool) -> Obj:
    if v2 and (preserves or schema.get("x-kubernetes-preserve-unknown-fields")):
        return {"type": "object"}
    published = _convert(schema, v2)
    own = published.get("properties", {})
    properties = {**own, **_type_meta(), "metadata": _metadata("ObjectMeta", "object's ", v2)}
    published["properties"] = dict(sorted(properties.items()))
    return published


def _list_model(served: Served, model: str, v2: bool) -> Obj:
    items = {
        "description": f"List of {served.resource.plural}. More info: {_CONVENTIONS}",
        "type": "array",
        "items": {"$ref": _path(model, v2)},
    }
    metadata = _metadata("ListMeta", "list ", v2)
    properties = {**_type_meta(), "items": items, "metadata": metadata}
    return {
        "description": f"{served.list_kind} is a list of {served.resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": dict(sorted(properties.items())),
    }


def _path(model: str, v2: bool) -> str:
    return f"#/definitions/{model}" if v2 else f"#/components/schemas/{model}"


def _metadata(model: str, whose: str, v2: bool) -> Obj:
    anchor = "metadata" if model == "ObjectMeta" else "types-kinds"
    text = {"description": f"Standard {whose}metadata. More info: {_CONVENTIONS}#{anchor}"}
    target = {"$ref": _path(f"{_META}.{model}", v2)}
    return {**text, **target} if v2 else {**text, "allOf": [target]}


@cache
def _type_meta() -> dict[str, Obj]:
    """apiVersion and kind, as every built-in kind describes them."""
    schema = msgspec.json.decode(builtin.schemas([f"{_META}.Status"])[f"{_META}.Status"])
    return {name: schema["properties"][name] for name in ("apiVersion", "kind")}


def _embedded(schema: Obj, v2: bool) -> None:
    """An object within the object has the fields of every object."""
    properties = schema.setdefault("properties", {})
    properties |= {
        "apiVersion": {
            "description": "apiVersion defines the versioned schema of this representation of an object. More info: "
            f"{_CONVENTIONS}#resources",
            "type": "string",
        },
        "kind": {
            "description": "kind is a string value representing the type of this object. In CamelCase. More info: "
            f"{_CONVENTIONS}#types-kinds",
            "type": "string",
        },
        "metadata": _metadata("ObjectMeta", "object's ", v2),
    }
    required = schema.get("required", [])
    schema["required"] = required + [name for name in ("kind", "apiVersion") if name not in required]


def _convert(schema: Obj, v2: bool) -> Obj:
    """A structural schema as it is published."""
    converted = _for_v2(schema) if v2 else _for_v3(schema)
    if "properties" in converted:
        properties = sorted(converted["properties"].items())
        converted["properties"] = {name: _convert(property_schema, v2) for name, property_schema in properties}
    if "items" in converted:
        converted["items"] = _convert(converted["items"], v2)
    if isinstance(converted.get("additionalProperties"), dict):
        converted["additionalProperties"] = _convert(converted["additionalProperties"], v2)
    preserves = converted.get("x-kubernetes-preserve-unknown-fields")
    if converted.get("x-kubernetes-embedded-resource") and not (v2 and preserves):
        _embedded(converted, v2)
    return converted


def _for_v3(schema: Obj) -> Obj:
    converted = dict(schema)
    if converted.get("x-kubernetes-int-or-string") and not converted.keys() & {"anyOf", "allOf"}:
        converted["anyOf"] = _INT_OR_STRING
    return converted


def _for_v2(schema: Obj) -> Obj:
    """Without what OpenAPI v2 does not have, and with no type where its clients would refuse what v3 allows.

    Upstream: ToStructuralOpenAPIV2.
    """
    converted = {key: value for key, value in schema.items() if key not in (*_COMBINATORS, "default", "nullable")}
    preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if schema.get("nullable") or preserves:
        converted.pop("items", None)
        converted.pop("properties", None)
    untyped = schema.get("nullable") or (preserves and schema.get("type") == "object")
    if untyped or (schema.get("type") == "array" and "items" not in converted):
        converted.pop("type", None)
    optional = {name for name, value in converted.get("properties", {}).items() if value.get("nullable")}
    additional = schema.get("additionalProperties")
    any_null = isinstance(additional, dict) and bool(additional.get("nullable"))
    required = [] if any_null else [name for name in converted.get("required", []) if name not in optional]
    if not required:
        converted.pop("required", None)
    else:
        converted["required"] = required
    return converted
