"""Conditions."""

from __future__ import annotations

import asyncio

import pytest

from konverge.objects import Condition
from konverge.runtime import (
    is_true,
    set_condition,
)


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
