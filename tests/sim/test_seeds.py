"""The fault suite: the story under the faults of many seeds. `make seeds` runs a thousand, the fast suite a few."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Iterator

import pytest

from konverge.sim.faults import Plan
from konverge.sim.scenario import Outcome, report, run_seed, shortest

SEEDS = int(os.environ.get("KONVERGE_SEEDS", "12"))
AT_ONCE = 4
"""Seeds in one test: few enough that the tests spread well over the machine's cores."""


@pytest.fixture
def unheard() -> Iterator[None]:
    """A cluster where things go wrong has much to say; what counts is how it ends.

    And each of them makes more objects than it leaves: looking for garbage seldom saves a tenth of the time.
    """
    logging.disable(logging.CRITICAL)
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    yield
    gc.set_threshold(*usual)
    logging.disable(logging.NOTSET)


@pytest.mark.limit(600)
@pytest.mark.spec("S-20")
@pytest.mark.usefixtures("unheard")
@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_the_story_is_survived_with_the_faults_of_each_seed(first: int) -> None:
    for seed in range(first, min(first + AT_ONCE, SEEDS)):
        outcome = run_seed(seed)
        assert outcome.fine, report(outcome, shortest(outcome))


def test_a_failing_seed_is_reported_with_what_it_takes_to_see_it_again() -> None:
    whole = Outcome(7, Plan.read("409@1 cut(2)@5 500@7"), "a pod is missing")
    short = Outcome(7, Plan.read("cut(2)@5"), "a pod is missing", ["cut(2)@5 GET /api/v1/pods"])
    reported = report(whole, short)
    assert "seed 7 failed: a pod is missing" in reported
    assert "with 1 of 3 faults" in reported
    assert "  cut(2)@5 GET /api/v1/pods" in reported
    assert "konverge sim --seed 7\n" in reported
    assert 'konverge sim --seed 7 --plan "cut(2)@5" --logs' in reported
