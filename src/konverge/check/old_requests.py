"""Requests for API versions that are gone, served from those that replaced them: a handler around the API server's.

The operator sees the old version everywhere: in discovery, in its own objects, in lists and in watches. What the API
server sees, and what is stored, is the version of today.
"""

from __future__ import annotations

import re

import msgspec

from konverge.apiserver.protobuf import wire
from konverge.apiserver.protobuf.messages import PREFIX
from konverge.check.model import Obj
from konverge.check.old_apis import REPLACED
from konverge.wire.message import Handler, Headers, Producer, Request, Response, Sink

_JSON = (b"accept", b"application/json")
_OF_THE_BODY = (b"accept", b"accept-encoding", b"if-none-match")
_OF_THE_ANSWER = (b"content-length", b"etag")


class OldApis:
    """Call it as the handler that it is made around."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, request: Request) -> Response:
        path, mark, query = request.target.partition("?")
        root, *parts = path.strip("/").split("/")
        if root != "apis":
            return await self._handler(request)
        if len(parts) < 2:
            return _listing_old(await self._handler(_plain(request, request.target)))
        group, old = parts[0], parts[1]
        new = REPLACED.get(group, {}).get(old)
        if new is None:
            return await self._handler(request)
        target = "/".join(["/apis", group, new, *parts[2:]]) + mark + query
        modern = _plain(request, target, _renamed(request.body, f"{group}/{old}", f"{group}/{new}"))
        return _aged(await self._handler(modern), f"{group}/{new}", f"{group}/{old}")


def _plain(request: Request, target: str, body: bytes | None = None) -> Request:
    """Answered by JSON as it is, so that it can be rewritten."""
    kept = [(name, value) for name, value in request.headers.raw if name.lower() not in _OF_THE_BODY]
    given = request.body if body is None else body
    if given != request.body:
        kept = [(name, value) for name, value in kept if name.lower() != b"content-length"]
    return Request(request.method, target, Headers([*kept, _JSON]), given, timeout=request.timeout, peer=request.peer)


# ------------------------------------------------------------------ bodies


def _renamed(body: bytes, old: str, new: str) -> bytes:
    if body.startswith(PREFIX):
        return _reframed(body, old, new)
    return re.sub(
        rb'("(?:apiVersion|groupVersion)"\s*:\s*)"%s"' % re.escape(old.encode()), rb'\1"%s"' % new.encode(), body
    )


def _reframed(body: bytes, old: str, new: str) -> bytes:
    """A protobuf body of the other version: its frame names it (upstream: runtime.Unknown), its message is the same."""
    name = _member(1, old.encode())
    place = body.find(name, len(PREFIX))
    if place < 0:
        return body
    length, start = wire.varint(body, len(PREFIX) + 1, len(body))
    meta = body[start : start + length].replace(name, _member(1, new.encode()), 1)
    return PREFIX + _member(1, meta) + body[start + length :]


def _member(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


# ------------------------------------------------------------------ answers


def _aged(response: Response, new: str, old: str) -> Response:
    kept = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_ANSWER]
    headers = Headers(kept)
    if response.producer is not None:
        return Response(response.status, headers, producer=_aged_stream(response.producer, new, old))
    return Response(response.status, headers, _renamed(response.body, new, old), upgrade=response.upgrade)


def _aged_stream(producer: Producer, new: str, old: str) -> Producer:
    async def produce(sink: Sink) -> None:
        await producer(_Aging(sink, new, old))

    return produce


class _Aging:
    """A sink for lines of JSON."""

    def __init__(self, sink: Sink, new: str, old: str) -> None:
        self._sink, self._new, self._old = sink, new, old
        self._rest = b""

    def write(self, data: bytes) -> None:
        whole, end, self._rest = (self._rest + data).rpartition(b"\n")
        if end:
            self._sink.write(_renamed(whole + end, self._new, self._old))

    async def drain(self) -> None:
        await self._sink.drain()

    @property
    def buffered(self) -> int:
        return self._sink.buffered

    @property
    def closed(self) -> bool:
        return self._sink.closed


def _listing_old(response: Response) -> Response:
    """Discovery of groups: versions that are gone come after those of today."""
    try:
        document: Obj = msgspec.json.decode(response.body)
    except msgspec.DecodeError:
        return response
    for group in document.get("groups") or [document]:
        versions = group.get("versions")
        if isinstance(versions, list):
            name = group.get("name", "")
            versions += [{"groupVersion": f"{name}/{old}", "version": old} for old in REPLACED.get(name, ())]
    kept = [(name, value) for name, value in response.headers.raw if name.lower() not in _OF_THE_ANSWER]
    return Response(response.status, Headers(kept), msgspec.json.encode(document))
