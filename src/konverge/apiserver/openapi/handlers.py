"""The paths of OpenAPI.

The index of v3 names each document with its hash: a client that asks with the hash may keep the answer for ever, and a
client that asks with an old hash is redirected to the present one.

Upstream: kube-openapi/pkg/handler3, pkg/handler.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from konverge import clock
from konverge.apiserver.http import negotiate, respond
from konverge.apiserver.openapi import builtin, custom, gnostic
from konverge.apiserver.openapi import v2 as openapi_v2
from konverge.wire.message import Headers, Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call
    from konverge.apiserver.request.protocols import Backend

_JSON = ("application/json", "application/*", "*/*")


class Documents:
    """The documents of a server at a generation of its registry: those of custom kinds, and that of v2."""

    def __init__(self, server: Backend) -> None:
        self.generation = server.registry.generation
        self._registry = server.registry
        self._store = server.store
        self._custom: dict[str, bytes] | None = None
        self._v2: dict[bool, bytes] = {}

    def _definitions(self) -> custom.Definitions:
        records = self._store.table("apiextensions.k8s.io/customresourcedefinitions").at(self._store.durable)
        return {record.name: record.decode() for record in records}

    @property
    def custom(self) -> dict[str, bytes]:
        """The v3 documents of custom kinds, by the names of the index."""
        if self._custom is None:
            definitions = self._definitions()
            self._custom = {
                f"apis/{group}/{version}": custom.document(self._registry, definitions, group, version)
                for group, version in custom.group_versions(self._registry)
            }
        return self._custom

    async def v2(self, *, as_protobuf: bool) -> bytes:
        if as_protobuf not in self._v2:
            await asyncio.to_thread(openapi_v2.prepare, as_protobuf=as_protobuf)
            make = openapi_v2.protobuf if as_protobuf else openapi_v2.document
            self._v2[as_protobuf] = make(self._registry, self._definitions())
        return self._v2[as_protobuf]

    def hashes(self) -> dict[str, str]:
        own = {name: respond.etag_of(document) for name, document in self.custom.items()}
        return dict(sorted({**builtin.index().documents, **own}.items()))

    def v3(self, name: str) -> bytes | None:
        if name in self.custom:
            return self.custom[name]
        return builtin.document(name) if name in builtin.index().documents else None


_cached: WeakKeyDictionary[Backend, Documents] = WeakKeyDictionary()


def _documents(call: Call) -> Documents:
    documents = _cached.get(call.server)
    if documents is None or documents.generation != call.server.registry.generation:
        documents = _cached[call.server] = Documents(call.server)
    return documents


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
    body = await _documents(call).v2(as_protobuf=as_protobuf)
    fields = {"vary": "Accept-Encoding", "cache-control": "no-cache, private"}
    content_type = gnostic.CONTENT_TYPE if as_protobuf else "application/json"
    return respond.answer_cacheable(call, body, content_type, respond.etag_of(body), fields)


async def v3_index(call: Call) -> Response:
    """Any method, any Accept: this part of the real server looks at neither."""
    if call.info.path.endswith("/"):  # the document without a name
        return _nothing(call, 404)
    hashes = _documents(call).hashes()
    paths = {name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={etag}"} for name, etag in hashes.items()}
    return respond.answer_text(call, 200, msgspec.json.encode({"paths": paths}).decode())


async def v3_document(call: Call) -> Response:
    documents = _documents(call)
    name = call.info.path.removeprefix("/openapi/v3/")
    etag = documents.hashes().get(name)
    body = documents.v3(name)
    if etag is None or body is None:
        return _nothing(call, 404)
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
