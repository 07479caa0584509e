"""The patch that makes our changes of a status on what another writer has made of it."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.objects import ListType, Model
from konverge.objects.model import field
from konverge.runtime.status_merge import changes_on, keys_of
from tests.runtime.test_saving import merge

pytestmark = pytest.mark.spec("R-24")

VALUES = st.sampled_from([0, 1, True, "x"])
FLAT = st.dictionaries(st.sampled_from("abcd"), VALUES)
STATUSES = st.builds(lambda flat, nested: {"m": nested, **flat}, FLAT, st.dictionaries(st.sampled_from("xyz"), VALUES))


def leaves(status: dict[str, Any]) -> dict[tuple[str, ...], tuple[type, Any]]:
    """Path -> value, with its type: in JSON true is not 1."""
    return {
        (name, *path): leaf
        for name, value in status.items()
        for path, leaf in (leaves(value) if isinstance(value, dict) else {(): (type(value), value)}).items()
    }


@given(STATUSES, STATUSES, STATUSES)
def test_each_field_that_we_changed_is_ours_and_every_other_is_theirs(
    before: dict[str, Any], wanted: dict[str, Any], now: dict[str, Any]
) -> None:
    old, ours, theirs = leaves(before), leaves(wanted), leaves(now)
    merged = leaves(merge(now, changes_on(before, wanted, now, {})))
    for path in old.keys() | ours.keys() | theirs.keys():
        changed = old.get(path) != ours.get(path)
        if changed or path in theirs:
            assert merged.get(path) == (ours if changed else theirs).get(path), path
    assert changes_on(before, before, now, {}) == {}


TWICE = [{"type": "A", "status": "True"}, {"type": "A", "status": "False"}]
ONCE = [{"type": "A", "status": "True"}]
OTHER = [{"type": "B", "status": "True"}]


@pytest.mark.parametrize(
    ("before", "wanted", "now"),
    [(ONCE, TWICE, OTHER), (TWICE, ONCE, OTHER), (OTHER, ONCE, TWICE), ([], [*ONCE, "text"], OTHER)],
)
def test_a_list_with_entries_that_cannot_be_told_apart_is_written_as_wanted(
    before: list[Any], wanted: list[Any], now: list[Any]
) -> None:
    changes = changes_on({"l": before}, {"l": wanted}, {"l": now}, {"l": ("type",)})
    assert changes == {"l": wanted}


def test_an_entry_that_another_writer_made_too_has_our_fields_and_keeps_its_others() -> None:
    now = [{"type": "A", "status": "False", "theirs": 1}]
    changes = changes_on({"l": []}, {"l": ONCE}, {"l": now}, {"l": ("type",)})
    assert changes == {"l": [{"type": "A", "status": "True", "theirs": 1}]}


def entry(name: str, value: Any = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "value": value, **more}


A, B, C = entry("a"), entry("b"), entry("c")
A2, B2 = entry("a", 2), entry("b", 2)


@pytest.mark.parametrize(
    ("before", "wanted", "now", "merged"),
    [
        ([A, B], [A, B2], [A2, B, C], [A2, B2, C]),
        ([A, B], [A], [A, B], [A]),
        ([A, B], [A], [A, B2], [A]),
        ([A, B], [A2, B], [A], [A2]),
        ([A], [A2], [], [A2]),
        ([], [A], [B], [A, B]),
        ([A, B], [B, A], [A, B], [B, A]),
        ([A, B], [B, A, C], [A2, B, entry("d")], [B, A2, C, entry("d")]),
        ([entry("a", 1, gone=1)], [A2], [entry("a", 1, gone=1, theirs=1)], [entry("a", 2, theirs=1)]),
        ([A], [], [A, B], [B]),
        ([A, B], [A2, B], [A2, B], None),
    ],
    ids=[
        "ours and theirs",
        "one that we removed",
        "one that we removed and they changed",
        "one that they removed",
        "one that they removed and we changed",
        "one that is new",
        "our order",
        "our order with theirs after it",
        "fields of an entry",
        "the last of ours",
        "they were faster",
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_entries_with_keys_are_merged_one_by_one(
    before: list[Any], wanted: list[Any], now: list[Any], merged: list[Any] | None, nested: bool
) -> None:
    states: list[dict[str, Any]] = [{"l": state} for state in (before, wanted, now)]
    expected: dict[str, Any] = {} if merged is None else {"l": merged}
    if nested:
        states = [{"in": {"a": state}} for state in states]
        expected = {"in": {"a": expected}} if expected else {}
    assert changes_on(*states, {"in.a.l" if nested else "l": ("name",)}) == expected  # type: ignore[call-arg,arg-type]


def test_entries_may_have_several_keys() -> None:
    keys = {"l": ("name", "port")}
    first, second = {"name": "a", "port": 1, "x": 0}, {"name": "a", "port": 2, "x": 0}
    changes = changes_on({"l": [first]}, {"l": [{**first, "x": 1}]}, {"l": [first, second]}, keys)
    assert changes == {"l": [{**first, "x": 1}, second]}
    without = {"name": "a"}
    assert changes_on({}, {"l": [without]}, {"l": [second]}, keys) == {"l": [without]}, "as wanted: it has no port"


@pytest.mark.parametrize("strange", [{"type": "B"}, {"status": "True"}, {"type": 1, "status": "True"}, "text"])
def test_lists_without_declared_keys_are_merged_where_all_entries_are_conditions(strange: Any) -> None:
    ours, theirs = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}
    assert changes_on({}, {"l": [ours]}, {"l": [theirs]}, {}) == {"l": [ours, theirs]}
    assert changes_on({}, {"l": [ours]}, {"l": [theirs]}, {"l": ()}) == {"l": [ours]}, "it is declared atomic"
    assert changes_on({}, {"l": [ours]}, {"l": [strange]}, {}) == {"l": [ours]}
    assert changes_on({}, {"l": [strange]}, {"l": [theirs]}, {}) == {"l": [strange]}
    assert changes_on({"l": [strange]}, {"l": [ours]}, {"l": [theirs]}, {}) == {"l": [ours]}


@pytest.mark.parametrize(
    ("before", "wanted", "now", "changes"),
    [
        ({"a": 1}, {}, {"a": 1}, {"a": None}),
        ({"a": 1}, {}, {}, {}),
        ({"a": 1}, {"a": True}, {"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 2}, {"a": 2}, {}),
        ({"a": 1}, {"a": 1}, {"a": 2}, {}),
        ({"a": 1}, {"a": 1}, {}, {}),
        ({}, {"a": None}, {}, {"a": None}),
        ({}, {"m": {"x": 1}}, {"m": 5}, {"m": {"x": 1}}),
        ({}, {"m": 5}, {"m": {"x": 1}}, {"m": 5}),
        ({"m": 5}, {"m": {"x": 1}}, {"m": {"y": 1}}, {"m": {"x": 1}}),
        ({"m": {"x": 1}}, {"m": {}}, {"m": {"x": 1, "y": 1}}, {"m": {"x": None}}),
        ({"m": {"x": 1}}, {"m": {"x": 2}}, {"m": {"x": 2, "y": 1}}, {}),
        ({"l": 5}, {"l": [1]}, {"l": "x"}, {"l": [1]}),
        ({"l": [1]}, {"l": [2]}, {"l": [3]}, {"l": [2]}),
        ({}, {"l": []}, {}, {"l": []}),
    ],
)
def test_what_is_sent_is_what_is_needed(
    before: dict[str, Any], wanted: dict[str, Any], now: dict[str, Any], changes: dict[str, Any]
) -> None:
    made = changes_on(before, wanted, now, {})
    assert leaves({"": made}) == leaves({"": changes})
    assert made == changes


class Port(Model):
    name: str = ""
    number: int = 0


class Part(Model):
    ports: Annotated[list[Port], ListType("map", "name", "number")] = []
    parts: list[Part] = []
    below: Part | None = None


class Whole(Model):
    atoms: Annotated[list[str], ListType("atomic")] = []
    plain: list[str] = []
    ports: Annotated[list[Port], ListType("map", "name")] | None = None
    first_part: Part = field(default_factory=Part)
    other: Part | None = None


def test_the_keys_of_a_class_are_found_by_path() -> None:
    assert keys_of(Whole) == {
        "atoms": (),
        "ports": ("name",),
        "firstPart.ports": ("name", "number"),
        "other.ports": ("name", "number"),
    }
    assert keys_of(Whole) is keys_of(Whole)
