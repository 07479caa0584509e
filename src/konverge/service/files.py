"""The files of the console, as they lie in this package. A fixed table: no path of a request touches the disk."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from konverge.wire.message import Headers, Request, Response

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


@cache
def _table() -> dict[str, tuple[str, bytes, str]]:
    """Name -> media type, content, tag. Read once; the files are part of the program."""
    found = {}
    for entry in files("konverge.service").joinpath("static").iterdir():
        media = _TYPES.get(entry.name.rpartition(".")[2])
        if media is not None:
            content = entry.read_bytes()
            found[entry.name] = (media, content, f'"{hashlib.sha256(content).hexdigest()[:16]}"')
    return found


def static(request: Request, name: str) -> Response | None:
    """The answer for a file; None when there is none of that name. Browsers ask again, and mostly get a 304."""
    entry = _table().get(name)
    if entry is None:
        return None
    media, content, tag = entry
    headers = Headers.of({"Content-Type": media, "ETag": tag, "Cache-Control": "no-cache"})
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, content)
