"""The one document of OpenAPI v2: the schemas of v3 in its older form, the paths from data."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec

from konverge.apiserver.kubernetes_version import MINOR_VERSION
from konverge.apiserver.openapi import builtin, custom, gnostic, merge_v2
from konverge.apiserver.registry import Served
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


class Piece(NamedTuple):
    """What a custom kind adds to the document: members of `paths` and of `definitions`, as JSON objects or, all in the
    first, as protobuf."""

    paths: bytes
    definitions: bytes = b""


def document(pieces: list[Piece]) -> bytes:
    """Everything: the built-in kinds and the custom ones."""
    schemas, paths, parameters = _builtin()
    parts = {
        **_HEAD,
        "paths": msgspec.Raw(_joined([paths, *(piece.paths for piece in pieces)])),
        "definitions": msgspec.Raw(_joined([schemas, *(piece.definitions for piece in pieces)])),
        "parameters": msgspec.Raw(parameters),
        **_SECURITY,
    }
    return msgspec.json.encode(parts)


def protobuf(pieces: list[Piece]) -> bytes:
    """The same as protobuf. The parts of a message may come in several pieces: those of custom kinds come last."""
    return b"".join([_builtin_protobuf(), *(piece.paths for piece in pieces)])


def merged(pieces: list[Piece], others: list[Obj], *, as_protobuf: bool) -> bytes:
    """With what other servers say."""
    whole: Obj = msgspec.json.decode(document(pieces))
    for spec in others:
        merge_v2.merge(whole, spec)
    return gnostic.message("Document", whole) if as_protobuf else msgspec.json.encode(whole)


def json_piece(served: Served) -> Piece:
    paths, schemas = custom.operations(served, "v2"), custom.models(served, v2=True)
    return Piece(msgspec.json.encode(paths), msgspec.json.encode(schemas))


def protobuf_piece(served: Served) -> Piece:
    paths, schemas = custom.operations(served, "v2"), custom.models(served, v2=True)
    return Piece(gnostic.message("Document", {"paths": paths, "definitions": schemas}))


def _joined(objects: list[bytes]) -> bytes:
    """JSON objects as one."""
    return b"{" + b",".join(part[1:-1] for part in objects) + b"}"


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
