"""What a request is about, read from its method, path and query: authorization and routing depend on this.

Upstream: RequestInfoFactory.NewRequestInfo (apiserver/pkg/endpoints/request/requestinfo.go).
"""

from __future__ import annotations

from urllib.parse import unquote, unquote_plus

import msgspec

Query = dict[str, list[str]]

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES = {"status", "finalize"}  # upstream: namespaceSubresources


class RequestInfo(msgspec.Struct):
    """A request as authorization sees it. `parts` is the path from the resource on."""

    method: str
    path: str
    verb: str
    is_resource: bool = False
    prefix: str = ""
    group: str = ""
    version: str = ""
    namespace: str = ""
    plural: str = ""
    name: str = ""
    subresource: str = ""
    parts: tuple[str, ...] = ()
    label_selector: str = ""
    field_selector: str = ""
    legacy_watch: bool = False
    name_in_path: bool = False
    """The name stands in the path (and not only in a field selector)."""
    in_namespace: bool = False
    """The path has a `namespaces/NAME/` part before the resource."""


def split_target(target: str) -> tuple[str, Query]:
    """The decoded path and the query of a request target."""
    path, _, raw = target.partition("?")
    if "%" in path:
        path = unquote(path)
    query: Query = {}
    if raw:
        escaped = "%" in raw or "+" in raw
        for pair in filter(None, raw.split("&")):
            key, _, value = pair.partition("=")
            if escaped:
                key, value = unquote_plus(key), unquote_plus(value)
            query.setdefault(key, []).append(value)
    return path, query


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Parse a path as the real server does: `/api/VERSION/…` and `/apis/GROUP/VERSION/…` are about resources."""
    info = RequestInfo(method, path, method.lower())
    parts = path.strip("/").split("/")
    if len(parts) < 3 or parts[0] not in ("api", "apis") or path.startswith("//"):
        return info
    info.prefix = parts[0]
    if info.prefix == "apis":
        if len(parts) < 4:
            return info
        info.group, parts = parts[1], parts[1:]
    info.is_resource = True
    info.version = parts[1]
    info.verb = _VERBS.get(method, "")
    _resource_part(info, parts[2:])
    _collection_verb(info, query)
    return info


def _resource_part(info: RequestInfo, parts: list[str]) -> None:
    if parts[0] == "watch" and len(parts) > 1:
        info.legacy_watch, info.verb, parts = True, "watch", parts[1:]
    if parts[0] == "namespaces" and len(parts) > 1:
        info.namespace = parts[1]
        if len(parts) > 2 and parts[2] not in _NAMESPACE_SUBRESOURCES:
            parts, info.in_namespace = parts[2:], True
    info.parts = tuple(parts)
    info.plural = parts[0]
    if len(parts) > 1:
        info.name, info.name_in_path = parts[1], True
    if len(parts) > 2:
        info.subresource = parts[2]


def _collection_verb(info: RequestInfo, query: Query) -> None:
    if info.name:
        return
    if info.verb == "get":
        watching = "watch" in query and query["watch"][0].lower() not in ("0", "false")
        info.verb = "watch" if watching else "list"
    elif info.verb == "delete":
        info.verb = "deletecollection"
    if info.verb in ("list", "watch", "deletecollection") and query:
        info.field_selector = query.get("fieldSelector", [""])[0]
        info.label_selector = query.get("labelSelector", [""])[0]
        info.name = _single_name(info.field_selector)


def _single_name(selector: str) -> str:
    """A list or watch of one object is authorized by its name."""
    for term in selector.split(",") if "metadata.name=" in selector else ():
        if term.startswith("metadata.name="):
            return term[len("metadata.name=") :].lstrip("=")
    return ""
