"""What the wire itself refuses, in the words of this server: requests that never become one."""

from __future__ import annotations

import msgspec

from konverge.apiserver import status
from konverge.apiserver.http.bodies import BODY_LIMIT
from konverge.wire.message import Headers, Response

_REASONS = {413: "RequestEntityTooLarge", 500: "InternalError", 503: "ServiceUnavailable"}
_TEXTS = {400: "400 Bad Request", 414: "414 URI Too Long", 431: "431 Request Header Fields Too Large"}


def refusal(code: int, text: str) -> Response:
    """A Status for what a client of the API can understand, a line of text for what is hardly HTTP."""
    if code == 400 and "method" in text:  # the parser knows the methods of HTTP only; a resource allows none but those
        return _status(status.method_not_allowed())
    if code == 413:
        return _status(status.too_large(BODY_LIMIT))
    if code in _REASONS:
        return _status(status.ApiError(code, _REASONS[code], text))
    body = f"{_TEXTS.get(code, text)}: {text}" if code in _TEXTS else text
    return Response(code, Headers([(b"content-type", b"text/plain; charset=utf-8")]), body.encode())


def _status(error: status.ApiError) -> Response:
    headers = Headers([(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")])
    return Response(error.code, headers, msgspec.json.encode(error.status()) + b"\n")
