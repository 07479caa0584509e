"""Which manager owns which field: the request path's side of `merge`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.go import json_pieces
from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.merge.managed_fields import update
from konverge.apiserver.merge.owner import Owner, manager_of
from konverge.apiserver.merge.reset_fields import may_own
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema.node import TypeNode
from konverge.apiserver.strategy import Obj


def owner_of(call: Call, served: Served, options: WriteOptions) -> Owner | None:
    """Who writes, and by which rules; None for a kind without a type."""
    node, resource = served.typing, served.resource
    if node is None:
        return None
    return Owner(
        node=node,
        manager=manager_of(options.field_manager, call.request.headers.get("user-agent")),
        api_version=resource.api_version,
        kind=resource.kind,
        now=timestamp(),
        subresource=call.subresource,
        may_own=may_own(resource.group, resource.plural, call.subresource, has_status="status" in served.subresources),
        convert=None if served.conversion is None else _converter(call, served),
    )


def _converter(call: Call, served: Served) -> Callable[[Obj, str], tuple[TypeNode, Obj] | None]:
    """An object in the version of another manager's entry."""
    others: dict[str, Served | None] = {}

    def convert(obj: Obj, api_version: str) -> tuple[TypeNode, Obj] | None:
        group, _, version = api_version.rpartition("/")
        if api_version not in others:
            others[api_version] = aside.on_loop(call.server.registry.by_kind, group, version, served.resource.kind)
        other = others[api_version]
        if other is None or other.table != served.table or other.typing is None:
            return None
        if other is not served:
            obj = _copied(obj)
            if other.settle is None:  # a webhook is not asked for what other managers own
                obj = obj if served.conversion is None else served.conversion.to_storage(obj)
                obj = obj if other.conversion is None else other.conversion.from_storage(obj)
            obj = {**obj, "apiVersion": api_version}
        return other.typing, obj

    return convert


def track_own_status(served: Served | None, live: Obj, new: Obj) -> None:
    """Record a change of the status that the server itself makes."""
    if served is None or served.typing is None:
        return
    resource = served.resource
    owner = Owner(
        node=served.typing,
        manager="kube-apiserver",
        api_version=resource.api_version,
        kind=resource.kind,
        now=timestamp(),
        subresource="status",
        may_own=may_own(resource.group, resource.plural, "status", has_status=True),
        convert=None,
    )
    update(live, new, owner)


def _copied(obj: Obj) -> Obj:
    copy: Obj = json_pieces.decode(msgspec.json.encode(obj))
    return copy


def track(call: Call, served: Served, live: Obj | None, obj: Obj, options: WriteOptions) -> None:
    """Record in metadata.managedFields what a create, an update or a patch changes."""
    owner = owner_of(call, served, options)
    if owner is not None:
        update(live, obj, owner)
