"""The lag of the event loop, pauses of the garbage collector, and the age of waiting keys."""

from __future__ import annotations

import asyncio
import gc

import pytest

from konverge.observe.exposition import render
from konverge.observe.metrics import ControllerNumbers, Numbers
from konverge.observe.process import PERIOD, ProcessNumbers, measuring
from konverge.workqueue import WorkQueue


class Loop:
    """A clock, and the timer that was asked for last."""

    def __init__(self) -> None:
        self.now = 100.0

    def time(self) -> float:
        return self.now

    def call_at(self, due: float, callback: object, *arguments: object) -> None:
        self.due = due


@pytest.mark.spec("R-93")
def test_lag_is_how_much_later_than_asked_a_callback_runs() -> None:
    process, loop = ProcessNumbers(), Loop()
    process._schedule(loop)  # type: ignore[arg-type]
    assert loop.due == 100.0 + PERIOD
    loop.now = loop.due + 0.3
    process._measure(loop)  # type: ignore[arg-type]
    assert process.lag.count == 1
    assert process.lag.total == pytest.approx(0.3)
    assert loop.due == loop.now + PERIOD  # and again


@pytest.mark.spec("R-93")
async def test_pauses_are_counted_while_they_are_measured_and_no_longer() -> None:
    numbers, before = Numbers(), list(gc.callbacks)
    with measuring(numbers):
        gc.collect()
        assert numbers.process.pauses[2].count >= 1
        text = render(numbers).decode()
        assert 'python_gc_pause_seconds_bucket{generation="2",le="+Inf"}' in text
        assert "event_loop_lag_seconds_count 0.0" in text
        assert "process_resident_memory_bytes" in text
    assert gc.callbacks == before


@pytest.mark.spec("R-93")
@pytest.mark.virtual
async def test_the_oldest_waiting_key_says_how_long_it_waits() -> None:
    queue: WorkQueue[str] = WorkQueue()
    controller = ControllerNumbers("maps", oldest=lambda: queue.oldest)
    assert queue.oldest == 0
    queue.add("a")
    await asyncio.sleep(5)
    queue.add("b")
    await asyncio.sleep(2)
    assert queue.oldest == pytest.approx(7)
    line = 'workqueue_oldest_key_age_seconds{controller="maps",name="maps"} 7.0'
    assert line in render(Numbers(controllers=[controller])).decode()
    item = await queue.get()
    assert queue.oldest == pytest.approx(2)  # one that is in work does not wait
    queue.done(item.key)
