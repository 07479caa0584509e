"""Defaults are checked against the part of their schema that says something of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.crd.definition.default_validation import _needed
from konverge.apiserver.crd.schema.correlation import UNKNOWN
from konverge.apiserver.crd.schema.value_errors import Issue
from konverge.apiserver.crd.schema.values import compile_check

NAMES = st.sampled_from("abcd")
LEAVES = st.sampled_from([{"type": "integer", "minimum": 3}, {"type": "string", "maxLength": 1}])


def objects(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """With named members, with others, or with both (which no structural schema may have, and a check can tell)."""
    return st.fixed_dictionaries(
        {"type": st.just("object")},
        optional={
            "properties": st.dictionaries(NAMES, schemas, max_size=3),
            "additionalProperties": st.just(False) | schemas,
            "required": st.lists(NAMES, unique=True),
            "minProperties": st.integers(0, 2),
        },
    )


SCHEMAS = st.recursive(
    LEAVES, lambda below: objects(below) | st.fixed_dictionaries({"type": st.just("array"), "items": below})
)
VALUES = st.recursive(
    st.integers(0, 5) | st.text("xy", max_size=2),
    lambda below: st.dictionaries(NAMES, below, max_size=3) | st.lists(below, max_size=2),
)


def issues(schema: dict[str, Any], value: Any) -> list[Issue]:
    found: list[Issue] = []
    compile_check(schema)(value, "", found, UNKNOWN)
    return found


@given(SCHEMAS, VALUES)
def test_the_rest_of_the_schema_would_say_nothing(schema: dict[str, Any], value: Any) -> None:
    assert issues(dict(_needed(schema, value)), value) == issues(schema, value)


def test_members_that_the_value_does_not_have_are_left_out() -> None:
    inner = {"type": "object", "properties": {"c": {"type": "string"}, "d": {"type": "string"}}}
    schema = {"type": "object", "properties": {"a": inner, "b": inner}}
    part = {"type": "object", "properties": {"c": {"type": "string"}}}
    assert _needed(schema, {"a": {"c": "x"}}) == {"type": "object", "properties": {"a": part}}
