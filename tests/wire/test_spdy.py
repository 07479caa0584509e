"""SPDY/3.1 as Kubernetes' clients speak it: streams are opened, carry bytes and end; nonsense is an error, no more."""

from __future__ import annotations

import struct
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire import spdy
from konverge.wire.spdy import DICTIONARY, Data, Leaving, Opened, Pinged, Reset, Session, SpdyError


class Peer:
    """A client of a few lines."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def block(self, headers: dict[str, str]) -> bytes:
        plain = struct.pack(">I", len(headers))
        for pair in headers.items():
            for text in pair:
                plain += struct.pack(">I", len(text)) + text.encode()
        return self._deflate.compress(plain) + self._deflate.flush(zlib.Z_SYNC_FLUSH)

    def syn(self, stream: int, headers: dict[str, str], flags: int = 0) -> bytes:
        return control(spdy.SYN_STREAM, struct.pack(">IIH", stream, 0, 0) + self.block(headers), flags)


def control(kind: int, body: bytes, flags: int = 0, version: int = 3) -> bytes:
    return struct.pack(">II", 0x80000000 | version << 16 | kind, flags << 24 | len(body)) + body


def test_the_dictionary_is_the_protocols() -> None:
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


texts = st.dictionaries(st.text("abc-", min_size=1, max_size=9), st.text(max_size=20).map(lambda t: t.encode().hex()))


@given(st.lists(st.tuples(texts, st.binary(max_size=200), st.booleans()), max_size=8), st.integers(1, 50))
def test_streams_come_through_however_the_bytes_are_cut(
    sent: list[tuple[dict[str, str], bytes, bool]], cut: int
) -> None:
    peer, stream = Peer(), b""
    for number, (headers, payload, final) in enumerate(sent):
        stream += peer.syn(2 * number + 1, headers) + spdy.data(2 * number + 1, payload, final=final)
    session, events = Session(), list[spdy.Event]()
    for start in range(0, len(stream), cut):
        events += session.feed(stream[start : start + cut])
    expected: list[spdy.Event] = []
    for number, (headers, payload, final) in enumerate(sent):
        expected += [Opened(2 * number + 1, headers, False), Data(2 * number + 1, payload, final)]
    assert events == expected


def test_replies_can_be_read_by_one_decompressor_for_the_whole_connection() -> None:
    session, inflate = Session(), zlib.decompressobj(zdict=DICTIONARY)
    for stream in (1, 3, 5):
        reply = session.reply(stream)
        assert reply[:4] == b"\x80\x03\x00\x02"
        assert int.from_bytes(reply[8:12], "big") == stream
        assert inflate.decompress(reply[12:]) == b"\0\0\0\0"


def test_pings_resets_and_farewells() -> None:
    ping = control(spdy.PING, struct.pack(">I", 7))
    assert Session().feed(ping) == [Pinged(ping)]
    assert Session().feed(control(spdy.PING, struct.pack(">I", 8))) == []  # the answer to one of ours
    assert Session().feed(spdy.reset(5)) == [Reset(5)]
    assert Session().feed(control(spdy.GOAWAY, bytes(8))) == [Leaving()]
    assert Session().feed(control(spdy.SETTINGS, bytes(4)) + control(spdy.WINDOW_UPDATE, bytes(8))) == []


BAD = {
    "another version": control(spdy.PING, bytes(4), version=2),
    "a frame too large": struct.pack(">II", 1, spdy.FRAME + 1),
    "an even stream": Peer().syn(2, {}),
    "a stream twice": (lambda peer: peer.syn(1, {}) + peer.syn(1, {}))(Peer()),
    "no header block": control(spdy.SYN_STREAM, struct.pack(">IIH", 1, 0, 0)),
    "a broken header block": control(spdy.SYN_STREAM, struct.pack(">IIH", 1, 0, 0) + b"nonsense"),
    "a header block that grows": Peer().syn(1, {"a": "x" * 100_000}),
    "a short reset": control(spdy.RST_STREAM, b""),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_nonsense_is_an_error(data: bytes) -> None:
    with pytest.raises(SpdyError):
        Session().feed(data)


@given(st.binary(max_size=500))
def test_no_bytes_do_more_than_raise_an_error(data: bytes) -> None:
    with suppress(SpdyError):
        Session().feed(data)
