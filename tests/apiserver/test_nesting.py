"""How deep a JSON text is, counted without reading it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.nesting import is_too_deep

TEXTS = st.text(alphabet='{}[]"\\ab\n,:', max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=30,
)


def depth(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


@pytest.mark.spec("S-15")
@given(VALUES, st.integers(0, 6), st.sampled_from([(",", ":"), (" ,\n", " : ")]))
def test_the_depth_of_a_text_is_that_of_its_value(value: Any, most: int, separators: tuple[str, str]) -> None:
    text = json.dumps(value, separators=separators).encode()
    assert is_too_deep(text, most) == (depth(value) > most)


@pytest.mark.parametrize(
    "text", ['["{", "}[["]', '{"\\\\":{"\\"{":[]}}', '["\\\\\\"[", {"[": "\\n\\""}]', '["", "[", "", "]"]']
)
def test_brackets_inside_of_strings_do_not_count(text: str) -> None:
    value = json.loads(text)
    assert [is_too_deep(text.encode(), most) for most in range(4)] == [depth(value) > most for most in range(4)]
