"""JSON that is cut below some of its levels, however deep it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.cache.deep import cut_below

pytestmark = pytest.mark.spec("R-99")

values = st.recursive(
    st.none() | st.integers() | st.text('ab"\\\\{}[],:é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a"{\\\\]'), inner),
)


@given(values, st.integers(0, 3), st.booleans())
def test_what_is_cut_out_and_what_stays_are_the_whole(value: Any, levels: int, compact: bool) -> None:
    data = json.dumps(value, separators=(",", ":") if compact else None, ensure_ascii=compact).encode()
    shallow, pieces = cut_below(data, levels)
    numbers: list[int] = []

    def compare(part: Any, left: Any, level: int) -> None:
        if isinstance(part, dict | list) and level > levels:
            numbers.append(left)
            assert json.loads(pieces[left]) == part
        elif isinstance(part, dict):
            assert list(part) == list(left)
            for name in part:
                compare(part[name], left[name], level + 1)
        elif isinstance(part, list):
            for inner, inner_left in zip(part, left, strict=True):
                compare(inner, inner_left, level + 1)
        else:
            assert part == left

    compare(value, json.loads(shallow), 1)
    assert numbers == list(range(len(pieces)))


def test_each_piece_is_numbered_where_it_stood() -> None:
    data = b'{"a": {"b": [1, {}]}, "c": "}\\\\\\"{", "d": [[2], "]", {"e": 3}], "f": 4}'
    assert cut_below(data, 0) == (b"0", [data])
    assert cut_below(data, 1) == (
        b'{"a": 0, "c": "}\\\\\\"{", "d": 1, "f": 4}',
        [b'{"b": [1, {}]}', b'[[2], "]", {"e": 3}]'],
    )
    assert cut_below(data, 2) == (
        b'{"a": {"b": 0}, "c": "}\\\\\\"{", "d": [1, "]", 2], "f": 4}',
        [b"[1, {}]", b"[2]", b'{"e": 3}'],
    )
    assert cut_below(data, 4) == (data, [])


@pytest.mark.parametrize("broken", [b'{"a":{"b":{', b'{"a":{"b":{}', b'{"a":{"b', b"}}", b'{"a":{}}}'])
def test_what_is_no_json_is_none_afterwards(broken: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting|Extra data|Unterminated"):
        json.loads(cut_below(broken, 1)[0])


def test_the_depth_does_not_matter() -> None:
    levels = 200_000
    middle = b"[" * levels + b"]" * levels
    assert cut_below(b'{"a":' + middle + b"}", 1) == (b'{"a":0}', [middle])
