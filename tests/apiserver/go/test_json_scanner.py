"""The scanner finds an error exactly where there is one (see test_recorded for the texts of the errors)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.json_scanner import problem

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(JSON, st.sampled_from([None, 2]))
def test_json_has_no_error(value: object, indent: int | None) -> None:
    assert problem(json.dumps(value, indent=indent).encode()) == ""


@given(JSON.filter(lambda value: isinstance(value, (dict, list))), st.data())
def test_a_text_that_is_cut_off_has_an_error(value: object, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    assert problem(text[: data.draw(st.integers(0, len(text) - 1))])


@given(st.binary(max_size=12))
def test_the_scanner_agrees_with_pythons_parser(text: bytes) -> None:
    try:
        json.loads(text.decode())
    except ValueError:
        assert problem(text) or not text.isascii()  # the scanner looks at bytes, not at characters
    else:
        assert problem(text) == "" or b"NaN" in text or b"Infinity" in text


def test_a_text_may_have_ten_thousand_levels() -> None:
    assert problem(b"[" * 10_000 + b"]" * 10_000) == ""
    assert problem(b"[" * 10_001) == "exceeded max depth"
