"""YAML as sigs.k8s.io/yaml reads it."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.apiserver import nesting
from konverge.apiserver.go import yaml


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
def test_yaml_is_read_as_goyaml_reads_it(text: str, value: Any) -> None:
    assert yaml.parse(text.encode()) == (value, [])


def test_repeated_keys_are_reported_with_their_line() -> None:
    assert yaml.parse(b"a: 1\nb:\n  c: 1\n  c: 2\na: 3\n").repeated == [
        'line 4: key "c" already set in map',
        'line 5: key "a" already set in map',
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n\tc: [", "yaml: line 2: found a tab character that violates indentation"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ("a: 1\nb: *there", "yaml: unknown anchor 'there' referenced"),
        ("a: [1\nb: 2", "yaml: line 1: did not find expected ',' or ']'"),
        ("a: !!bool x", "yaml: cannot decode !!str `x` as a !!bool"),
        ("a: !!map x", "yaml: cannot decode !!str `x` as a !!map"),
        ("a: !!seq x", "yaml: expected a sequence node, but found scalar"),
    ],
)
def test_yaml_that_cannot_be_read_is_refused_as_by_goyaml(text: str, message: str) -> None:
    with pytest.raises(yaml.YamlError) as failure:
        yaml.parse(text.encode())
    assert str(failure.value) == message


@pytest.mark.parametrize(
    "level",
    ["[", "{a: ", "- ", "? ", "a:\n{}- ", "{}a:\n", "{}a:\r", "\u2028{}a:\u2028"],
)
def test_no_way_to_nest_goes_beyond_the_limit(level: str) -> None:
    """Whether a body can be deep is estimated from its text; a body that is deeper must never pass."""
    if "{}" in level:
        body = "".join(level.format(" " * (2 * number)) for number in range(nesting.MOST + 1))
    else:
        body = level * (nesting.MOST + 1)
    for text in (body.encode(), body.encode("utf-16")):
        with pytest.raises(yaml.YamlError):
            yaml.parse(text)


def test_a_body_without_aliases_is_read_as_one_with_them() -> None:
    text = "a: [1, {b: [x, z], c: ~}, [], {}]\nd:\n- e: 1.5\n  f: {g: yes}\n- - h\n"
    value = yaml.parse(text.encode()).value
    assert value == {"a": [1, {"b": ["x", "z"], "c": None}, [], {}], "d": [{"e": 1.5, "f": {"g": True}}, ["h"]]}
    assert yaml.parse(f"{text}s: &s t\nu: *s\n".encode()).value == value | {"s": "t", "u": "t"}
