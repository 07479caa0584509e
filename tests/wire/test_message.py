"""Header fields, and what goes onto the wire for them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire import Headers, Request, Response
from konverge.wire.encode import RequestEncoder, response_head

TOKEN = re.compile(rb"[!#-'*+.^_`|~0-9A-Za-z-]+")


def test_lookup_ignores_case_and_takes_the_first() -> None:
    headers = Headers([(b"Content-Type", b"a"), (b"content-type", b"b"), (b"X", b"\xe4")])
    assert headers.get("CONTENT-TYPE") == "a"
    assert headers.get_all("content-type") == ["a", "b"]
    assert headers.get("x") == "ä"
    assert headers.get("y") == ""
    assert headers.get("y", "z") == "z"
    assert "cOntent-type" in headers
    assert "y" not in headers
    assert list(headers) == [("content-type", "a"), ("content-type", "b"), ("x", "ä")]
    assert len(headers) == 3


def test_fields_added_after_a_look_are_found() -> None:
    headers = Headers.of({"a": "1"})
    assert "b" not in headers
    headers.add("B", "2")
    assert headers.get("b") == "2"
    headers.raw.append((b"C", b"3"))
    assert headers.get("c") == "3"


def test_values_are_not_shown() -> None:
    shown = repr(Headers.of({"authorization": "Bearer secret"}))
    assert shown == "Headers(authorization)"
    assert "secret" not in repr(Request("POST", "/", body=b"secret")) + repr(Response(200, body=b"secret"))


fields = st.lists(st.tuples(st.binary(max_size=8), st.binary(max_size=12)), max_size=6)


@given(fields)
def test_a_head_never_has_more_lines_than_fields(raw: list[tuple[bytes, bytes]]) -> None:
    """Whatever the bytes: either the head is refused, or it ends exactly once, at its end."""
    encoder = RequestEncoder("h", extra=b"proxy-authorization: x\r\n")
    for make in (
        lambda: encoder.encode(Request("POST", "/", Headers(raw))),
        lambda: response_head(200, Headers(raw), b"content-length: 0\r\n", b"connection: close\r\n"),
    ):
        try:
            head = make()
        except ValueError:
            assert any(set(name + value) & {0, 10, 13} or not TOKEN.fullmatch(name) for name, value in raw)
            continue
        assert head.endswith(b"\r\n\r\n")
        assert head.count(b"\r\n\r\n") == 1
        assert head.count(b"\n") == head.count(b"\r") == head.count(b"\r\n")


def test_fields_are_encoded_once_per_encoder_and_again_when_some_are_added() -> None:
    headers = Headers.of({"accept": "a"})
    encoder, other = RequestEncoder("one"), RequestEncoder("other", gzip=False)
    for _ in range(2):
        assert encoder.encode(Request("GET", "/", headers)) == (
            b"GET / HTTP/1.1\r\nhost: one\r\naccept-encoding: gzip\r\naccept: a\r\n\r\n"
        )
        assert other.encode(Request("GET", "/x", headers)) == b"GET /x HTTP/1.1\r\nhost: other\r\naccept: a\r\n\r\n"
    headers.add("x", "1")
    assert other.encode(Request("POST", "/", headers, b"body")) == (
        b"POST / HTTP/1.1\r\nhost: other\r\naccept: a\r\nx: 1\r\ncontent-length: 4\r\n\r\n"
    )


def test_fields_of_the_caller_stand_in_for_ours_and_framing_is_never_theirs() -> None:
    headers = Headers.of({"Accept-Encoding": "identity", "Host": "h2", "content-length": "9", "transfer-encoding": "x"})
    head = RequestEncoder("h1", extra=b"x: y\r\n").encode(Request("GET", "/", headers))
    assert head == b"GET / HTTP/1.1\r\nx: y\r\naccept-encoding: identity\r\nhost: h2\r\n\r\n"


def test_a_query_is_not_shown() -> None:
    request = Request("GET", "/nacos/v1?accessToken=secret")
    assert repr(request) == "Request(GET /nacos/v1, 0 bytes)"
    with pytest.raises(ValueError, match="percent-encode") as caught:
        RequestEncoder("h").encode(Request("GET", "/ x?accessToken=secret"))
    assert "secret" not in str(caught.value)
