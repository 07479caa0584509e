"""JSON patch and JSON merge patch."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.apiserver.merge import json_patch
from konverge.apiserver.merge.json_patch import PatchFailed
from tests.apiserver.crd.schema.test_coercion import VALUES
from tests.apiserver.merge.kinds import CONFIG_MAP, STACK

DOCUMENT: Any = {"a": {"b": [1, 2, 3]}, "c": None, "d/e": {"f~g": True}}


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/x", "value": 1}, {**DOCUMENT, "x": 1}),
        ({"op": "add", "path": "/a/b/1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/a/b/3", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/a/b/-1", "value": 9}, {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}),
        ({"op": "add", "path": "/x"}, {**DOCUMENT, "x": None}),
        ({"op": "remove", "path": "/a/b/-1"}, {**DOCUMENT, "a": {"b": [1, 2]}}),
        ({"op": "remove", "path": "/c"}, {"a": DOCUMENT["a"], "d/e": DOCUMENT["d/e"]}),
        ({"op": "replace", "path": "/new", "value": 1}, {**DOCUMENT, "new": 1}),
        ({"op": "replace", "path": "/d~1e/f~0g", "value": 1}, {**DOCUMENT, "d/e": {"f~g": 1}}),
        ({"op": "replace", "path": "", "value": {"z": 1}}, {"z": 1}),
        ({"op": "move", "from": "/a/b/0", "path": "/a/b/2"}, {**DOCUMENT, "a": {"b": [2, 3, 1]}}),
        ({"op": "copy", "from": "/absent", "path": "/x"}, {**DOCUMENT, "x": None}),
        ({"op": "copy", "from": "/a/b", "path": "/x"}, {**DOCUMENT, "x": [1, 2, 3]}),
        ({"op": "test", "path": "/a", "value": {"b": [1, 2, 3]}}, DOCUMENT),
        ({"op": "test", "path": "/absent"}, DOCUMENT),
        ({"op": "test", "path": "/absent", "value": None}, DOCUMENT),
    ],
)
def test_a_json_patch_operation_changes_the_document(operation: Any, result: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert json_patch.apply(DOCUMENT, [operation]) == result
    assert before == DOCUMENT


@pytest.mark.spec("S-04")
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "sing", "path": "/a"},
        {"path": "/a"},
        {"op": "add", "value": 1},
        {"op": "add", "path": 5, "value": 1},
        {"op": "add", "path": "nope", "value": 1},
        {"op": "add", "path": "/no/where", "value": 1},
        {"op": "add", "path": "/c/x", "value": 1},
        {"op": "add", "path": "/a/b/9", "value": 1},
        {"op": "add", "path": "/a/b/x", "value": 1},
        {"op": "remove", "path": "/absent"},
        {"op": "remove", "path": "/a/b/3"},
        {"op": "replace", "path": "/a/b/3", "value": 1},
        {"op": "replace", "path": "", "value": 1},
        {"op": "move", "path": "/x"},
        {"op": "move", "from": "/absent", "path": "/x"},
        {"op": "test", "path": "/a/b/0", "value": "1"},
        {"op": "test", "path": "/a/b/0", "value": True},
        {"op": "test", "path": "/a", "value": None},
        "text",
    ],
)
def test_an_impossible_json_patch_operation_fails(operation: Any) -> None:
    with pytest.raises(PatchFailed):
        json_patch.apply(DOCUMENT, [operation])


def whole(value: Any) -> bool:
    """Without nulls in its objects."""
    if isinstance(value, dict):
        return all(member is not None and whole(member) for member in value.values())
    return not isinstance(value, list) or all(map(whole, value))


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["a", "b"])),
    # Nulls inside of lists are kept or not, depending on what was there before.
    lambda inner: st.one_of(
        st.lists(inner.filter(whole), max_size=2), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.dictionaries(st.sampled_from(["a", "b", "c"]), values, max_size=3)


@given(documents, documents)
def test_a_merge_patch_applied_twice_is_the_same_as_once(document: Any, patch: Any) -> None:
    once = json_patch.apply_merge(document, patch)
    assert json_patch.apply_merge(once, patch) == once


@given(documents, documents.filter(whole))
def test_a_document_as_a_patch_of_nothing_is_itself(document: Any, patch: Any) -> None:
    assert json_patch.apply_merge({}, patch) == patch
    assert json_patch.apply_merge(document, {}) == document


@given(documents, documents)
def test_a_merge_patch_leaves_other_members_alone(document: Any, patch: Any) -> None:
    result = json_patch.apply_merge(document, patch)
    assert {key: result.get(key) for key in document if key not in patch} == {
        key: document[key] for key in document if key not in patch
    }
    assert not any(result.get(key) for key, value in patch.items() if value is None)


@given(documents, st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=2), values)
def test_an_added_value_passes_a_test_and_can_be_removed(document: Any, path: list[str], value: Any) -> None:
    pointer = "/" + path[0]
    added = json_patch.apply(document, [{"op": "add", "path": pointer, "value": value}])
    assert json_patch.apply(added, [{"op": "test", "path": pointer, "value": value}]) == added
    removed = json_patch.apply(added, [{"op": "remove", "path": pointer}])
    assert path[0] not in removed


def test_the_text_of_a_patched_object() -> None:
    obj = {
        "metadata": {"name": "a", "labels": {"b": "1", "a": "<"}, "uid": "u"},
        "data": {"x": "1"},
        "kind": "ConfigMap",
    }
    untouched = '"metadata":{"name":"a","uid":"u","labels":{"a":"\\u003c","b":"1"}}'
    opened = json_patch.opened_by_operations([{"op": "add", "path": "/data/x"}])
    assert json_patch.patched_text(CONFIG_MAP, obj, opened) == '{"data":{"x":"1"},"kind":"ConfigMap",' + untouched + "}"
    opened = json_patch.opened_by_merge(obj, {"metadata": {"uid": "u"}})
    sorted_metadata = '"metadata":{"labels":{"a":"\\u003c","b":"1"},"name":"a","uid":"u"}'
    assert (
        json_patch.patched_text(CONFIG_MAP, obj, opened)
        == '{"data":{"x":"1"},"kind":"ConfigMap",' + sorted_metadata + "}"
    )
    assert (
        json_patch.patched_text(STACK, {"spec": {"b": [1.5], "a": None}, "kind": "S"}, {})
        == '{"kind":"S","spec":{"a":null,"b":[1.5]}}'
    )


@pytest.mark.spec("S-08")
@settings(deadline=None)
@given(VALUES, VALUES)
def test_two_values_are_the_same_if_their_json_is(value: Any, other: Any) -> None:
    assert json_patch.same(value, copy.deepcopy(value))
    assert json_patch.same(value, other) == (json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True))
