"""Bodies in pieces."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from konverge.wire.body import Body


@given(st.lists(st.binary(max_size=5), max_size=20), st.integers(1, 300))
def test_the_pieces_make_the_whole_and_are_forgotten(pieces: list[bytes], times: int) -> None:
    body = Body()
    for _ in range(2):
        for piece in pieces * times:
            body.add(piece)
        assert body.size == times * sum(map(len, pieces))
        assert body.take() == b"".join(pieces) * times
        assert body.size == 0
    assert body.take() == b""


def test_a_single_piece_is_not_copied() -> None:
    body, piece = Body(), bytes(1000)
    body.add(piece)
    assert body.take() is piece


def test_tiny_pieces_cost_about_what_they_hold() -> None:
    body, count = Body(), 30_000
    tracemalloc.start()
    try:
        for number in range(count):
            body.add(number.to_bytes(3, "big"))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * body.size
