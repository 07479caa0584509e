"""Events are counted, combined and limited."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.observe.correlate import BURST, COMBINED, SIMILAR, About, Correlator

pytestmark = pytest.mark.spec("R-30")


ABOUT = About("v1", "Pod", "shop", "web", "u-1")


def test_a_repeated_event_is_counted() -> None:
    correlator = Correlator()
    counts = [correlator.correlate(ABOUT, "Normal", "Pulled", "done", now) for now in (1.0, 2.0, 3.0)]
    assert [(event.count, event.first, event.last) for event in counts if event] == [(3, 1.0, 3.0)] * 3


def test_many_similar_events_are_combined() -> None:
    correlator = Correlator()
    events = [correlator.correlate(ABOUT, "Warning", "Failed", f"attempt {n}", float(n)) for n in range(SIMILAR + 5)]
    texts = [event.message for event in events if event]
    assert texts[: SIMILAR - 1] == [f"attempt {n}" for n in range(SIMILAR - 1)]
    assert all(text.startswith(COMBINED) for text in texts[SIMILAR - 1 :])
    last = events[-1]
    assert last is not None
    assert (last.message, last.count) == (COMBINED + f"attempt {SIMILAR + 4}", 6)


@given(st.lists(st.floats(0, 50), min_size=1, max_size=200))
def test_a_flood_of_events_about_one_object_is_limited(gaps: list[float]) -> None:
    correlator = Correlator()
    now, written = 0.0, []
    for gap in gaps:
        now += gap
        if correlator.correlate(ABOUT, "Normal", "Tick", "tick", now):
            written.append(now)
    assert len(written) <= BURST + now / 300 + 1


def test_each_object_has_a_budget_of_events_of_its_own() -> None:
    correlator = Correlator()
    for _ in range(BURST + 10):
        correlator.correlate(ABOUT, "Normal", "Tick", "tick", 0.0)
    other = About("v1", "Pod", "shop", "db", "u-2")
    assert correlator.correlate(ABOUT, "Normal", "Tick", "tick", 0.0) is None
    assert correlator.correlate(other, "Normal", "Tick", "tick", 0.0) is not None
