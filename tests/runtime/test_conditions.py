"""Conditions."""

from __future__ import annotations

import asyncio

import pytest

from konverge.objects import Condition
from konverge.runtime import (
    is_true,
    set_condition,
)
from konverge.runtime.conditions import find_condition


@pytest.mark.virtual
@pytest.mark.spec("R-24")
async def test_the_transition_time_changes_with_the_status_only() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, "Ready", False, "Waiting", "2 of 3", observed_generation=1)
    first = conditions[0].last_transition_time
    await asyncio.sleep(60)
    assert set_condition(conditions, "Ready", False, "Waiting", "1 of 3", observed_generation=2)
    assert (conditions[0].last_transition_time, conditions[0].observed_generation) == (first, 2)
    assert not set_condition(conditions, "Ready", False, "Waiting", "1 of 3", observed_generation=2)
    assert set_condition(conditions, "Ready", True, "AllReady")
    assert conditions[0].last_transition_time > first
    assert is_true(conditions, "Ready")
    assert not is_true(conditions, "Other")


@pytest.mark.virtual
@pytest.mark.spec("R-24")
async def test_every_part_of_a_condition_is_written_and_a_change_of_any_is_reported() -> None:
    conditions = [Condition(type="Other", status="True", reason="R", message="", last_transition_time="then")]
    assert set_condition(conditions, "Ready", "Unknown", "Waiting", "soon", observed_generation=3)
    ready = find_condition(conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason, ready.message) == ("Unknown", "Waiting", "soon")
    assert ready.observed_generation == 3
    assert ready.last_transition_time.endswith("Z")
    for change in ({"status": "False"}, {"reason": "Asleep"}, {"message": "later"}, {"observed_generation": 4}):
        given = {"status": "Unknown", "reason": "Waiting", "message": "soon", "observed_generation": 3} | change
        assert set_condition(conditions, "Ready", **given)  # type: ignore[arg-type]
        assert not set_condition(conditions, "Ready", **given)  # type: ignore[arg-type]
        set_condition(conditions, "Ready", "Unknown", "Waiting", "soon", observed_generation=3)
    assert not set_condition(conditions, "Ready", "Unknown", "Waiting", "soon"), "the generation stays as it was"
    assert ready.observed_generation == 3
    assert conditions[0].last_transition_time == "then"
    assert find_condition(conditions, "Absent") is None


def test_only_a_true_condition_is_true() -> None:
    for status in ("True", "False", "Unknown"):
        given = [Condition(type="Ready", status=status, reason="R", message="", last_transition_time="then")]
        assert is_true(given, "Ready") is (status == "True")
    assert not is_true([], "Ready")
