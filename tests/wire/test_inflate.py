"""Gzip in pieces: however it is cut, whatever it holds, with and without computing its checksum."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.wire.errors import BodyTooLarge, ProtocolError
from konverge.wire.inflate import PIECE, Inflater, inflate

both = pytest.mark.parametrize("sealed", [False, True])


def named(content: bytes) -> bytes:
    """A member whose head has a file name."""
    target = io.BytesIO()
    with gzip.GzipFile("name.json", "wb", fileobj=target) as file:
        file.write(content)
    return target.getvalue()


def in_parts(data: bytes, places: list[int], sealed: bool) -> tuple[list[bytes], bool]:
    inflater = Inflater(sealed=sealed)
    pulled: list[bytes] = []
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    for start, end in itertools.pairwise(edges):
        if part := data[start:end]:
            inflater.feed(part)
            while piece := inflater.pull():
                pulled.append(piece)
    return pulled, inflater.complete


def spoil(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] if place >= 0 else spoil(data, len(data) + place)


@both
@given(
    contents=st.lists(st.tuples(st.binary(max_size=200), st.integers(0, 300), st.booleans()), max_size=4),
    places=st.lists(st.integers(0, 10_000), max_size=8),
)
def test_members_cut_anywhere(sealed: bool, contents: list[tuple[bytes, int, bool]], places: list[int]) -> None:
    plain = [content * times for content, times, _ in contents]
    data = b"".join(
        named(text) if with_name else gzip.compress(text, 1)
        for text, (_, _, with_name) in zip(plain, contents, strict=True)
    )
    pulled, complete = in_parts(data, places, sealed)
    assert b"".join(pulled) == b"".join(plain)
    assert complete


@both
@given(st.binary(max_size=300), st.integers(0, 400))
def test_a_part_of_a_member_is_not_complete(sealed: bool, content: bytes, place: int) -> None:
    data = gzip.compress(content)
    cut = place % len(data)
    assert in_parts(data[:cut], [], sealed)[1] == (cut == 0)
    if cut:
        with pytest.raises(ProtocolError, match="too early"):
            inflate(data[:cut], None, sealed=sealed)


@both
@given(st.binary(max_size=300))
def test_no_bytes_break_it(sealed: bool, data: bytes) -> None:
    for whole in (data, gzip.compress(b"x") + data, b"\x1f\x8b\x08\x00" + data):
        with contextlib.suppress(ProtocolError, BodyTooLarge):
            inflate(whole, 10_000, sealed=sealed)


@both
def test_a_wrong_length_is_found(sealed: bool) -> None:
    with pytest.raises(ProtocolError, match="broken"):
        inflate(spoil(gzip.compress(b"content"), -1), None, sealed=sealed)


def test_the_checksum_is_left_to_tls() -> None:
    wrong = spoil(gzip.compress(b"content"), -8)
    with pytest.raises(ProtocolError, match="incorrect data check"):
        inflate(wrong, None)
    assert inflate(wrong, None, sealed=True) == b"content"


@both
def test_pieces_are_bounded(sealed: bool) -> None:
    pulled, complete = in_parts(gzip.compress(bytes(5_000_000)), [], sealed)
    assert sum(map(len, pulled)) == 5_000_000
    assert max(map(len, pulled)) == PIECE
    assert complete
    with pytest.raises(BodyTooLarge):
        inflate(gzip.compress(bytes(5_000_000)), 1_000_000, sealed=sealed)
