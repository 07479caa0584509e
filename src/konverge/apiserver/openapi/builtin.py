"""The documents of the built-in API, joined from the pieces of data/openapi.zip (tools/generate_openapi.py).

The pieces are JSON bytes that are joined and never parsed. The exception are the few schemas that stand for a kind in
every group (DeleteOptions): a document lists its own group-version only.
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
    group-versions of kinds in every group that such a document does not list."""

    documents: dict[str, str]
    custom: list[str]
    elsewhere: list[tuple[str, str]]


@cache
def _archive() -> zipfile.ZipFile:
    """In memory, since it is small: reading its directory takes longer than reading a file of it."""
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
    own = restricted(schemas(names.decode().split()), lambda listed: listed in (("", "v1"), (group, version)))
    joined = b",".join(b'"%b":%b' % (key.encode(), schema) for key, schema in own.items())
    part = b'"schemas":{%b},' % joined if own else b""
    return b"".join((_INFO, paths, b',"components":{', part, _SECURITY))


def restricted(named: dict[str, bytes], lists: Callable[[tuple[str, str]], bool]) -> dict[str, bytes]:
    """Schemas by name, in which the kinds of every group list some group-versions only."""
    for name in _IN_EVERY_GROUP:
        if name in named:
            schema: dict[str, Any] = msgspec.json.decode(named[name])
            schema[_KINDS] = [kind for kind in schema[_KINDS] if lists((kind["group"], kind["version"]))]
            named[name] = msgspec.json.encode(schema)
    return named
