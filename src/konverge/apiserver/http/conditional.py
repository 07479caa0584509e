"""Answers that a client may keep: they have an ETag, and whoever holds it gets a 304."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from konverge.apiserver.http import respond
from konverge.wire.message import Headers, Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call


def etag_of(body: bytes) -> str:
    """The hash of a document, without quotes."""
    return hashlib.sha512(body).hexdigest().upper()


def answer(call: Call, body: bytes, content_type: str, etag: str, fields: dict[str, str]) -> Response:
    """200 with the body, or 304. `fields` are the headers about keeping it."""
    quoted = f'"{etag}"'
    held = _holds(call.request.headers.get("if-none-match"), quoted)
    replaced = {*fields, "content-type"} if held else {*fields}
    plain = respond.headers(call, (b"content-type", content_type.encode()))
    headers = Headers([field for field in plain if field[0].decode() not in replaced])
    for name, value in {**fields, "etag": quoted}.items():
        headers.add(name, value)
    return Response(304, headers, b"") if held else Response(200, headers, body)


def _holds(header: str, quoted: str) -> bool:
    held = [one.strip().removeprefix("W/") for one in header.split(",")]
    return quoted in held or held == ["*"]
