"""The words of Go's scanner; that it finds a problem exactly where there is one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.json_scanner import problem

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(JSON, st.sampled_from([None, 2]))
def test_json_has_no_problem(value: object, indent: int | None) -> None:
    assert problem(json.dumps(value, indent=indent).encode()) == ""


@given(JSON.filter(lambda value: isinstance(value, (dict, list))), st.data())
def test_a_text_that_is_cut_off_has_one(value: object, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    assert problem(text[: data.draw(st.integers(0, len(text) - 1))])


@given(st.binary(max_size=12))
def test_it_agrees_with_another_parser(text: bytes) -> None:
    try:
        json.loads(text.decode())
    except ValueError:
        assert problem(text) or not text.isascii()  # the scanner looks at bytes, not at characters
    else:
        assert problem(text) == "" or b"NaN" in text or b"Infinity" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":tru}', "invalid character '}' in literal true (expecting 'e')"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
        ('{"a":[1,2}', "invalid character '}' after array element"),
        ("{'a':1}", "invalid character '\\'' looking for beginning of object key string"),
        ("{} x", "invalid character 'x' after top-level value"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[" * 10_001, "exceeded max depth"),
        ("", "unexpected end of JSON input"),
    ],
)
def test_words(text: str, words: str) -> None:
    assert problem(text.encode()) == words
