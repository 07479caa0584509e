"""The latency probe itself: it sees both ways in which the loop is held up."""

from __future__ import annotations

import asyncio
import random
import resource
import time

import pytest

from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.held import Held, held, measured


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def test_sees_a_callback_that_computes() -> None:
    async def work() -> None:
        busy(0.15)

    _, (callback, _, gap) = await measured(work())
    assert callback >= 0.15
    assert gap >= 0.15


async def test_what_others_compute_while_the_loop_is_not_run_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the host had the processor of the loop: a thread keeps the lock, and the loop's has never asked for it."""
    usage = resource.getrusage(resource.RUSAGE_THREAD)
    monkeypatch.setattr(resource, "getrusage", lambda who: usage)
    shuffled = _shuffled()

    async def work() -> None:
        await asyncio.to_thread(sorted, shuffled)

    _, (_, _, gap) = await measured(work())
    assert gap < 0.05


async def test_sees_a_thread_that_keeps_the_lock_of_the_interpreter() -> None:
    shuffled = _shuffled()

    def sort() -> float:
        start = time.thread_time()
        sorted(shuffled)
        return time.thread_time() - start

    async def work() -> float:
        return await asyncio.to_thread(sort)

    spent, (callback, _, gap) = await measured(work())
    assert gap >= spent * 0.8
    assert callback < spent / 2


def _shuffled() -> list[float]:
    generator = random.Random(0)
    return [generator.random() for _ in range(700_000)]


async def test_a_thread_that_shares_is_no_stall() -> None:
    async def work() -> None:
        await asyncio.to_thread(busy, 0.3)

    _, (_, _, gap) = await measured(work())
    assert gap < 0.2


async def test_fails_above_its_limit_and_not_below(api: Api) -> None:
    probe = await held(api, "GET", CONFIG_MAPS)
    assert probe.response.status == 200
    probe.check()
    slow = Held(probe.response, 60.0, "a callback", 60.0)
    with pytest.raises(AssertionError, match="held for 60"):
        slow.check()
