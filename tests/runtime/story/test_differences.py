"""What a patch asks for, compared with what was known, and how two states differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge.cache.record import Record, receive
from konverge.runtime.story.differences import LONGEST, MAX_FIELDS, between, of_patch
from konverge.runtime.story.model import FieldChange

pytestmark = pytest.mark.spec("R-87")

MERGE, JSON, APPLY = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
BODY = {
    "metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "annotations": {"a/b~c": "old"}},
    "data": {"x": "abc"},
    "list": [{"a": 1}, {"a": 2}],
}


def known() -> Record:
    return receive(json.dumps(BODY).encode())[1]


def asked(content_type: str, patch: Any, before: Record | None) -> list[str]:
    changes, more = of_patch("X", content_type, json.dumps(patch).encode(), before)
    assert more == 0
    return [str(change) for change in changes]


@pytest.mark.parametrize(
    ("content_type", "patch", "shown"),
    [
        (MERGE, {"list": [{"a": 1}, {"a": 3}]}, ["list[1].a 2 → 3"]),
        (MERGE, {"list": [{"a": 1}]}, ['list [{"a":1},{"a":2}] → [{"a":1}]']),
        (MERGE, {"list": None}, ["list removed"]),
        (MERGE, {"list": [{"a": 1}, {"a": 2}]}, []),
        (JSON, [{"op": "replace", "path": "/list/0/a", "value": 5}], ["list.0.a 1 → 5"]),
    ],
)
def test_lists_are_compared_by_place_where_they_are_as_long(content_type: str, patch: Any, shown: list[str]) -> None:
    assert asked(content_type, patch, known()) == shown


@pytest.mark.parametrize(
    ("content_type", "patch", "shown"),
    [
        (MERGE, {"metadata": {"resourceVersion": "9", "uid": "v", "labels": {"l": "1"}}}, ["metadata.labels.l = 1"]),
        (MERGE, {"status": {}}, ["status = {}"]),
        (MERGE, {"new": None}, ["new removed"]),
        (APPLY, {"new": None}, ["new = null"]),
        (APPLY, {"data": {"x": None}}, ["data.x abc → null"]),
        (MERGE, [{"op": "replace", "path": "/data/x", "value": "y"}], [" changed (hidden)"]),
    ],
)
def test_a_merge_patch_removes_by_null_and_an_apply_does_not(content_type: str, patch: Any, shown: list[str]) -> None:
    assert asked(content_type, patch, known()) == shown


def operation(op: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value}


@pytest.mark.parametrize(
    ("patch", "shown"),
    [
        (operation("test", "/data/x", "other"), []),
        ("not an operation", []),
        (operation("replace", "/metadata/annotations/a~1b~0c", "new"), ["metadata.annotations.a/b~c old → new"]),
        (operation("remove", "/data/x", "ignored"), ["data.x removed"]),
        ({"op": "remove", "path": "/list/1"}, ["list.1.a removed"]),
        (operation("add", "/data/x", "new"), ["data.x abc → new"]),
        (operation("add", "/data", {"x": "new"}), ["data.x abc → new"]),
        (operation("replace", "/list/0", {"a": 7}), ["list.0.a 1 → 7"]),
        (operation("add", "/list/0", {"a": 7}), ["list.0.a = 7"]),
        (operation("add", "/list/-", {"a": 7}), ["list.-.a = 7"]),
        (operation("add", "/list/2", {"a": 7}), ["list.2.a = 7"]),
        (operation("replace", "/data/x/0", "y"), ["data.x.0 = y"]),
        (operation("replace", "/new/x", 1), ["new.x = 1"]),
        (operation("replace", "", {**BODY, "data": {"x": "y"}}), ["data.x abc → y"]),
    ],
)
def test_each_operation_of_a_json_patch(patch: Any, shown: list[str]) -> None:
    assert asked(JSON, [patch], known()) == shown


def test_what_was_not_known_is_new() -> None:
    assert asked(MERGE, {"data": {"x": "1", "y": None}}, None) == ["data.x = 1", "data.y removed"]


def test_a_body_that_is_no_json_is_a_change_without_fields() -> None:
    assert of_patch("X", APPLY, b"\xa1\xff", known()) == ([FieldChange(path="", hidden=True)], 0)
    assert of_patch("X", APPLY, b"\xa1\xff", None) == ([], 0)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ({}, {"a": {"b": {"c": 1}}}, ["a.b.c = 1"]),
        ({"a": {"b": {"c": 1}}}, {}, ["a.b.c removed"]),
        ({}, {"a": {}}, ["a = {}"]),
        ({"a": {}}, {}, ["a removed"]),
        ({"a": 5}, {"a": {"b": 1}}, ['a 5 → {"b":1}']),
        ({"a": {"b": 1}}, {"a": 5}, ['a {"b":1} → 5']),
        ({}, {"a": [1]}, ["a = [1]"]),
        ({"a": [1]}, {}, ["a removed"]),
        ({"a": [1]}, {"a": None}, ["a [1] → null"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, ["a[1].b 2 → 3"]),
        ({"a": [1]}, {"a": [1, 2]}, ["a [1] → [1,2]"]),
        ({"a": [1, 2], "b": 1}, {"a": [1, 2], "b": 1}, []),
        (
            {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a"}, "b": 1},
            {"metadata": {"name": "a", "generation": 2, "uid": "u", "managedFields": [{}]}, "b": 2},
            ["b 1 → 2"],
        ),
    ],
)
def test_states_differ_down_to_single_values(old: Any, new: Any, shown: list[str]) -> None:
    changes, more = between("X", old, new)
    assert ([str(change) for change in changes], more) == (shown, 0)


def test_of_many_fields_the_rest_is_counted() -> None:
    fields = {f"f{number:02}": number for number in range(MAX_FIELDS + 3)}
    changes, more = between("X", {}, fields)
    assert [change.path for change in changes] == [f"f{number:02}" for number in range(MAX_FIELDS)]
    assert more == 3
    assert between("X", {}, dict(list(fields.items())[:MAX_FIELDS]))[1] == 0


def test_a_long_value_is_cut() -> None:
    longest, longer = "x" * (LONGEST - 2), "y" * (LONGEST - 1)
    changes, _ = between("X", {"a": longest}, {"a": longer})
    assert changes == [FieldChange(path="a", old=longest, new='"' + longer + "…")]
