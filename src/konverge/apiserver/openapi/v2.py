"""The one document of OpenAPI v2: the schemas of v3 in its older form, the paths from data."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from konverge.apiserver.openapi import builtin, custom
from konverge.apiserver.openapi.custom import Definitions
from konverge.apiserver.registry import Registry
from konverge.apiserver.strategy import Obj

_HEAD = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.37"}}
_SECURITY = {
    "securityDefinitions": {
        "BearerToken": {
            "description": "Bearer Token authentication",
            "type": "apiKey",
            "name": "authorization",
            "in": "header",
        }
    },
    "security": [{"BearerToken": []}],
}


def document(registry: Registry, definitions: Definitions) -> bytes:
    """Everything: the built-in kinds and the custom ones."""
    schemas, paths, parameters = _builtin()
    models: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for group, version in custom.group_versions(registry):
        for served in custom.served_in(registry, group, version):
            models |= custom.models(served, definitions, v2=True)
            operations |= custom.operations(served, "v2")
    parts = {
        **_HEAD,
        "paths": msgspec.Raw(_joined(paths, operations)),
        "definitions": msgspec.Raw(_joined(schemas, models)),
        "parameters": msgspec.Raw(parameters),
        **_SECURITY,
    }
    return msgspec.json.encode(parts)


def _joined(data: bytes, more: dict[str, Any]) -> bytes:
    """A JSON object with more entries."""
    return data[:-1] + b"," + msgspec.json.encode(more)[1:] if more else data


@lru_cache(maxsize=1)
def _builtin() -> tuple[bytes, bytes, bytes]:
    """Schemas, paths and parameters of the built-in API."""
    names = {
        name
        for document in builtin.index().documents
        for name in builtin.member(f"v3/{document}").split(b"\n")[0].split()
    }
    found = builtin.schemas(sorted(name.decode() for name in names))
    converted = {name: convert(msgspec.json.decode(schema)) for name, schema in found.items()}
    paths, parameters = builtin.member("v2").splitlines()
    return msgspec.json.encode(converted), paths, parameters


def convert(schema: Obj) -> Obj:
    """A schema of v3 in the form of v2."""
    found = {key: value for key, value in schema.items() if key not in ("default", "oneOf", "allOf")}
    if "oneOf" in schema:
        found["type"] = "string"
    for target in schema.get("allOf", ()):
        found |= convert(target)
    if "$ref" in found:
        found["$ref"] = found["$ref"].replace("#/components/schemas/", "#/definitions/")
    if "properties" in found:
        found["properties"] = {name: convert(one) for name, one in found["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = convert(found[key])
    return found
