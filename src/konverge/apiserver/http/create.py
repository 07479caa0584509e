"""POST of a new object. Upstream: createHandler (apiserver/pkg/endpoints/handlers/create.go)."""

from __future__ import annotations

from konverge.apiserver.http import bodies, managed_fields, reads, respond, writes
from konverge.apiserver.http.options import write_options
from konverge.apiserver.meta import system
from konverge.apiserver.request.call import Call
from konverge.wire.message import Response


async def create(call: Call) -> Response:
    served = call.resource
    respond.settle_form(call, custom=served.custom)
    bodies.check_media(call, served)
    body = bodies.checked_body(call)
    options = write_options(call.query, "CreateOptions")
    obj = bodies.read(call, served, body, options.field_validation)
    metadata = obj.setdefault("metadata", {})
    system.wipe(metadata)
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    served.defaults(obj)
    system.drop_duplicate_owners(obj["metadata"], call, after_admission=False)
    managed_fields.track(call, served, None, obj, options)
    record = await writes.create(call, served, obj, options)
    return reads.answer(call, 201, served, record)
