"""The one document of OpenAPI v2: the schemas of v3 in its older form, the paths from data."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from konverge.apiserver.kubernetes_version import MINOR_VERSION
from konverge.apiserver.openapi import builtin, custom, gnostic
from konverge.apiserver.openapi.custom import Definitions
from konverge.apiserver.registry import Registry
from konverge.apiserver.strategy import Obj

_HEAD = {"swagger": "2.0", "info": {"title": "Kubernetes", "version": MINOR_VERSION}}
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
    more = _custom(registry, definitions)
    parts = {
        **_HEAD,
        "paths": msgspec.Raw(_joined(paths, more["paths"])),
        "definitions": msgspec.Raw(_joined(schemas, more["definitions"])),
        "parameters": msgspec.Raw(parameters),
        **_SECURITY,
    }
    return msgspec.json.encode(parts)


def protobuf(registry: Registry, definitions: Definitions) -> bytes:
    """The same as protobuf. The parts of a message may come in several pieces: those of custom kinds come last."""
    return _builtin_protobuf() + gnostic.message("Document", _custom(registry, definitions))


def prepare(*, as_protobuf: bool) -> None:
    """Compute the part that takes long and does not change: to be called in a thread."""
    if as_protobuf:
        _builtin_protobuf()
    else:
        _builtin()


def _custom(registry: Registry, definitions: Definitions) -> dict[str, dict[str, Any]]:
    """The paths and schemas of custom kinds."""
    parts: dict[str, dict[str, Any]] = {"paths": {}, "definitions": {}}
    for group, version in custom.group_versions(registry):
        for served in custom.served_in(registry, group, version):
            parts["paths"] |= custom.operations(served, "v2")
            parts["definitions"] |= custom.models(served, definitions, v2=True)
    return parts


def _joined(data: bytes, more: dict[str, Any]) -> bytes:
    """A JSON object with more entries."""
    return data[:-1] + b"," + msgspec.json.encode(more)[1:] if more else data


@cache
def _builtin_protobuf() -> bytes:
    schemas, paths, parameters = map(msgspec.json.decode, _builtin())
    parts = {**_HEAD, "paths": paths, "definitions": schemas, "parameters": parameters, **_SECURITY}
    return gnostic.message("Document", parts)


@cache
def _builtin() -> tuple[bytes, bytes, bytes]:
    """Schemas, paths and parameters of the built-in API."""
    names = {
        name
        for document in builtin.index().documents
        for name in builtin.member(f"v3/{document}").split(b"\n")[0].split()
    }
    schemas = builtin.schemas(sorted(name.decode() for name in names))
    converted = {name: convert(msgspec.json.decode(schema)) for name, schema in schemas.items()}
    paths, parameters = builtin.member("v2").splitlines()
    return msgspec.json.encode(converted), paths, parameters


def convert(schema: Obj) -> Obj:
    """A schema of v3 in the form of v2. Upstream: kube-openapi/pkg/openapiconv."""
    converted = {key: value for key, value in schema.items() if key not in ("default", "oneOf", "allOf")}
    if "oneOf" in schema:
        converted["type"] = "string"
    for target in schema.get("allOf", ()):
        converted |= convert(target)
    if "$ref" in converted:
        converted["$ref"] = converted["$ref"].replace("#/components/schemas/", "#/definitions/")
    if "properties" in converted:
        converted["properties"] = {name: convert(value) for name, value in converted["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(converted.get(key), dict):
            converted[key] = convert(converted[key])
    return converted
