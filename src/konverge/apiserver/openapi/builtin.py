"""The documents of the built-in API, put together from the pieces of data/openapi.zip (made by
tools/generate_openapi.py).

A document is bytes all along: the pieces are JSON, so they are joined and never parsed. The exception are the few
schemas that stand for a kind in every group (DeleteOptions): a document tells of its own group-version only.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib import resources
from io import BytesIO
from typing import Any

import msgspec

from konverge.apiserver.kubernetes_version import MINOR_VERSION

_INFO = f'{{"openapi":"3.0.0","info":{{"title":"Kubernetes","version":"{MINOR_VERSION}"}},"paths":'.encode()
_SECURITY = (
    b'"securitySchemes":{"BearerToken":{"type":"apiKey","description":"Bearer Token authentication",'
    b'"name":"authorization","in":"header"}}}}'
)
_KINDS = "x-kubernetes-group-version-kind"
_IN_EVERY_GROUP = (
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
)


class Index(msgspec.Struct):
    """`documents`: the hash of each. `custom`: the schemas that a document of custom kinds needs. `elsewhere`: the
    group-versions of kinds in every group that such a document does not tell of."""

    documents: dict[str, str]
    custom: list[str]
    elsewhere: list[tuple[str, str]]


@cache
def _archive() -> zipfile.ZipFile:
    """In memory, as small as it is: reading its directory takes longer than reading a file of it."""
    data = resources.files("konverge.apiserver").joinpath("data/openapi.zip").read_bytes()
    return zipfile.ZipFile(BytesIO(data))


def member(name: str) -> bytes:
    """A file of the archive."""
    return _archive().read(name)


@cache
def index() -> Index:
    return msgspec.json.decode(member("index.json"), type=Index)


@lru_cache(maxsize=16)
def _package(name: str) -> Mapping[str, bytes]:
    lines = (line.partition(b" ") for line in member(f"schemas/{name}").splitlines())
    return {key.decode(): schema for key, _, schema in lines}


def schemas(names: Iterable[str]) -> dict[str, bytes]:
    """Schemas as JSON by name."""
    return {name: _package(name.rpartition(".")[0])[name] for name in names}


def document(name: str) -> bytes:
    """A v3 document, as `apis/apps/v1` names it in the index."""
    names, paths = member(f"v3/{name}").splitlines()
    _, _, group_version = name.partition("/")
    group, _, version = group_version.rpartition("/")
    found = told(schemas(names.decode().split()), lambda one: one in (("", "v1"), (group, version)))
    joined = b",".join(b'"%b":%b' % (key.encode(), schema) for key, schema in found.items())
    part = b'"schemas":{%b},' % joined if found else b""
    return b"".join((_INFO, paths, b',"components":{', part, _SECURITY))


def told(found: dict[str, bytes], tells: Callable[[tuple[str, str]], bool]) -> dict[str, bytes]:
    """Schemas in which the kinds of every group are restricted to some group-versions."""
    for name in _IN_EVERY_GROUP:
        if name in found:
            schema: dict[str, Any] = msgspec.json.decode(found[name])
            schema[_KINDS] = [kind for kind in schema[_KINDS] if tells((kind["group"], kind["version"]))]
            found[name] = msgspec.json.encode(schema)
    return found
