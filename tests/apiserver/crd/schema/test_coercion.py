"""Pruning, nulls and defaults, on schemas of any shape."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.coercion import apply_defaults, drop_nulls, prune

NAMES = st.sampled_from("abcd")
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.text("xy", max_size=2)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12
)
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "default": "x"},
        {"type": "integer", "default": 0, "nullable": True},
        {"type": "boolean"},
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "default": {}, "properties": {"a": {"type": "integer", "default": 1}}},
    ]
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.builds(lambda props: {"type": "object", "properties": props}, st.dictionaries(NAMES, inner, max_size=3))
        | st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner)
    )


SCHEMAS = st.recursive(LEAVES, _nested, max_leaves=8)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
ROOTS = st.builds(lambda props: {"type": "object", "properties": props}, st.dictionaries(NAMES, SCHEMAS, max_size=4))


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(ROOTS, OBJECTS)
def test_pruning_and_defaulting_twice_is_the_same_as_once(schema: Any, obj: Any) -> None:
    root = structural.build(schema)
    prune(obj, root, root=True)
    drop_nulls(obj, root)
    apply_defaults(obj, root)
    once = copy.deepcopy(obj)
    assert prune(obj, root, root=True) == []
    drop_nulls(obj, root)
    apply_defaults(obj, root)
    assert obj == once


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(ROOTS, OBJECTS)
def test_pruning_removes_and_never_changes(schema: Any, obj: Any) -> None:
    before = copy.deepcopy(obj)
    gone = prune(obj, structural.build(schema), root=True)
    assert (obj == before) == (not gone)
    assert _within(obj, before)


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(ROOTS, OBJECTS)
def test_defaults_fill_in_and_never_remove(schema: Any, obj: Any) -> None:
    before = copy.deepcopy(obj)
    apply_defaults(obj, structural.build(schema))
    assert _within(before, obj)


def _within(less: Any, more: Any) -> bool:
    if less is None:  # a default takes its place where the schema does not allow it
        return True
    if isinstance(less, dict) and isinstance(more, dict):
        return all(key in more and _within(value, more[key]) for key, value in less.items())
    if isinstance(less, list) and isinstance(more, list):
        return len(less) == len(more) and all(_within(a, b) for a, b in zip(less, more, strict=True))
    return type(less) is type(more) and less == more
