"""The front end's files: a fixed table, read once. No path of a request touches the disk."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from konverge.wire.message import Headers, Request, Response

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "json": "application/json",
    "webmanifest": "application/manifest+json",
    "woff2": "font/woff2",
    "txt": "text/plain; charset=utf-8",
}

WORTH_IT = 1024
"""Bytes from which on a file is sent compressed."""


@cache
def table() -> dict[str, tuple[str, bytes, str]]:
    """Path -> media type, content, ETag."""
    entries = {}
    for path, entry in _walk("", files("konverge.console").joinpath("static")):
        media = _TYPES.get(entry.name.rpartition(".")[2])
        if media is not None:
            content = entry.read_bytes()
            entries[path] = (media, content, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
    return entries


def _walk(prefix: str, folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        path = f"{prefix}/{entry.name}"
        if entry.is_dir():
            yield from _walk(path, entry)
        else:
            yield path, entry


def static(request: Request, path: str) -> Response | None:
    """The answer for a file; None for an unknown path. Names have no hash, so that a change is a small one:
    browsers revalidate each time, and mostly get a 304.
    """
    entry = table().get("/index.html" if path == "/" else path)
    if entry is None:
        return None
    media, content, tag = entry
    fields = {"Content-Type": media, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if len(content) >= WORTH_IT and _takes_gzip(request.headers.get("accept-encoding")):
        content, tag = _compressed(content), f'{tag[:-1]}-gzip"'
        fields["Content-Encoding"] = "gzip"
    headers = Headers.of({**fields, "ETag": tag})
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, content)


@cache
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _takes_gzip(accepted: str) -> bool:
    codings = [entry.replace(" ", "").lower().split(";") for entry in accepted.split(",")]
    return any(name == "gzip" and parameters != ["q=0"] for name, *parameters in codings)
