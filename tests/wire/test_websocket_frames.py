"""Frames: whatever a client may send comes out whole, however it is cut; what it must not send is refused."""

from __future__ import annotations

import contextlib
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire.websocket_frames import FrameReader, Message, Opcode, Violation, close_payload, encode, unmasked
from tests.wire.websocket_client import frame

payloads = st.one_of(st.binary(max_size=300), st.sampled_from((125, 126, 127, 65_535, 65_536)).map(bytes))
masks = st.binary(min_size=4, max_size=4)


@given(st.lists(st.tuples(payloads, masks), max_size=6), st.lists(st.integers(0, 400), max_size=8))
def test_messages_survive_any_cut(sent: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(frame(Opcode.BINARY, data, mask=mask) for data, mask in sent)
    reader, messages = FrameReader(1 << 20), list[Message]()
    for cut in cuts:
        messages += reader.feed(stream[:cut])
        stream = stream[cut:]
    messages += reader.feed(stream)
    assert [message.data for message in messages] == [data for data, _ in sent]


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=6), st.lists(st.binary(max_size=125), max_size=3))
def test_fragments_are_joined_and_control_frames_pass_between(parts: list[bytes], pings: list[bytes]) -> None:
    stream = b""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        stream += frame(Opcode.BINARY if number == 0 else Opcode.CONTINUATION, part, final=last)
        if not last:
            stream += b"".join(frame(Opcode.PING, data) for data in pings)
    messages = FrameReader(1000).feed(stream)
    assert messages[-1] == Message(Opcode.BINARY, b"".join(parts))
    assert [ping.data for ping in messages[:-1]] == pings * (len(parts) - 1)


@given(st.binary(max_size=2000), st.integers(0, 1500))
def test_no_bytes_at_all_do_more_than_raise_a_violation(data: bytes, limit: int) -> None:
    messages: list[Message] = []
    with contextlib.suppress(Violation):
        messages = FrameReader(limit).feed(data)
    assert all(len(message.data) <= max(limit, 125) for message in messages)


@given(payloads, masks)
def test_masking_is_its_own_inverse(data: bytes, mask: bytes) -> None:
    assert unmasked(unmasked(data, mask), mask) == data
    assert unmasked(data, mask) == bytes(byte ^ mask[place % 4] for place, byte in enumerate(data))


@given(payloads)
def test_what_a_server_sends_is_what_a_client_sends_without_the_mask(data: bytes) -> None:
    masked = frame(Opcode.BINARY, data, mask=b"\0\0\0\0")
    plain = encode(Opcode.BINARY, data)
    start = len(plain) - len(data)
    assert plain[0] == masked[0]
    assert plain[1] == masked[1] & 0x7F
    assert plain[2:] == masked[2:start] + masked[start + 4 :]


BAD = {
    "no mask": b"\x82\x01x",
    "reserved bits": b"\xc2\x80\0\0\0\0",
    "unknown opcode": frame(5, b""),
    "unknown control opcode": frame(12, b""),
    "fragmented control": frame(Opcode.PING, b"", final=False),
    "long control": frame(Opcode.PING, b"x" * 126),
    "length in too many bytes": b"\x82\xfe\x00\x05" + b"\0" * 9,
    "length in far too many bytes": b"\x82\xff" + (5).to_bytes(8, "big") + b"\0" * 9,
    "negative length": b"\x82\xff" + b"\xff" * 8,
    "continuation of nothing": frame(Opcode.CONTINUATION, b""),
    "a message within another": frame(Opcode.TEXT, b"", final=False) + frame(Opcode.TEXT, b""),
    "half a close code": frame(Opcode.CLOSE, b"\x03"),
    "a close code that is none": frame(Opcode.CLOSE, (1005).to_bytes(2, "big")),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD.keys())
def test_refused_with_1002(data: bytes) -> None:
    with pytest.raises(Violation) as caught:
        FrameReader(1000).feed(data)
    assert caught.value.code == 1002


@pytest.mark.parametrize(
    "data",
    [
        frame(Opcode.BINARY, b"x" * 1001),
        frame(Opcode.BINARY, b"x" * 600, final=False) + frame(Opcode.CONTINUATION, b"x" * 401),
        b"\x82\xff" + (1 << 40).to_bytes(8, "big"),
    ],
)
def test_too_large_is_known_before_the_bytes_have_come(data: bytes) -> None:
    with pytest.raises(Violation) as caught:
        FrameReader(1000).feed(data[:2000])
    assert caught.value.code == 1009


def test_a_long_reason_is_cut_at_a_whole_character() -> None:
    payload = close_payload(1000, "ü" * 100)
    assert len(payload) <= 125
    payload[2:].decode()


def test_fragments_without_content_cost_nothing() -> None:
    reader = FrameReader(100)
    reader.feed(frame(Opcode.TEXT, b"a", final=False))
    many = frame(Opcode.CONTINUATION, b"", final=False) * 1000
    tracemalloc.start()
    try:
        for _ in range(20):
            reader.feed(many)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 50_000
    assert reader.feed(frame(Opcode.CONTINUATION, b"b")) == [Message(Opcode.TEXT, b"ab")]
