"""How silence of a node is noticed, for any heartbeats and any clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.kube.nodelifecycle import controller

pytestmark = [pytest.mark.spec("R-40")]


gaps = st.lists(st.floats(0.1, 120), min_size=1, max_size=20)


skews = st.one_of(st.floats(-10, 10), st.floats(-1000, 1000))


GRACE = 50.0


def run_checks(beats: list[float], skew: float) -> list[tuple[float, bool]]:
    """When a node with these heartbeats is checked, and whether it counts as silent then."""
    checks: list[tuple[float, bool]] = []
    known: controller.Health | None = None
    at = 0.0
    while at < beats[-1] + 3 * GRACE:
        seen = max(time for time in beats if time <= at)
        known = controller.observe(known, "u", (str(seen), ""), seen + skew, at)
        checks.append((at, controller.is_silent(known, GRACE)))
        at += controller.next_check(known, GRACE)
    return checks


@given(gaps, skews)
def test_silence_is_noticed_in_time_whatever_the_clock_of_the_node(pauses: list[float], skew: float) -> None:
    beats = [0.0]
    for pause in pauses:
        beats.append(beats[-1] + pause)
    results = run_checks(beats, skew)
    for at, silent in results:
        if silent:
            seen = max(time for time in beats if time <= at)
            assert at - seen >= GRACE - controller.POLL - 0.01
    assert results[-1][1]
    assert (
        min(at for at, silent in results if silent and at >= beats[-1]) <= beats[-1] + 2 * GRACE + 2 * controller.POLL
    )


def test_a_node_that_reports_is_seldom_checked() -> None:
    beats = [0.3 + 10.0 * number for number in range(361)]
    results = run_checks([0.0, *beats], 0.0)
    assert not any(silent for at, silent in results if at < beats[-1] + GRACE - 1)
    assert len([at for at, _ in results if at <= 3600]) < 120
