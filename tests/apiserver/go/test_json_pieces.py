"""A text that is decoded in pieces has the same value, and the same error, as one that is decoded at once."""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from konverge.apiserver.go import json_pieces, json_scanner
from konverge.apiserver.go.json import syntax_error
from konverge.apiserver.schema import exact_decoder
from tests.apiserver.go.test_json_scanner import JSON


@pytest.fixture(autouse=True, params=[8, 40, 65536], ids=lambda size: f"of {size}")
def pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """Pieces so small that a short text has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "_WINDOW", request.param)
        yield


@given(JSON, st.sampled_from([None, 2]))
@example({"a": [[[[[[], {}, [1, {"b": [[]]}]]]]]], 'q"]': '\\",[{', "": None}, None)
def test_the_same_value(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent).encode()
    assert json_pieces.cut(text) == msgspec.json.decode(text)
    assert json_pieces.problem(text) == ""


def test_repeated_members_and_the_text_of_numbers() -> None:
    text = b'{"a": 1.50, "b": {"a": [1, 2, {"c": 1e2}], "a": 3}, "a": "x", "d": {}}'
    cut, whole = json_pieces.cut(text, exact_decoder._loads), exact_decoder._loads(text)
    assert cut == whole
    assert isinstance(cut, exact_decoder.Pairs)
    assert cut[0][1].text == "1.50"
    assert json_pieces.cut(text) == msgspec.json.decode(text)
    assert list(json_pieces.cut(text)) == ["a", "b", "d"]


@given(JSON.filter(lambda value: isinstance(value, (dict, list))), st.data())
def test_the_same_error(value: object, data: st.DataObject) -> None:
    text = json.dumps(value).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    inserted = data.draw(st.sampled_from([b"", b",", b"]", b"}", b"[", b"{", b'"', b":", b"x", b"1", b" \x00"]))
    for broken in (text[:at], text[:at] + inserted + text[at:], text[:at] + text[at + 1 :]):
        expected = json_scanner.problem(broken)
        assert json_pieces.problem(broken) == expected
        if expected:
            with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
                json_pieces.cut(broken)


@pytest.mark.parametrize("text", [b"", b" ", b"[", b"[]]", b"{} {}", b"[1,]", b'{"a":1,}', b"[1 2]", b"tru", b"[}"])
def test_no_json(text: bytes) -> None:
    assert json_pieces.problem(text) == json_scanner.problem(text) != ""


@pytest.mark.parametrize("text", [b"[,%s]", b"[ ,%s,1]", b'{,"a":%s}', b"[1,%s,,%s]", b"[%s, ,%s]"])
def test_a_comma_without_a_value_before_a_deep_one(text: bytes) -> None:
    broken = text.replace(b"%s", b"[[[[[[1]]]]]]")
    assert json_pieces.problem(broken) == json_scanner.problem(broken) != ""
    with pytest.raises(msgspec.DecodeError):
        json_pieces.cut(broken)


def test_a_deep_value_is_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """To go down level by level costs twenty times the time."""
    monkeypatch.setattr(json_pieces, "_WINDOW", 65536)
    pieces: list[bytes] = []

    def loads(text: bytes) -> object:
        pieces.append(text)
        return msgspec.json.decode(text)

    chain = b'{"a":' * 100 + b"1" + b"}" * 100
    text = b'{"x":[' + b",".join([chain] * 500) + b"]}"
    assert json_pieces.cut(text, loads) == msgspec.json.decode(text)
    assert len(pieces) < 30


def test_levels_without_end() -> None:
    with pytest.raises(RecursionError):
        json_pieces.cut(b"[" * 2_000 + b"]" * 2_000)


def test_the_exact_error_at_the_end_of_a_long_text() -> None:
    text = b'{"a":[' + b"[]," * 400_000 + b"x]}"
    assert json_pieces.is_long(text)
    assert syntax_error(text) == "invalid character 'x' looking for beginning of value"
    assert syntax_error(text[:-3]) == "unexpected end of JSON input"
    assert not json_pieces.is_long(b'"' + b"x" * 3_000_000 + b'"')
