"""JSONPath of printer columns and selectable fields."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.crd.serving.jsonpath import JSONPath, JSONPathError

OBJ = {"a": {"b": [{"c": 1, "n": "x"}, {"c": 2, "n": "y"}], "k.l": "dotted"}, "s": "text"}


@pytest.mark.spec("S-08")
@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".s", ["text"]),
        (".a.b[0].c", [1]),
        (".a.b[-1].n", ["y"]),
        (".a.b[*].c", [1, 2]),
        (".a.b[0:1].n", ["x"]),
        ("..c", [1, 2]),
        (".a.k\\.l", ["dotted"]),
        (".a['k.l']", ["dotted"]),
        ('.a.b[?(@.n=="y")].c', [2]),
        (".a.b[?(@.c>1)].n", ["y"]),
    ],
)
def test_a_path_finds_its_values(path: str, values: list[Any]) -> None:
    assert JSONPath(path).find(OBJ) == values


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(st.text(".[]()'?*@ab0:-\\\"=<>&|", max_size=12))
def test_any_text_is_a_path_or_an_error(text: str) -> None:
    try:
        JSONPath(text).find(OBJ)
    except JSONPathError:
        return
