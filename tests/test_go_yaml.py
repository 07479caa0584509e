"""YAML as kubectl reads it. What the scalars mean is what `kubectl annotate --local -o json` printed."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from konverge.go_yaml import Loader, dump, is_text


def read(text: str) -> Any:
    return yaml.load(text.encode(), Loader)


@pytest.mark.spec("S-31")
@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("0", 0), ("-0", 0), ("00", 0), ("+1", 1), ("1_000", 1000), ("1_", 1), ("0777", 511), ("-0o14", -12),
        ("0b11", 3), ("0B11", 3), ("0o17", 15), ("0O17", 15), ("+0O7", 7), ("0x1f", 31), ("0X1F", 31), ("-0x1F", -31),
        ("0b-1", -1), ("0b+1", 1), ("-0b_1", -1), ("0_b1", 1), ("+_0x1", 1), ("-_1", -1),
        ("9223372036854775807", 2**63 - 1), ("9223372036854775808", 2.0**63), ("-99999999999999999999", -1e20),
        ("089", 89.0), ("-089", -89.0),
        ("0_8", 8.0), ("1e3", 1000.0), ("1E-3", 0.001), ("1.e3", 1000.0), (".5e3", 500.0), ("-.5", -0.5), ("+.5", 0.5),
        ("1_0e3", 10000.0), ("1_000.5", 1000.5), ("1._5", 1.5), (".5_0", 0.5), ("-._5", -0.5), ("1e_3", 1000.0),
        ("1e3_", 1000.0), ("1__0.5", 10.5),
        (".5_1_2E-1", 0.0512), (".5e3_0", 5e29), ("5e_+3", 5000.0), (".5e+1", 5.0),
    ],
)  # fmt: skip
def test_numbers(plain: str, value: float) -> None:
    got = read(f"a: {plain}")["a"]
    assert (got, type(got)) == (value, type(value))


@pytest.mark.spec("S-31")
@pytest.mark.parametrize(
    "plain",
    [
        "0b_", "0x_", "0o_", "0x", "0o89", "0b2", "0x1p3", "-0b-1", "0B-1", "_1", "_", "1e", ".", "-.", "+", "1e400",
        "9" * 400, "._5", ".5_", ".5__0", ".5_e3", ".5e_3", ".5e3_", ".5e", ".5p2",
        "1:30", "2026-01-02", "2026-01-02T03:04:05Z", "yEs", "oN", "=", "yes1", "1.5.0", "1 2",
    ],
)  # fmt: skip
def test_texts(plain: str) -> None:
    assert read(f"a: {plain}") == {"a": plain}


@pytest.mark.spec("S-31")
def test_booleans_nothing_and_keys() -> None:
    for value, texts in ((True, "y Y yes Yes YES true True TRUE on On ON"), (False, "n N no No NO false off Off OFF")):
        for text in texts.split():
            assert read(text) is value
    assert read("~") is read("null") is read("Null") is None
    assert read("{y: a, off: b, 2026: d, 1:30: f, 2026-01-02: g}") == {
        "true": "a", "false": "b", "2026": "d", "1:30": "f", "2026-01-02": "g"
    }  # fmt: skip
    assert read("a: &x {k: v}\nb: {<<: *x, l: !other w}") == {"a": {"k": "v"}, "b": {"k": "v", "l": "w"}}
    assert read("[!!timestamp 2026-01-02, !!set {a: 1}, !!omap [b], !t [{y: 1}]]") == [
        "2026-01-02", {"a": 1}, ["b"], [{"true": 1}]
    ]  # fmt: skip


@pytest.mark.spec("O-93")
@given(text=st.text("-+.:0123789eEoOxXbB_ynYNfF~<=#& \n") | st.from_regex(r"[-+.0-9][-+.0-9eEoxXb_]*", fullmatch=True))
def test_what_is_written_is_read_as_it_was_by_both(text: str) -> None:
    value = {text: [text, {"a": text}], "other": 1}
    written = dump(value)
    assert read(written) == yaml.safe_load(written) == value


@pytest.mark.spec("O-93")
def test_only_what_is_no_text_is_in_quotes() -> None:
    assert dump({"z": "1e3", "a": "shop-1", "y": ["1.2.3", True, 1, None]}) == (
        "z: '1e3'\na: shop-1\n'y':\n- 1.2.3\n- true\n- 1\n- null\n"
    )
    assert dump({"a": "é " * 58 + "é"}) == "a: " + "é " * 58 + "é\n", "lines are long"
    assert [is_text(text) for text in ("", "~", "n", "<<", "1", "_1", "no-1")] == [False] * 5 + [True] * 2


@pytest.mark.spec("S-31")
@pytest.mark.parametrize(("text", "kind"), [("x", "bool"), ("", "int"), ("0x", "int"), ("x", "float"), ("x", "map")])
def test_a_tag_that_does_not_fit_is_refused_as_by_goyaml(text: str, kind: str) -> None:
    with pytest.raises(ValueError, match=f"cannot decode !!str `{text}` as a !!{kind}"):
        yaml.load(f"a: !!{kind} '{text}'", Loader)
