"""The patch of a mutating function: only what was changed, on the object as it was sent."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.apiserver.merge import json_patch as applying
from konverge.runtime.webhooks.json_patch import changes, merged, operations

pytestmark = pytest.mark.spec("R-66")

values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "name", "x/y", "~"]), inner),
    max_leaves=12,
)


def applied(document: Any, patch: list[dict[str, Any]]) -> Any:
    return applying.apply_in_admission({"root": copy.deepcopy(document)}, _below_root(patch))["root"]


def _below_root(patch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**operation, "path": f"/root{operation['path']}"} for operation in patch]


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right) if not isinstance(left, dict | list) else _deep(left, right)


def _deep(left: Any, right: Any) -> bool:
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[name], right[name]) for name in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return False


@given(values, values)
def test_the_operations_lead_from_one_value_to_the_other(old: Any, new: Any) -> None:
    assert same(applied(old, operations(old, new)), new)


@given(values)
def test_nothing_changed_is_no_operation(value: Any) -> None:
    assert operations(value, copy.deepcopy(value)) == []
    assert changes({"unknown": 1}, value, copy.deepcopy(value)) == []


def _without_unknown(value: Any) -> Any:
    """What a class shows of an object: everything but the fields that it does not know."""
    if isinstance(value, dict):
        return {name: _without_unknown(inner) for name, inner in value.items() if not name.startswith("u-")}
    return [_without_unknown(inner) for inner in value] if isinstance(value, list) else value


sent = st.recursive(
    st.integers(0, 3) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b", "name", "u-1", "u-2"]), inner)
    ),
    max_leaves=12,
)


@given(sent, values)
def test_the_class_sees_exactly_what_the_function_made(sent: Any, after: Any) -> None:
    before = _without_unknown(sent)
    result = applied(sent, changes(sent, before, after))
    assert same(_without_unknown(result), after)
    assert same(result, merged(sent, before, after))


def test_unknown_fields_stay_also_in_lists() -> None:
    sent = {"containers": [{"name": "a", "image": "1", "new": 1}, {"name": "b", "image": "2", "new": 2}], "new": True}
    before = {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]}
    after = {
        "containers": [{"name": "proxy", "image": "3"}, {"name": "a", "image": "1"}, {"name": "b", "image": "9"}],
        "labels": {"x/y": "1"},
    }
    result = applied(sent, changes(sent, before, after))
    assert result == {
        "containers": [
            {"name": "proxy", "image": "3"},
            {"name": "a", "image": "1", "new": 1},
            {"name": "b", "image": "9", "new": 2},
        ],
        "new": True,
        "labels": {"x/y": "1"},
    }


def test_the_patch_is_small() -> None:
    before = {"spec": {"replicas": 1, "tags": ["a", "b", "c"]}}
    after = {"spec": {"replicas": 3, "tags": ["a", "c"]}}
    assert changes(before, before, after) == [
        {"op": "replace", "path": "/spec/replicas", "value": 3},
        {"op": "remove", "path": "/spec/tags/1"},
    ]
    assert changes({"a": {}}, {"a": {}}, {"a": {"x/y~z": 1}}) == [{"op": "add", "path": "/a/x~1y~0z", "value": 1}]


def test_true_is_not_one() -> None:
    assert changes({"a": 1}, {"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]


def test_a_parent_that_was_not_sent_is_added_as_a_whole() -> None:
    assert changes({"metadata": {}}, {"metadata": {}}, {"metadata": {"labels": {"a": "b"}}}) == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    ]


def test_a_default_that_the_class_filled_in_is_not_written() -> None:
    assert changes({"x": 1}, {"x": 1, "tags": []}, {"x": 2, "tags": []}) == [
        {"op": "replace", "path": "/x", "value": 2},
    ]


def test_what_the_function_removed_is_removed_and_what_the_class_does_not_know_stays() -> None:
    sent = {"a": {"b": 1, "unknown": 2}, "c": 3}
    assert changes(sent, {"a": {"b": 1}, "c": 3}, {"a": {}}) == [
        {"op": "remove", "path": "/c"},
        {"op": "remove", "path": "/a/b"},
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([{"x": 1, "y": 2}, {"x": 3}], [{"x": 3}, {"y": 2, "x": 1}], id="moved, in another order"),
        pytest.param([{"name": "a"}, {"x": 3}], [{"x": 3}, {"name": "a", "z": 1}], id="moved and changed, by name"),
        pytest.param([{"port": 80}, {"x": 3}], [{"x": 3}, {"port": 80, "z": 1}], id="by port"),
        pytest.param([{"x": 1}, {"x": 3}], [{"x": 2}, {"x": 3}], id="changed at its place"),
    ],
)
def test_an_entry_of_a_list_is_recognised(before: list[Any], after: list[Any]) -> None:
    sent = [{**entry, "unknown": index} for index, entry in enumerate(before)]
    kept = [entry["unknown"] for entry in merged(sent, before, after)]
    assert sorted(kept) == [0, 1]
    assert kept == ([0, 1] if after[1] == before[1] else [1, 0])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([{"name": "a"}], [{"name": "b"}], id="another name"),
        pytest.param([{"x": 1}, {"x": 2}], [{"x": 3}], id="another length"),
        pytest.param([{"x": 1}], [{"x": 3}, {"x": 4}], id="more"),
        pytest.param([1], [{"x": 1}], id="no map"),
    ],
)
def test_an_entry_that_is_another_one_begins_anew(before: list[Any], after: list[Any]) -> None:
    sent = [{**entry, "unknown": 1} if isinstance(entry, dict) else entry for entry in before]
    assert merged(sent, before, after) == after


def test_equal_entries_are_each_used_once() -> None:
    before = [{"x": 1}, {"x": 1}, {"x": 2}]
    sent = [{**entry, "unknown": index} for index, entry in enumerate(before)]
    assert merged(sent, before, [{"x": 2}, {"x": 1}, {"x": 1}]) == [
        {"x": 2, "unknown": 2},
        {"x": 1, "unknown": 1},
        {"x": 1, "unknown": 0},
    ]


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ("abcd", "xcd", [("replace", "/0", "x"), ("remove", "/1")]),
        ("abcd", "abd", [("remove", "/2")]),
        ("abc", "abxyc", [("add", "/2", "x"), ("add", "/3", "y")]),
        ("aa", "aaa", [("add", "/2", "a")]),
        ("abc", "ax", [("replace", "/1", "x"), ("remove", "/2")]),
        ("abc", "", [("remove", "/0"), ("remove", "/0"), ("remove", "/0")]),
        ("", "ab", [("add", "/0", "a"), ("add", "/1", "b")]),
    ],
)
def test_lists_are_changed_where_they_differ(old: str, new: str, patch: list[tuple[str, ...]]) -> None:
    expected = [dict(zip(("op", "path", "value"), each, strict=False)) for each in patch]
    assert operations(list(old), list(new)) == expected


@pytest.mark.parametrize("before", [None, "x", {"a": 1}, []])
def test_a_list_that_the_class_reads_as_something_else_is_replaced_as_a_whole(before: Any) -> None:
    assert merged([{"unknown": 1}], before, [{"a": 2}]) == [{"a": 2}]
