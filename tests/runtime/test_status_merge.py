"""The patch that makes our changes of a status on what another writer has made of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.runtime.status_merge import changes_on
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
