"""Times, base64 and YAML as Go's libraries read them."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.go import yaml
from konverge.apiserver.go.base64 import Base64Error, canonical_base64
from konverge.apiserver.go.time import TimeError, canonical_micro_time, canonical_time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2020-01-02T03:04:05Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05.999Z", "2020-01-02T03:04:05Z"),
        ("2020-01-02T03:04:05+01:30", "2020-01-02T01:34:05Z"),
        ("2020-01-02T3:04:05Z", "2020-01-02T03:04:05Z"),
        ("0001-01-01T00:00:00Z", None),
    ],
)
def test_times(text: str, time: str | None) -> None:
    assert canonical_time(text) == time


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", ' as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2020", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "-"'),
        ("2020-13-01T00:00:00Z", ": month out of range"),
        ("2020-02-30T00:00:00Z", ": day out of range"),
        ("2020-01-01T24:00:00Z", ": hour out of range"),
        ("2020-01-01T00:00:60Z", ": second out of range"),
        ("2020-01-01T00:00:00", ' as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"'),
        ("2020-01-01T00:00:00Zx", ': extra text: "x"'),
        ("2020-01-01T00:00:00+25:00", ": time zone offset hour out of range"),
    ],
)
def test_texts_that_are_no_times(text: str, why: str) -> None:
    with pytest.raises(TimeError) as failure:
        canonical_time(text)
    assert str(failure.value) == f'parsing time "{text}"{why}'


def test_micro_times_have_six_decimals() -> None:
    assert canonical_micro_time("2020-01-02T03:04:05.000006Z") == "2020-01-02T03:04:05.000006Z"
    with pytest.raises(TimeError, match=r'cannot parse "Z" as "\.000000"'):
        canonical_micro_time("2020-01-02T03:04:05Z")
    with pytest.raises(TimeError, match='cannot parse "789Z" as "Z07:00"'):
        canonical_micro_time("2020-01-02T03:04:05.123456789Z")


@pytest.mark.parametrize(
    ("text", "offset"), [("%", 0), ("YQ", 0), ("YQ=", 3), ("YQ==x", 4), ("Y Q=", 1), ("YWI=YWI=", 4)]
)
def test_texts_that_are_no_base64(text: str, offset: int) -> None:
    with pytest.raises(Base64Error, match=f"illegal base64 data at input byte {offset}"):
        canonical_base64(text)


@given(st.binary(max_size=40))
def test_base64_comes_back(data: bytes) -> None:
    text = base64.b64encode(data).decode()
    assert canonical_base64(text) == text == canonical_base64(data)
    assert canonical_base64("\n".join(text)) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\nb: [x, 'y']", {"a": 1, "b": ["x", "y"]}),
        ("t: 2020-01-01T00:00:00Z", {"t": "2020-01-01T00:00:00Z"}),
        (
            "a: 1:30\nb: 1e3\nc: 0777\nd: 0x1f\ne: -5\nf: 1.5\ng: 0o17\nh: .5",
            {"a": "1:30", "b": 1000.0, "c": 511, "d": 31, "e": -5, "f": 1.5, "g": 15, "h": 0.5},
        ),
        ("a: yes\nb: off\nc: ~\nd: y", {"a": True, "b": False, "c": None, "d": True}),
        ("1: a\ntrue: b\nnull: c", {"1": "a", "true": "b", "null": "c"}),
        ("a: &x {k: v}\nb: *x\nc: {<<: *x, l: w}", {"a": {"k": "v"}, "b": {"k": "v"}, "c": {"k": "v", "l": "w"}}),
        ("", None),
    ],
)
def test_yaml(text: str, value: Any) -> None:
    assert yaml.parse(text.encode()) == (value, [])


def test_repeated_keys_are_told_with_their_line() -> None:
    assert yaml.parse(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n").repeated == [
        'line 4: key "c" already set in map',
        'line 5: key "a" already set in map',
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: b\n\tc: [", "yaml: line 2: found a tab character that violates indentation"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\nb: *there", "yaml: unknown anchor 'there' referenced"),
        ("a: [1\nb: 2", "yaml: line 1: did not find expected ',' or ']'"),
    ],
)
def test_what_is_no_yaml(text: str, why: str) -> None:
    with pytest.raises(yaml.YamlError) as failure:
        yaml.parse(text.encode())
    assert str(failure.value) == why
