"""YAML as goyaml writes it. The texts are those of a kube-apiserver."""

from __future__ import annotations

import pytest
import yaml

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
