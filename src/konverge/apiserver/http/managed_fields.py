"""Which manager owns which field: the request path's side of `merge`."""

from __future__ import annotations

from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.http.other_versions import converter
from konverge.apiserver.merge.managed_fields import update
from konverge.apiserver.merge.owner import Owner, manager_of
from konverge.apiserver.merge.reset_fields import may_own
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import Call
from konverge.apiserver.schema.decode import normalise
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
        convert=converter(call, served),
    )


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
    )
    update(live, new, owner)


def track(call: Call, served: Served, live: Obj | None, obj: Obj, options: WriteOptions) -> None:
    """Record in metadata.managedFields what a create, an update or a patch changes."""
    owner = owner_of(call, served, options)
    if owner is None:
        return
    if served.custom or served.conversion is None:
        update(live, obj, owner)
        return
    # What the stored form adds is the writer's own too: upstream converts a body as soon as it has read it.
    seen = served.conversion.from_storage(served.conversion.to_storage(normalise(owner.node, obj)))
    update(live, seen, owner)
    obj["metadata"].pop("managedFields", None)
    if "managedFields" in seen["metadata"]:
        obj["metadata"]["managedFields"] = seen["metadata"]["managedFields"]
