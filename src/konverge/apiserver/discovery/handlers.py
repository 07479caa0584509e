"""The paths of discovery: which document, in which form, and whether the client has it already."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import msgspec

from konverge.apiserver import status
from konverge.apiserver.aggregation.documents import aggregated_group, by_group, group_entry, ordered
from konverge.apiserver.aggregation.registered import Aggregation
from konverge.apiserver.http import negotiate, respond
from konverge.apiserver.http.negotiate import BUILTIN_TYPES, JSON, YAML
from konverge.apiserver.http.routes import PATHS
from konverge.apiserver.http.routing import PageNotFound, aggregated
from konverge.apiserver.registry import Registry, Served
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call


_AGGREGATED = {"g": "apidiscovery.k8s.io", "v": "v2", "as": "APIGroupDiscoveryList"}
_ANY = ("*/*", "application/*")
_UNLISTED = ("/apis/", "/openapi/v3/")
"""Prefixes that the list of all paths names as well, as the real one does."""


async def api(call: Call) -> Response:
    """The core group's versions, or everything in it."""
    _only_get(call)
    media = _aggregated_media(call)
    if media:
        return _aggregated(call, "api", media)
    _negotiate(call, container=True)
    address = call.request.headers.get("host") or "kubernetes.default.svc"
    return respond.answer(call, 200, api_versions(call.server.registry, address))


async def apis(call: Call) -> Response:
    """All other groups. This part of the real server does not look at the method."""
    media = _aggregated_media(call)
    if media:
        return _aggregated(call, "apis", media)
    _negotiate(call)
    return respond.answer(call, 200, group_list(call.server.registry, call.server.aggregation))


async def core_version(call: Call) -> Response:
    """`/api/VERSION`."""
    return _version(call, "", call.info.path.strip("/").split("/")[1])


async def group_or_version(call: Call) -> Response:
    """`/apis/GROUP` and `/apis/GROUP/VERSION`."""
    _, group, *rest = call.info.path.strip("/").split("/")
    remote = call.server.aggregation.find(group, rest[0]) if rest else None
    if remote is not None:
        return await aggregated(call, remote)(call)
    return _version(call, group, rest[0]) if rest else _one_group(call, group)


def _one_group(call: Call, group: str) -> Response:
    document = group_document(call.server.registry, group, call.server.aggregation)
    if document is None:
        raise PageNotFound
    _negotiate(call)
    return respond.answer(call, 200, document)


def _version(call: Call, group: str, version: str) -> Response:
    registry = call.server.registry
    builtin = registry.is_builtin(group)
    document = resource_list(registry, group, version)
    if document is None:
        if builtin:
            raise status.no_such_resource()
        raise PageNotFound
    if builtin:
        _only_get(call)
    _negotiate(call, container=builtin)
    return respond.answer(call, 200, document)


async def root(call: Call) -> Response:
    """Every path of the server, always indented. Upstream: apiserver/pkg/server/routes/index.go."""
    others = [path for path in PATHS if path not in ("/", "/index.html") and not path.endswith("/")]
    document = all_paths(call.server.registry, [*others, *_UNLISTED], call.server.aggregation)
    body = msgspec.json.format(msgspec.json.encode(document), indent=2)
    return respond.whole(call, 200, body)


def _only_get(call: Call) -> None:
    if call.info.method != "GET":
        raise status.method_not_allowed()


# --- the form of the answer


def _negotiate(call: Call, *, container: bool = False) -> None:
    """JSON or YAML, else 406. `container`: the part of the real server that has a message of its own for 406."""
    header = call.request.headers.get("accept")
    clauses = negotiate.clauses(header or "*/*")
    if container and not any(clause.media in BUILTIN_TYPES or clause.media in _ANY for clause in clauses):
        respond.settle_form(call)
    for clause in clauses:
        if not _AGGREGATED.keys() & clause.params.keys() and (clause.media in BUILTIN_TYPES or clause.media in _ANY):
            media = YAML if clause.media == YAML else JSON
            respond.settle_form(call)
            call.accepted = call.accepted._replace(media=media, form="")
            return
    raise status.not_acceptable(f"only the following media types are accepted: {', '.join(BUILTIN_TYPES)}")


def _aggregated_media(call: Call) -> str:
    """The media type in which the aggregated document is asked for, or "": it takes precedence over the older ones."""
    header = call.request.headers.get("accept")
    if "APIGroupDiscoveryList" not in header:
        return ""
    for clause in negotiate.clauses(header):
        asked = {key: value for key, value in clause.params.items() if key in _AGGREGATED}
        if asked == _AGGREGATED and clause.media in (JSON, YAML, *_ANY):
            return YAML if clause.media == YAML else JSON
    return ""


# --- aggregated discovery

_Cache = dict[str, tuple[tuple[int, int], bytes, str]]
_cached: WeakKeyDictionary[Registry, _Cache] = WeakKeyDictionary()
"""For each registry and path: the document as JSON and its ETag, as of a generation of registry and aggregation."""


def _document(registry: Registry, aggregation: Aggregation, path: str) -> tuple[bytes, str]:
    cache = _cached.setdefault(registry, {})
    entry = cache.get(path)
    generation = (registry.generation, aggregation.generation)
    if entry is None or entry[0] != generation:
        groups = [""] if path == "api" else named_groups(registry, aggregation)
        body = msgspec.json.encode(aggregated_document(registry, groups, aggregation))
        entry = cache[path] = (generation, body, respond.etag_of(body))
    return entry[1], entry[2]


def _aggregated(call: Call, path: str, media: str) -> Response:
    body, etag = _document(call.server.registry, call.server.aggregation, path)
    parameters = ";".join(f"{key}={value}" for key, value in _AGGREGATED.items())
    fields = {"cache-control": "public", "vary": "Accept"}
    return respond.answer_cacheable(call, _in_form(call, body, media), f"{media};{parameters}", etag, fields)


def _in_form(call: Call, body: bytes, media: str) -> bytes:
    if media == JSON and "pretty" not in call.query:
        return body
    respond.settle_form(call)
    obj: Obj = msgspec.json.decode(body)
    return respond.encode(obj, call.accepted._replace(media=media))


# --- the documents, built from the registry
# There are two generations of them: a list of groups, a document for each group and one for each version; and one
# document with everything in it (aggregated), which today's clients ask for. Upstream:
# apiserver/pkg/endpoints/discovery, discovery/aggregated.

_ENTRY_KEYS = (
    "name", "singularName", "namespaced", "group", "version", "kind", "verbs", "shortNames", "categories",
    "storageVersionHash",
)  # fmt: skip


def api_versions(registry: Registry, address: str) -> Obj:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": list(registry.versions("")),
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def named_groups(registry: Registry, aggregation: Aggregation) -> list[str]:
    """The groups with a name, by their priorities: the built-in ones, then the custom ones by name."""
    return ordered(aggregation, {group: registry.versions(group) for group in registry.groups() if group})


def group_list(registry: Registry, aggregation: Aggregation) -> Obj:
    """`/apis`."""
    groups = [group_document(registry, group, aggregation) for group in named_groups(registry, aggregation)]
    entries = [{key: group[key] for key in ("name", "versions", "preferredVersion")} for group in groups if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": entries}


def group_document(registry: Registry, name: str, aggregation: Aggregation) -> Obj | None:
    """`/apis/GROUP`."""
    own = _group(registry, name) if name and name in registry.groups() else None
    remotes = by_group(aggregation).get(name)
    if own is None and not remotes:
        return None
    entry = group_entry(aggregation, name, remotes, own) if remotes else own
    return {"kind": "APIGroup", "apiVersion": "v1", **(entry or {})}


def _group(registry: Registry, name: str) -> Obj:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in registry.versions(name)]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(registry: Registry, group: str, version: str) -> Obj | None:
    """`/apis/GROUP/VERSION`."""
    served = registry.versions(group).get(version)
    if served is None:
        return None
    document: Obj = {"kind": "APIResourceList"}
    if group:  # the document of the core group has no apiVersion
        document["apiVersion"] = "v1"
    document["groupVersion"] = f"{group}/{version}" if group else version
    entries = [entry for kind in served.values() for entry in kind.entries]
    document["resources"] = [{key: entry[key] for key in _ENTRY_KEYS if key in entry} for entry in entries]
    return document


def aggregated_document(registry: Registry, groups: Iterable[str], aggregation: Aggregation) -> Obj:
    """Everything of some groups in one document."""
    others = by_group(aggregation)
    items = []
    for group in groups:
        own = _aggregated_group(registry, group) if group in registry.groups() else None
        remotes = others.get(group)
        items.append(aggregated_group(aggregation, group, remotes or [], own) if remotes or own is None else own)
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_group(registry: Registry, group: str) -> Obj:
    versions = []
    for version, served in registry.versions(group).items():
        resources = sorted(map(_aggregated_resource, served.values()), key=lambda resource: str(resource["resource"]))
        versions.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": versions}


def _aggregated_resource(served: Served) -> Obj:
    main, *subresources = served.entries
    resource: Obj = {
        "resource": main["name"],
        "responseKind": _response_kind(served, main),
        "scope": "Namespaced" if main["namespaced"] else "Cluster",
        "singularResource": main["singularName"],
        "verbs": main["verbs"],
    }
    resource |= {key: main[key] for key in ("shortNames", "categories") if key in main}
    if subresources:
        resource["subresources"] = [_aggregated_subresource(served, entry) for entry in subresources]
    return resource


def _aggregated_subresource(served: Served, entry: Obj) -> Obj:
    return {
        "subresource": entry["name"].partition("/")[2],
        "responseKind": _response_kind(served, entry),
        "verbs": entry["verbs"],
    }


def _response_kind(served: Served, entry: Obj) -> dict[str, Any]:
    """Built-in kinds are of the version they are listed under, which empty strings mean; custom ones name it."""
    group, version = entry.get("group", ""), entry.get("version", "")
    if served.custom and not version:
        group, version = served.resource.group, served.resource.version
    return {"group": group, "version": version, "kind": entry["kind"]}


def all_paths(registry: Registry, others: Iterable[str], aggregation: Aggregation) -> Obj:
    """`/`: everything that can be asked for."""
    paths = set(others)
    for group in registry.groups():
        if group:
            paths.add(f"/apis/{group}")
        paths |= {f"/apis/{group}/{version}" if group else f"/api/{version}" for version in registry.versions(group)}
    for remote in aggregation.all():
        paths |= {f"/apis/{remote.group}", remote.path}
    return {"paths": sorted(paths)}
