"""GET of one object, and of a collection. Upstream: apiserver/pkg/endpoints/handlers/get.go."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from konverge.apiserver import aside, status
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http import listing, negotiate, render, respond
from konverge.apiserver.http.listing import selected
from konverge.apiserver.http.options import list_options
from konverge.apiserver.registry import Served
from konverge.apiserver.request.call import PLAIN_JSON, Accepted, Call
from konverge.apiserver.storage import Record
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Headers, Response


def find(call: Call) -> Record:
    """The object that the path names, as it is on disk, or 404. No request waits for it: it is there already."""
    return _present(call, call.server.store.durable_record(call.resource.table, call.key))


def find_for_write(call: Call) -> Record:
    """The object that the path names with all writes so far, or 404: what a write changes."""
    return _present(call, call.server.store.get(call.resource.table, call.key))


def _present(call: Call, record: Record | None) -> Record:
    if record is None:
        resource = call.resource.resource
        raise missing(resource.group, resource.plural, call.info.name)
    return record


def missing(
    group: str, plural: str, name: str
) -> status.ApiError:  # upstream: NamespaceKeyFunc (generic/registry/store.go)
    """404, or 400 for a name that no object can have."""
    if not name:
        return status.bad_request("Name parameter required.")
    if name in (".", ".."):
        return status.bad_request(f"Name parameter invalid: {quote(name)}: may not be '{name}'")
    return status.not_found(group, plural, name)


async def get(call: Call) -> Response:
    served = call.resource
    respond.settle_form(call, custom=served.custom)
    version = call.query.get("resourceVersion")
    if version and version[0]:
        try:
            revision = listing.parse_version(version[0])
        except ValueError as error:
            raise status.plain_500(str(error)) from None
        await listing.wait_for(call.server.store, revision)
    return await answer(call, 200, served, find(call))


async def answer(call: Call, code: int, served: Served, record: Record) -> Response:
    """A record in the negotiated form."""
    if call.accepted == PLAIN_JSON and served.conversion is None:
        return respond.whole(call, code, render.plain(served, record))
    size = len(record.data)
    if served.conversion is None:
        size = _weight(call.accepted, size)
    return await aside.run(size, _in_form, call, code, served, record)


def _in_form(call: Call, code: int, served: Served, record: Record) -> Response:
    accepted = call.accepted
    if accepted.form:
        negotiate.check_form(accepted, served.go_type, listed=False)
        return respond.answer(call, code, render.in_form(call, served, record, accepted))
    return respond.answer_bytes(call, code, render.plain(served, record))


async def plain_list(call: Call, served: Served, records: list[Record], metadata: Obj) -> Response:
    """The stored bytes: streamed when there are many, unless they are shown in another form."""
    if call.accepted == PLAIN_JSON and sum(len(record.data) for record in records) > render.STREAM_FROM:
        headers = respond.headers(call, (b"content-type", b"application/json"))
        gzip = respond.wants_gzip(call)
        if gzip:
            headers += respond.GZIPPED
        return Response(200, Headers(headers), producer=render.list_stream(served, records, metadata, gzip=gzip))
    if call.accepted.media == negotiate.YAML and len(records) > 1:
        return await _yaml_list(call, served, records, metadata)
    body = render.list_of(served, records, metadata)
    if len(body) > render.STREAM_FROM:  # indenting it takes long
        data = await aside.run(len(body), respond.reformat, body, call.accepted)
        return respond.whole(call, 200, data, call.accepted.media)
    return respond.answer_bytes(call, 200, body)


async def _yaml_list(call: Call, served: Served, records: list[Record], metadata: Obj) -> Response:
    """A list as YAML, which takes long: in parts, between which other large requests are computed."""
    head, _, tail = respond.reformat(render.list_of(served, [], metadata), call.accepted).partition(b"items: []\n")
    parts = [head, b"items:\n"]
    for batch in listing.batches(records):
        size = sum(len(record.data) for record in batch)
        parts.append(await aside.run(size, _yaml_items, call, served, batch))
    return respond.whole(call, 200, b"".join([*parts, tail]), call.accepted.media)


def _yaml_items(call: Call, served: Served, records: Sequence[Record]) -> bytes:
    return respond.reformat(b"".join((b"[", b",".join(render.items(served, records)), b"]")), call.accepted)


async def list_(call: Call) -> Response:
    served = call.resource
    accepted = respond.settle_form(call, custom=served.custom, streams=True)
    negotiate.check_form(accepted, f"{served.go_type}List", listed=True)
    options = list_options(call.query, watch=False, sharded=call.server.config.sharded)
    namespace = call.info.namespace if served.resource.namespaced else ""
    selection = await selected(served, namespace, options)
    store = call.server.store
    page = await listing.page(store, store.table(served.table), selection, options)
    if served.prepare_past is not None and page.revision < store.durable:
        await served.prepare_past(page.records)
    metadata = page.metadata(selection)
    if served.custom and not accepted.form:
        metadata.setdefault("continue", "")  # lists of custom resources always have it
    return await listed(call, served, page.records, metadata)


async def listed(call: Call, served: Served, records: list[Record], metadata: Obj) -> Response:
    """A list in the negotiated form."""
    accepted = call.accepted
    if not accepted.form:
        return await plain_list(call, served, records, metadata)
    size = sum(len(record.data) for record in records)
    if any(len(record.data) >= aside.FROM for record in records):
        return await aside.run(size, _all_in_form, call, served, records, metadata)
    objects = await listing.map_in_batches(lambda record: render.internal(served, record), records)
    step = _rows_at_once(len(objects), size)
    if accepted.form == "Table":
        in_form = await _table(call, served, call.server.tables.ordered(served, objects), metadata, step)
    else:
        in_form = _partial_list(objects, metadata, accepted.version)
    return await aside.run(_weight(accepted, size), respond.answer, call, 200, in_form)


def _all_in_form(call: Call, served: Served, records: list[Record], metadata: Obj) -> Response:
    """A list with large objects, as a table or as metadata alone, beside the loop."""
    version = call.accepted.version
    if call.accepted.form != "Table":
        partial = [_only_metadata(served, record) for record in records]
        return respond.answer(call, 200, _partial_list(partial, metadata, version))
    objects = call.server.tables.ordered(served, [render.internal(served, record) for record in records])
    include, tables = render.include_object(call), call.server.tables
    return respond.answer(call, 200, render.table(tables, served, objects, metadata, version, include, listed=True))


def _only_metadata(served: Served, record: Record) -> Obj:
    """The object of a record without the parts that a list of metadata leaves out: together they may be very large."""
    obj = render.internal(served, record)
    return {key: obj[key] for key in ("kind", "apiVersion", "metadata") if key in obj}


def _partial_list(objects: list[Obj], metadata: Obj, version: str) -> Obj:
    items = [render.partial(obj, version) for obj in objects] or None
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{version}"}
    return {**kind, "metadata": metadata, "items": items}


def _rows_at_once(count: int, size: int) -> int:
    """How many objects of a list are made into rows in one turn of the loop."""
    return max(1, min(listing.BATCH, count * listing.BATCH_BYTES // max(size, 1)))


_PER_STEP = 64
"""Decoding and encoding so many bytes takes as long as a write takes for one of its bytes."""


def _weight(accepted: Accepted, size: int) -> int:
    """How large an answer is to `aside`: YAML takes long; JSON does not, and should not wait behind large writes."""
    return size if accepted.media == negotiate.YAML else size // _PER_STEP


async def _table(call: Call, served: Served, objects: list[Obj], metadata: Obj, step: int) -> Obj:
    """A list as a table, some rows in each turn of the loop."""
    include, version, tables = render.include_object(call), call.accepted.version, call.server.tables
    first, *others = [objects[start : start + step] for start in range(0, len(objects), step)] or [[]]
    table = render.table(tables, served, first, metadata, version, include, listed=True)
    for batch in others:
        await asyncio.sleep(0)
        table["rows"] += render.table(tables, served, batch, metadata, version, include, listed=True)["rows"]
    return table
