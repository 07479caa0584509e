"""POST and PUT: a new object, a whole object, or its status.

Upstream: createHandler and UpdateResource (apiserver/pkg/endpoints/handlers/create.go, update.go).
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import aside
from konverge.apiserver.go import json_pieces
from konverge.apiserver.http import bodies, managed_fields, reads, writes
from konverge.apiserver.http.options import WriteOptions
from konverge.apiserver.http.other_versions import answered
from konverge.apiserver.meta import system
from konverge.apiserver.request.call import Call
from konverge.apiserver.strategy import Obj, StatusRules
from konverge.wire.message import Response


async def create(call: Call) -> Response:
    obj, options = await answered(writes.weight(call), _new, call)
    record = await writes.create(call, call.resource, obj, options)
    return await reads.answer(call, 201, call.resource, record)


def _new(call: Call) -> tuple[Obj, WriteOptions]:
    served = call.resource
    obj, options = bodies.receive(call, served, "CreateOptions")
    metadata = obj.setdefault("metadata", {})
    system.wipe(metadata)
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    served.defaults(obj)
    system.drop_duplicate_owners(obj["metadata"], call, after_admission=False)
    managed_fields.track(call, served, None, obj, options)
    return obj, options


async def update(call: Call) -> Response:
    served = call.resource
    obj, options = await aside.run(writes.weight(call), _changed, call)
    sent = msgspec.json.encode(obj)
    first = True

    def change(live: Obj | None) -> Obj:
        nonlocal obj, first
        if not first:  # another write came between: begin again with the body as it was sent
            obj = json_pieces.decode(sent)
        first = False
        if live is not None and call.subresource == "status":
            keep_all_but_status(obj, live)
        managed_fields.track(call, served, live, obj, options)
        return obj

    written = await writes.update(call, served, change, options, rules=rules_of(call))
    return await reads.answer(call, 201 if written.created else 200, served, written.record)


def _changed(call: Call) -> tuple[Obj, WriteOptions]:
    served = call.resource
    obj, options = bodies.receive(call, served, "UpdateOptions")
    metadata = obj.setdefault("metadata", {})
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    system.match_name(metadata, call.info.name)
    served.defaults(obj)
    system.drop_duplicate_owners(obj["metadata"], call, after_admission=False)
    return obj, options


def rules_of(call: Call) -> StatusRules | None:
    """The rules of the subresource that is written, None for the object itself."""
    strategy = call.resource.strategy
    if not call.subresource:
        return None
    if call.subresource == "status":
        return strategy.status or StatusRules()
    return strategy.subresources.get(call.subresource, StatusRules())


def keep_all_but_status(obj: Obj, live: Obj) -> None:
    for key in obj.keys() | live.keys():
        if key not in ("status", "metadata", "kind", "apiVersion"):
            if key in live:
                obj[key] = live[key]
            else:
                del obj[key]
