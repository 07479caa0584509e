"""From an object to an answer: JSON or YAML, indented for people, compressed when large."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.go import json_pieces
from konverge.apiserver.http import negotiate
from konverge.apiserver.request.call import PLAIN_JSON, WARNINGS_LIMIT, Accepted, Call
from konverge.wire.message import LOCAL_PEER, Headers, Response

# Smaller answers are not compressed: the time would cost more than the bytes. Upstream: defaultGzipThresholdBytes.
GZIP_FROM = 128 * 1024

_CONTENT_TYPE = {
    negotiate.JSON: (b"content-type", b"application/json"),
    negotiate.YAML: (b"content-type", b"application/yaml"),
}
GZIPPED = ((b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding"))
_CACHE = (b"cache-control", b"no-cache, private")


def settle_form(call: Call, *, custom: bool = False, streams: bool = False, tables: bool = True) -> Accepted:
    """Settle the form of the answer: 406 comes before anything is done."""
    accepted = negotiate.negotiate(call.request.headers.get("accept"), custom=custom, streams=streams, tables=tables)
    call.accepted = accepted._replace(pretty=True) if _pretty(call) else accepted
    return call.accepted


def _pretty(call: Call) -> bool:
    asked = call.query.get("pretty")
    if asked and asked[0]:
        return asked[0] in ("1", "t", "T", "true", "TRUE", "True")
    return negotiate.is_human(call.request.headers.get("user-agent"))


def answer(call: Call, code: int, obj: Any) -> Response:
    """An object in the negotiated form (callers that support tables and metadata alone make these themselves)."""
    return whole(call, code, encode(obj, call.accepted), call.accepted.media)


def answer_bytes(call: Call, code: int, data: bytes) -> Response:
    """Ready JSON in the negotiated form."""
    return whole(call, code, reformat(data, call.accepted), call.accepted.media)


def answer_error(call: Call, error: status.ApiError) -> Response:
    try:
        settle_form(call)
    except status.ApiError:
        call.accepted = PLAIN_JSON
    response = answer(call, error.code, error.status())
    for name, value in error.headers.items():
        response.headers.add(name, value)
    return response


def encode(obj: Any, accepted: Accepted) -> bytes:
    """An object in the form of the answer."""
    if accepted.media == negotiate.YAML:
        return _yaml(obj)
    data = msgspec.json.encode(obj)
    return msgspec.json.format(data, indent=2) if accepted.pretty else data + b"\n"


def reformat(data: bytes, accepted: Accepted) -> bytes:
    """JSON bytes, as stored, in the form of the answer."""
    if accepted.media == negotiate.YAML:
        return _yaml(json_pieces.decode(data))
    return msgspec.json.format(data, indent=2) if accepted.pretty else data


def _yaml(obj: Any) -> bytes:
    from konverge.apiserver.go.yaml_text import dump  # few clients ask for YAML, and the import is not cheap

    def key_line(key: str) -> str:
        return dump({key: None}).removesuffix(" null\n") + "\n"

    return "".join(dump(part) if key is None else key_line(key) for key, part in _parts(obj)).encode()


_ITEMS_AT_ONCE = 64


def _parts(obj: Any) -> Iterator[tuple[str | None, Any]]:
    """The parts whose texts are the text of an object: long lists are written piece by piece.

    What is written as a whole is given back as a whole, too, which holds up other threads. A part is a value, or (first
    of the pair) the key of a list, whose parts follow.
    """
    lists = {key for key, value in obj.items() if _is_long(key, value)} if isinstance(obj, dict) else ()
    if not lists:
        yield None, obj
        return
    for key in sorted(obj):
        value = obj[key]
        if key not in lists:
            yield None, {key: value}
            continue
        yield key, None
        for start in range(0, len(value), _ITEMS_AT_ONCE):
            yield None, value[start : start + _ITEMS_AT_ONCE]


def _is_long(key: str, value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) > _ITEMS_AT_ONCE and len(key) < 64
    )  # longer ones are written otherwise


def headers(call: Call, content_type: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """The fields of every answer."""
    fields = [(b"audit-id", call.audit_id.encode("latin-1", "replace")), _CACHE, content_type]
    if call.warnings:
        fields += _warnings(call.warnings)
    fields += call.flow_headers
    return fields


def _warnings(texts: list[str]) -> Iterator[tuple[bytes, bytes]]:
    """The warnings as header fields, in order, as long as they fit."""
    size = 0
    for text in texts:
        if len(text) > WARNINGS_LIMIT:
            return
        escaped = "".join(c if c.isprintable() else " " for c in text).replace("\\", "\\\\").replace('"', '\\"')
        size += len(escaped)
        if size > WARNINGS_LIMIT:
            return
        yield b"warning", f'299 - "{escaped}"'.encode()


def whole(call: Call, code: int, body: bytes, media: str = negotiate.JSON) -> Response:
    """An answer whose body is complete."""
    content_type = _CONTENT_TYPE.get(media) or (b"content-type", media.encode("latin-1"))
    return Response(code, Headers(headers(call, content_type)), body)


def answer_text(call: Call, code: int, body: str) -> Response:
    return Response(code, Headers(headers(call, (b"content-type", b"text/plain; charset=utf-8"))), body.encode())


def too_many(call: Call, seconds: int) -> Response:
    """429 of a request for which there is no place."""
    response = answer_text(call, 429, "Too many requests, please try again later.\n")
    response.headers.add("retry-after", str(seconds))
    response.headers.add("x-content-type-options", "nosniff")
    return response


_LOCAL = ("127.", "::1:", "::ffff:127.", LOCAL_PEER.address)


def wants_gzip(call: Call) -> bool:
    """Whether a large answer is to be compressed: not for a client on this machine, where sending bytes is cheap."""
    accepted = call.request.headers.get("accept-encoding")
    return "gzip" in accepted and not call.request.peer.address.startswith(_LOCAL)


async def compressed(call: Call, response: Response) -> Response:
    """Compress a large answer for a client that can read it; in a thread, as it takes long."""
    if len(response.body) > GZIP_FROM and response.producer is None and wants_gzip(call):
        response.body = await asyncio.to_thread(gzip.compress, response.body, 1)
        response.headers.raw.extend(GZIPPED)
    return response


def etag_of(body: bytes) -> str:
    """The hash of a document, without quotes."""
    return hashlib.sha512(body).hexdigest().upper()


def answer_cacheable(call: Call, body: bytes, content_type: str, etag: str, fields: dict[str, str]) -> Response:
    """200 with a body that the client may keep, or 304 if it has it. `fields` are the headers about keeping it."""
    quoted = f'"{etag}"'
    held = _holds(call.request.headers.get("if-none-match"), quoted)
    replaced = {*fields, "content-type"} if held else {*fields}
    usual = headers(call, (b"content-type", content_type.encode()))
    all_fields = Headers([field for field in usual if field[0].decode() not in replaced])
    for name, value in {**fields, "etag": quoted}.items():
        all_fields.add(name, value)
    return Response(304, all_fields, b"") if held else Response(200, all_fields, body)


def _holds(header: str, quoted: str) -> bool:
    held = [etag.strip().removeprefix("W/") for etag in header.split(",")]
    return quoted in held or held == ["*"]
