"""What Go's HTTP client says of a request that failed."""

from __future__ import annotations

import pytest

from konverge.apiserver.go.http import http_failure, transport_failure
from konverge.wire.message import Headers, Response


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Connect call failed ('127.0.0.1', 80)", "127.0.0.1:80"),
        ("Connect call failed ('::1', 80, 0, 0)", "[::1]:80"),
        (
            "Multiple exceptions: [Errno 111] Connect call failed ('::1', 80, 0, 0), "
            "[Errno 111] Connect call failed ('127.0.0.1', 80)",
            "127.0.0.1:80",
        ),
        ("Connection refused", "localhost:80"),
    ],
)
@pytest.mark.spec("S-30")
async def test_a_refused_connection_names_the_address_behind_the_name(text: str, shown: str) -> None:
    error = ConnectionRefusedError(111, text)
    why = f"dial tcp {shown}: connect: connection refused"
    assert await transport_failure(error, "localhost:80", "x.y.svc") == why
    outer = OSError("outer")
    outer.__cause__ = error
    assert await transport_failure(outer, "localhost:80", "x.y.svc") == why


@pytest.mark.parametrize(
    ("code", "media", "body", "message"),
    [
        (500, "text/html; charset=utf-8", b" boom ", 'an error on the server ("boom") has prevented'),
        (502, "", b"", 'an error on the server ("unknown") has prevented'),
        (500, "application/json", b"boom", 'an error on the server ("unknown") has prevented'),
        (500, "application/json", b'{"kind":"Status","message":"its own"}', "its own"),
        (500, "application/json", b'{"kind":"Other","message":"its own"}', 'an error on the server ("unknown")'),
        (403, "text/plain", b"not you", "not you"),
        (403, "application/json", b"not you", "unknown"),
        (404, "text/plain", b"x", "the server could not find the requested resource"),
        (418, "text/plain", b"x", "the server responded with the status code 418 but did not return more information"),
    ],
)
@pytest.mark.spec("S-32")
def test_an_answer_that_is_a_failure(code: int, media: str, body: bytes, message: str) -> None:
    headers = Headers.of({"content-type": media} if media else {})
    assert http_failure(Response(code, headers, body)).startswith(message)
