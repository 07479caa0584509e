"""The paths of OpenAPI.

The index of v3 names each document with its hash: a client that asks with the hash may keep the answer for ever, and a
client that asks with an old hash is redirected to the present one.

Upstream: kube-openapi/pkg/handler3, pkg/handler.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from konverge import clock
from konverge.apiserver.http import negotiate, respond
from konverge.apiserver.http.routing import aggregated
from konverge.apiserver.openapi import builtin, gnostic
from konverge.apiserver.openapi.documents import Document, Documents, index
from konverge.wire.message import Headers, Response

if TYPE_CHECKING:
    from konverge.apiserver.aggregation.registered import Remote
    from konverge.apiserver.request.call import Call
    from konverge.apiserver.request.protocols import Backend

_JSON = ("application/json", "application/*", "*/*")


_cached: WeakKeyDictionary[Backend, Documents] = WeakKeyDictionary()


def _documents(call: Call) -> Documents:
    documents = _cached.get(call.server)
    if documents is None:
        documents = _cached[call.server] = Documents(call.server)
    return documents


async def _document(call: Call, name: str) -> Document | None:
    etag = builtin.index().documents.get(name)
    own = (await _documents(call).custom()).get(name)
    return own if own is not None or etag is None else Document(builtin.document(name), etag)


def _accepts_json(call: Call) -> bool:
    header = call.request.headers.get("accept")
    return not header or any(clause.media in _JSON for clause in negotiate.clauses(header))


def _nothing(call: Call, code: int) -> Response:
    """An answer without a body and without a content type."""
    fields = respond.headers(call, (b"vary", b"Accept"))
    return Response(code, Headers(fields), b"")


async def v2(call: Call) -> Response:
    """JSON, or protobuf for a client that names it."""
    header = call.request.headers.get("accept")
    as_protobuf = gnostic.MEDIA_TYPE in header
    if not as_protobuf and not _accepts_json(call):
        return _nothing(call, 406)
    body, etag = await _documents(call).v2(as_protobuf=as_protobuf)
    fields = {"vary": "Accept-Encoding", "cache-control": "no-cache, private"}
    content_type = gnostic.CONTENT_TYPE if as_protobuf else "application/json"
    return respond.answer_cacheable(call, body, content_type, etag, fields)


def _passed_on(call: Call) -> Iterator[tuple[Remote, str, str]]:
    """The documents of aggregated servers: whose it is, its name, and where it is."""
    aggregation = call.server.aggregation
    for remote in aggregation.all():
        known = aggregation.offer(remote)
        for name, url in known.documents.items() if known is not None else ():
            yield remote, name, url


async def v3_index(call: Call) -> Response:
    """Any method, any Accept: this part of the real server looks at neither."""
    if call.info.path.endswith("/"):  # the document without a name
        return _nothing(call, 404)
    hashes = index(await _documents(call).custom())
    paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={etag}"} for name, etag in hashes.items()}
    for _, name, url in _passed_on(call):
        paths[name] = {"serverRelativeURL": url}
    return respond.answer_text(call, 200, msgspec.json.encode({"paths": paths}).decode())


async def v3_document(call: Call) -> Response:
    name = call.info.path.removeprefix("/openapi/v3/")
    for remote, other, _ in _passed_on(call):
        if other == name:
            return await aggregated(call, remote)(call)
    document = await _document(call, name)
    if document is None:
        return _nothing(call, 404)
    body, etag = document
    if not _accepts_json(call):
        return _nothing(call, 406)
    fields = {"vary": "Accept"}
    asked = (call.query.get("hash") or [""])[0]
    if asked and asked != etag:
        location = f"/openapi/v3/{name}?hash={etag}"
        response = respond.answer_cacheable(call, b"", "application/json", etag, {**fields, "location": location})
        response.status = 301
        return response
    if asked:
        expires = format_datetime(clock.utc_now() + timedelta(days=365), usegmt=True)
        fields |= {"cache-control": "public, immutable", "expires": expires}
    return respond.answer_cacheable(call, body, "application/json", etag, fields)
