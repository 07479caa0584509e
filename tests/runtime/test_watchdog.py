"""One timer for the time limits of all reconciles."""

from __future__ import annotations

import asyncio

import pytest

from konverge.runtime.watchdog import Watchdog

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-05", "R-20")]


def now() -> float:
    return asyncio.get_running_loop().time()


class Work:
    """Tasks under one watchdog, and when each ended by which outcome."""

    def __init__(self, limit: float = 10) -> None:
        self.watchdog = Watchdog(limit)
        self.outcomes: dict[str, tuple[str, float]] = {}

    async def __call__(self, name: str, delay: float, seconds: float) -> None:
        await asyncio.sleep(delay)
        task = asyncio.current_task()
        self.watchdog.begin(task, now())
        try:
            await asyncio.sleep(seconds)
            self.outcomes[name] = ("done", now())
        except asyncio.CancelledError:
            self.outcomes[name] = ("overdue" if self.watchdog.expired(task) else "cancelled", now())
        finally:
            self.watchdog.end(task)
        assert task is not None
        assert task.cancelling() == (self.outcomes[name][0] == "cancelled")


async def test_every_task_has_its_full_time_and_no_more() -> None:
    work = Work()
    plans = {"quick": (0, 1), "first": (0, 60), "just": (3, 9.5), "second": (4, 60), "third": (4, 60), "late": (30, 60)}
    await asyncio.gather(*(work(name, *plan) for name, plan in plans.items()))
    assert work.outcomes == {
        "quick": ("done", 1),
        "first": ("overdue", 10),
        "just": ("done", 12.5),
        "second": ("overdue", 14),
        "third": ("overdue", 14),
        "late": ("overdue", 40),
    }


async def test_a_task_that_is_cancelled_by_another_did_not_expire() -> None:
    work = Work()
    task = asyncio.create_task(work("a", 0, 60))
    asyncio.get_running_loop().call_later(5, task.cancel)
    await task
    assert work.outcomes == {"a": ("cancelled", 5)}


async def test_a_task_that_is_cancelled_by_another_as_well_stays_cancelled() -> None:
    work = Work()
    task = asyncio.create_task(work("a", 0, 60))
    asyncio.get_running_loop().call_later(10, task.cancel)
    await task
    assert work.outcomes == {"a": ("cancelled", 10)}


async def test_after_an_ignored_cancellation_the_next_reconcile_has_its_full_time() -> None:
    watchdog, task = Watchdog(10), asyncio.current_task()
    watchdog.begin(task, now())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(25)  # it goes on, and is not cancelled again
    assert now() == 35
    watchdog.end(task)
    assert task is not None
    assert task.cancelling() == 0
    watchdog.begin(task, now())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(60)
    assert now() == 45
    assert watchdog.expired(task)
    assert not watchdog.expired(task)
    watchdog.end(task)


async def test_after_the_end_nothing_is_cancelled_until_something_begins() -> None:
    watchdog, task = Watchdog(10), asyncio.current_task()
    watchdog.stop()
    watchdog.begin(task, now())
    watchdog.stop()
    await asyncio.sleep(60)
    watchdog.end(task)
    watchdog.begin(task, now())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(60)
    assert now() == 70
    watchdog.end(task)


async def test_a_reconcile_outside_of_any_task_has_no_limit() -> None:
    watchdog = Watchdog(10)
    watchdog.begin(None, now())
    await asyncio.sleep(15)
    assert not watchdog.expired(None)
    watchdog.end(None)
    watchdog.stop()


async def test_a_task_that_waits_for_its_next_reconcile_is_left_alone() -> None:
    work = Work()
    task = asyncio.create_task(work("a", 0, 1))
    await task

    async def worker() -> None:
        own = asyncio.current_task()
        work.watchdog.begin(own, now())
        await asyncio.sleep(1)
        work.watchdog.end(own)
        await asyncio.sleep(60)

    await worker()
    assert now() == 62


async def test_a_task_that_ignores_its_cancellation_is_cancelled_once() -> None:
    work = Work()

    async def stubborn() -> int:
        own = asyncio.current_task()
        assert own is not None
        work.watchdog.begin(own, now())
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)
        times = own.cancelling()
        work.watchdog.end(own)
        return times

    task = asyncio.create_task(stubborn())
    await asyncio.gather(*(work(str(number), 5 * number, 60) for number in range(5)))
    assert await task == 1
    assert {outcome for outcome, _ in work.outcomes.values()} == {"overdue"}


async def test_there_is_one_timer_however_many_reconciles_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    call_at, times = loop.call_at, []

    def counted(when: float, *args: object, **options: object) -> asyncio.TimerHandle:
        times.append(when)
        return call_at(when, *args, **options)  # type: ignore[arg-type]

    watchdog = Watchdog(10)
    monkeypatch.setattr(loop, "call_at", counted)
    for _ in range(100):
        watchdog.begin(None, now())
        watchdog.end(None)
    monkeypatch.undo()
    watchdog.stop()
    assert times == [10]


async def test_only_a_task_that_is_at_a_reconcile_is_cancelled_and_for_the_first_reason() -> None:
    watchdog = Watchdog(10)
    task = asyncio.create_task(asyncio.sleep(1, "slept"))
    watchdog.cancel(task, "it is at none")
    assert await task == "slept"
    work = Work()
    worker = asyncio.create_task(work("a", 0, 60))
    await asyncio.sleep(1)
    work.watchdog.cancel(worker, "first")
    work.watchdog.cancel(worker, "second")
    assert worker.cancelling() == 1
    await worker
    assert work.outcomes == {"a": ("overdue", 2)}
