"""YAML as goyaml writes it. The texts are those of a kube-apiserver."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go.yaml import parse
from konverge.apiserver.go.yaml_text import dump

pytestmark = pytest.mark.spec("S-31")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("257", '"257"'), ("1.5", '"1.5"'), ("", '""'), ("null", '"null"'), ("yes", '"yes"'), ("N", '"N"'),
        ("y", '"y"'),
        ("2026-01-01T00:00:00Z", '"2026-01-01T00:00:00Z"'), ("<<", '"<<"'), ("a", "a"), ("é", "é"),
        ("a: b", "'a: b'"), ("*", "'*'"), ("- x", "'- x'"), (" a ", "' a '"), ("a\nb\n", "|\n  a\n  b"),
        ("a\nb", "|-\n  a\n  b"),
    ],
)  # fmt: skip
def test_texts(text: str, written: str) -> None:
    assert dump({"k": text}) == f"k: {written}\n"
    assert yaml.safe_load(dump({"k": text})) == {"k": text}


def test_nothing_is_an_alias() -> None:
    shared = {"a": 1}
    assert dump({"x": shared, "b": [shared]}) == "b:\n- a: 1\nx:\n  a: 1\n"


@pytest.mark.spec("S-64")
@pytest.mark.parametrize(
    "text", ["1e3", "12e5", "1E-3", "0o14", "089", "-.5", ".5e3", "1.e3", "0X1F", "1_0e3", "0b-1", "n"]
)
def test_numbers_of_goyaml_are_in_quotes(text: str) -> None:
    assert dump({text: [text]}) == f'"{text}":\n- "{text}"\n'


@pytest.mark.spec("S-64")
@pytest.mark.parametrize("text", ["1.2.3", "0o8", "_1", "1e", "no-1", "v1"])
def test_other_texts_have_no_quotes(text: str) -> None:
    assert dump({"a": text}) == f"a: {text}\n"


@pytest.mark.spec("S-64")
@given(text=st.text("-+.:0123789eEoOxXb_ynN~<=") | st.from_regex(r"[-+.0-9][-+.0-9eEoxXb_]*", fullmatch=True))
def test_a_text_that_is_written_is_read_as_a_text(text: str) -> None:
    value = {"a": text, "l": [{text: text}]}
    assert parse(dump(value).encode()).value == value
