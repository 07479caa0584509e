"""What an aggregated server says that it serves: its part of discovery, and its documents of OpenAPI v3.

Upstream: discoveryManager.fetchFreshDiscoveryForService (kube-aggregator/pkg/apiserver/handler_discovery.go),
specProxier.updateAPIServiceSpecLocked (kube-aggregator/pkg/controllers/openapiv3/aggregator).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec

from konverge.apiserver.aggregation.registered import Remote
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_FORM = frozenset(AGGREGATED.split(";")[1:])
MOST = 4 * 1024 * 1024
"""Bytes of a document; a longer one is not read."""

Ask = Callable[[str, str], Awaitable[Response | None]]
"""(path, Accept) -> the answer of the server; None if there is none."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What one server serves of one group and version."""

    resources: list[Obj] = field(default_factory=list)
    """As aggregated discovery shows them."""
    documents: dict[str, str] = field(default_factory=dict)
    """Of OpenAPI v3: where each is, by its name."""


async def offer(ask: Ask, remote: Remote, listed: bytes) -> Offer:
    """`listed` is the document of the version, an APIResourceList: what servers show that know nothing newer."""
    resources = _aggregated(await ask("/apis", AGGREGATED), remote)
    return Offer(
        _converted(listed) if resources is None else resources,
        _documents(await ask("/openapi/v3", "application/json"), remote),
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


def _aggregated(response: Response | None, remote: Remote) -> list[Obj] | None:
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
    versions = [version for group in groups if group.metadata.name == remote.group for version in group.versions or ()]
    found = [version for version in versions if version.version == remote.version]
    return [_shown(resource) for resource in (found[-1].resources or () if found else ())]


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


def _documents(response: Response | None, remote: Remote) -> dict[str, str]:
    """Those of the group: no server speaks for the groups of another."""
    if response is None or response.status != 200 or len(response.body) > MOST:
        return {}
    try:
        paths = _decode_index(response.body).paths
    except msgspec.MsgspecError:
        return {}
    own = f"apis/{remote.group}"
    return {
        name: place.server_relative_url for name, place in paths.items() if name == own or name.startswith(f"{own}/")
    }
