"""What an aggregated server says that it serves: its part of discovery, and its documents of OpenAPI.

Upstream: discoveryManager.fetchFreshDiscoveryForService (kube-aggregator/pkg/apiserver/handler_discovery.go),
specProxier.updateAPIServiceSpecLocked (kube-aggregator/pkg/controllers/openapiv3/aggregator),
specAggregator.updateServiceLocked (kube-aggregator/pkg/controllers/openapi/aggregator).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.aggregation.registered import Remote
from konverge.apiserver.openapi import gnostic, merge_v2
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_FORM = frozenset(AGGREGATED.split(";")[1:])
MOST = 4 * 1024 * 1024
"""Bytes of a document; a longer one is not read."""
MOST_V2 = 4 * MOST
"""Of the one of OpenAPI v2, which has all groups of a server."""

Ask = Callable[[str, str, str], Awaitable[Response | None]]
"""(path, Accept, ETag of what is known or "") -> the answer of the server; None if there is none."""
GroupVersion = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Offer:
    """What one server said when it was asked for one group and version."""

    served: dict[GroupVersion, list[Obj]] = field(default_factory=dict)
    """The resources as aggregated discovery shows them, of all group-versions that the server spoke of."""
    documents: dict[str, str] = field(default_factory=dict)
    """Of OpenAPI v3: where each is, by its name."""
    v2: Obj | None = None
    """Of OpenAPI v2: what is about the group and version."""
    v2_etag: str = ""


async def offer(ask: Ask, remote: Remote, listed: bytes, known: Offer | None) -> Offer:
    """`listed` is the document of the version, an APIResourceList: what servers show that know nothing newer.

    What was known stays where a server does not answer: it may be about to go away.
    """
    known = known or Offer()
    served = _aggregated(await ask("/apis", AGGREGATED, ""))
    return Offer(
        {(remote.group, remote.version): _converted(listed)} if served is None else served,
        _documents(await ask("/openapi/v3", "application/json", ""), remote, known),
        *await _v2(ask, remote, known),
    )


# --- discovery: one document for all groups


class _Kind(msgspec.Struct):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Subresource(msgspec.Struct, rename="camel"):
    subresource: str
    response_kind: _Kind | None = None
    accepted_types: list[_Kind] | None = None
    verbs: list[str] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _Kind | None = None
    scope: str = ""
    singular_resource: str = ""
    verbs: list[str] | None = None
    short_names: list[str] | None = None
    categories: list[str] | None = None
    subresources: list[_Subresource] | None = None


class _Version(msgspec.Struct):
    version: str
    resources: list[_Resource] | None = None


class _Name(msgspec.Struct):
    name: str = ""


class _Group(msgspec.Struct):
    metadata: _Name
    versions: list[_Version] | None = None


class _Groups(msgspec.Struct):
    items: list[_Group] | None = None


_decode_groups = msgspec.json.Decoder(_Groups).decode


def _aggregated(response: Response | None) -> dict[GroupVersion, list[Obj]] | None:
    """None from a server that has no such document."""
    if response is None or response.status != 200 or len(response.body) > MOST:
        return None
    _, *parameters = response.headers.get("content-type").split(";")
    if not _FORM.issubset(parameter.strip() for parameter in parameters):
        return None
    try:
        groups = _decode_groups(response.body).items or ()
    except msgspec.MsgspecError:
        return None
    return {
        (group.metadata.name, version.version): [_shown(resource) for resource in version.resources or ()]
        for group in groups
        for version in group.versions or ()
    }


def _shown(resource: _Resource) -> Obj:
    entry: Obj = {
        "resource": resource.resource,
        "responseKind": _kind(resource.response_kind),
        "scope": resource.scope,
        "singularResource": resource.singular_resource,
        "verbs": resource.verbs,
    }
    for name, value in (("shortNames", resource.short_names), ("categories", resource.categories)):
        if value:
            entry[name] = value
    if resource.subresources:
        entry["subresources"] = [_shown_part(part) for part in resource.subresources]
    return entry


def _shown_part(part: _Subresource) -> Obj:
    entry: Obj = {"subresource": part.subresource, "responseKind": _kind(part.response_kind)}
    if part.accepted_types:
        entry["acceptedTypes"] = [_kind(kind) for kind in part.accepted_types]
    return {**entry, "verbs": part.verbs}


def _kind(kind: _Kind | None) -> Obj:
    kind = kind or _Kind()
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


# --- discovery: the older form, a list for each version


class _Entry(msgspec.Struct, rename="camel"):
    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: list[str] | None = None
    singular_name: str = ""
    group: str = ""
    version: str = ""
    short_names: list[str] | None = None
    categories: list[str] | None = None


class _ResourceList(msgspec.Struct):
    resources: list[_Entry] | None = None


_decode_list = msgspec.json.Decoder(_ResourceList).decode


def _converted(body: bytes) -> list[Obj]:
    """A server whose answer cannot be read serves nothing that could be shown; requests still go to it."""
    if len(body) > MOST:
        return []
    try:
        entries = _decode_list(body).resources or []
    except msgspec.MsgspecError:
        return []
    return _nested(entries)


def _nested(entries: list[_Entry]) -> list[Obj]:  # upstream: ConvertGroupVersionIntoToDiscovery (apiserver)
    """Resources with their subresources inside."""
    main: dict[str, _Resource] = {}
    for entry in entries:
        if "/" not in entry.name:
            scope, kind = _scope(entry), _Kind(entry.group, entry.version, entry.kind)
            names = (entry.singular_name, entry.verbs, entry.short_names, entry.categories)
            main[entry.name] = _Resource(entry.name, kind, scope, *names)
    for entry in entries:
        name, slash, part = entry.name.partition("/")
        if slash:
            parent = main.setdefault(name, _Resource(name, None, _scope(entry)))
            kind = _Kind(entry.group, entry.version, entry.kind)
            parent.subresources = [*(parent.subresources or ()), _Subresource(part, kind, None, entry.verbs)]
    return [_shown(resource) for resource in main.values()]


def _scope(entry: _Entry) -> str:
    return "Namespaced" if entry.namespaced else "Cluster"


# --- OpenAPI v3


class _Place(msgspec.Struct, rename="camel"):
    server_relative_url: str = msgspec.field(default="", name="serverRelativeURL")


class _Index(msgspec.Struct):
    paths: dict[str, _Place] = {}


_decode_index = msgspec.json.Decoder(_Index).decode


def _documents(response: Response | None, remote: Remote, known: Offer) -> dict[str, str]:
    """Those of the group: no server speaks for the groups of another."""
    if response is None or response.status not in (200, 404):
        return known.documents
    if response.status == 404 or len(response.body) > MOST:
        return {}
    try:
        paths = _decode_index(response.body).paths
    except msgspec.MsgspecError:
        return {}
    own = f"apis/{remote.group}"
    return {
        name: place.server_relative_url for name, place in paths.items() if name == own or name.startswith(f"{own}/")
    }


# --- OpenAPI v2: one document for all groups


class _Specification(msgspec.Struct):
    paths: dict[str, Obj] = {}
    definitions: dict[str, Obj] = {}
    parameters: dict[str, Obj] = {}


_decode_specification = msgspec.json.Decoder(_Specification).decode


async def _v2(ask: Ask, remote: Remote, known: Offer) -> tuple[Obj | None, str]:
    """The part of the group and version, and the ETag of the whole. What was known stays if nothing newer comes."""
    response = await ask("/openapi/v2", "application/json", known.v2_etag)
    if response is None or response.status not in (200, 404):
        return known.v2, known.v2_etag
    if response.status == 404 or len(response.body) > MOST_V2:
        return None, ""
    part = await aside.run(len(response.body), part_v2, response.body, f"{remote.path}/")
    return part, response.headers.get("etag")


def part_v2(body: bytes, prefix: str) -> Obj | None:
    """None if it cannot be read, or not be written as protobuf: one server's document must not spoil the common one."""
    try:
        part = merge_v2.restricted(msgspec.structs.asdict(_decode_specification(body)), prefix)
        gnostic.message("Document", part)
    except (msgspec.MsgspecError, AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None
    return part
