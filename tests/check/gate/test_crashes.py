"""Crashes before a write: it never took effect."""

from __future__ import annotations

import pytest

from konverge.check.model import Crash, Place, Plan
from tests.check.gate.test_errors import CREATE, STEPS, UPDATE, config, small, writes
from tests.check.small import run


@pytest.mark.spec("K-02")
@pytest.mark.parametrize("place", [CREATE, UPDATE])
def test_a_crash_before_a_write_comes_before_its_effect(place: Place) -> None:
    crashed = run(small, STEPS, Plan("crash", (Crash(place, "before"),)))
    assert not crashed.missed
    hit = next(exchange for exchange in writes(crashed) if exchange.error)
    assert (hit.verb, hit.status, hit.revisions, hit.incarnation) == (place.verb, 0, (), 1)
    assert next(exchange.verb for exchange in writes(crashed) if exchange.incarnation == 2) == place.verb
    assert config(crashed)["data"] == {"size": "2"}


@pytest.mark.spec("K-11")
def test_a_plan_may_end_before_the_workload_does() -> None:
    crashed = run(small, STEPS, Plan("crash", (Crash(CREATE),), first=1))
    assert [checkpoint.step for checkpoint in crashed.checkpoints] == ["create"]
    assert crashed.steps == STEPS[:1]
