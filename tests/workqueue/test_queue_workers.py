"""What a worker gets: priorities, reasons and times of keys; pausing, idle workers, and what the queue reports."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.workqueue import Backoff, Item, RateLimiter, ShutDown, TokenBucket, WorkQueue
from konverge.workqueue.queue import MAX_REASONS

pytestmark = pytest.mark.virtual


class Metrics:
    """Everything that the queue reports, in order."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, float] | tuple[str, float, int] | tuple[str]] = []

    def added(self, depth: int) -> None:
        self.reports.append(("added", depth))

    def handed_out(self, waited: float, depth: int) -> None:
        self.reports.append(("handed out", waited, depth))

    def finished(self, worked: float) -> None:
        self.reports.append(("finished", worked))

    def retried(self) -> None:
        self.reports.append(("retried",))


def now() -> float:
    return asyncio.get_running_loop().time()


def taken(queue: WorkQueue[str]) -> list[str]:
    """The keys that wait, in the order in which they are handed out; each is done at once."""
    keys = []
    while (item := queue.take()) is not None:
        keys.append(item.key)
        queue.done(item.key)
    return keys


@asynccontextmanager
async def waiting(queue: WorkQueue[str]) -> AsyncIterator[asyncio.Task[Item[str]]]:
    """A worker that waits for a key."""
    task = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# ------------------------------------------------------------------ priorities and reasons


@pytest.mark.spec("R-16")
async def test_a_waiting_key_rises_in_priority_and_never_sinks() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "c"):
        queue.add(key, priority=-100)
    queue.add("c")
    queue.add("c", priority=-100)
    queue.add("b", priority=-100)
    item = queue.take()
    assert item is not None
    assert (item.key, item.priority) == ("c", 0)
    queue.done("c")
    assert taken(queue) == ["a", "b"]


@pytest.mark.spec("R-13", "R-16")
async def test_a_key_that_comes_back_has_the_highest_priority_of_its_additions() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("b", priority=5)
    queue.add("a", priority=-100)
    queue.add("a", priority=10)
    queue.add("a", priority=0)
    assert (len(queue), queue.unfinished) == (1, 2), "while a worker has it, it does not wait for another one"
    queue.done("a")
    assert taken(queue) == ["a", "b"]


@pytest.mark.spec("R-13")
async def test_a_key_remembers_its_first_reasons_and_the_latest() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    for number in range(MAX_REASONS + 5):
        queue.add("a", reason=number)
    queue.add("a")
    item = await queue.get()
    assert item.reasons == (*range(MAX_REASONS - 1), MAX_REASONS + 4)
    queue.done("a")
    queue.add("a")
    assert (await queue.get()).reasons == (), "a key without a reason has none, not that of the last time"


@pytest.mark.spec("R-14", "R-15", "R-16")
async def test_a_delayed_key_keeps_its_priority_and_its_reason() -> None:
    queue: WorkQueue[str] = WorkQueue(limiter=RateLimiter(Backoff(2, 60)))
    queue.add_after("delayed", 2, priority=3, reason="timer")
    queue.add_rate_limited("failed", priority=4, reason="retry")
    queue.add_after("at once", 0, priority=5, reason="now")
    items = [queue.take()]
    await asyncio.sleep(2)
    items += [queue.take(), queue.take()]
    assert [(item.key, item.priority, item.reasons) for item in items if item] == [
        ("at once", 5, ("now",)),
        ("failed", 4, ("retry",)),
        ("delayed", 3, ("timer",)),
    ]


@pytest.mark.spec("R-15")
async def test_the_back_off_of_a_failed_key_can_be_bounded_or_the_slowest() -> None:
    queue: WorkQueue[str] = WorkQueue(limiter=RateLimiter(Backoff(8, 60), None))
    assert queue.add_rate_limited("a", at_most=5) == 5
    assert queue.add_rate_limited("b", at_most=9) == 8
    assert queue.add_rate_limited("c", slowest=True, at_most=5) == 60
    assert [queue.num_requeues(key) for key in "abcd"] == [1, 1, 1, 0], "each of them has failed once"
    for key, due in (("a", 5), ("b", 8), ("c", 60)):
        assert ((await queue.get()).key, now()) == (key, due)


# ------------------------------------------------------------------ delays


@pytest.mark.spec("R-14")
@given(st.lists(st.integers(1, 40), min_size=1, max_size=12))
async def test_each_delayed_key_comes_at_its_own_time(delays: list[int]) -> None:
    queue: WorkQueue[int] = WorkQueue()
    for number, delay in enumerate(delays):
        queue.add_after(number, delay)
    came = {}
    for _ in delays:
        item = await queue.get()
        came[item.key] = now()
    assert came == dict(enumerate(map(float, delays)))


async def test_a_later_delay_changes_nothing_and_an_earlier_one_replaces_reason_and_priority() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 10, reason="first", priority=1)
    queue.add_after("a", 10, reason="as early", priority=2)
    queue.add_after("b", 10, reason="first", priority=1)
    queue.add_after("b", 5, reason="earlier", priority=2)
    items = [await queue.get(), await queue.get()]
    assert [(item.key, item.priority, item.reasons) for item in items] == [
        ("b", 2, ("earlier",)),
        ("a", 1, ("first",)),
    ]


async def test_a_timer_that_comes_a_hair_early_is_set_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As uvloop's, which count milliseconds: a queue that set it again turned twenty times around each delayed key."""
    loop = asyncio.get_running_loop()
    call_at, times = loop.call_at, []

    def early(when: float, *args: object, **options: object) -> asyncio.TimerHandle:
        times.append(when)
        return call_at(when - 0.0004, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_at", early)
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 5)
    queue.add_after("b", 7)
    assert [(await queue.get()).key, (await queue.get()).key] == ["a", "b"]
    assert times == [5.0, 7.0]


@pytest.mark.spec("R-17")
async def test_a_queue_that_shuts_down_forgets_its_delayed_keys() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 5)
    queue.shut_down()
    queue.add_after("b", 5)
    queue.add_after("c", 0)
    await asyncio.sleep(10)
    assert (queue.take(), queue.unfinished) == (None, 0)


@pytest.mark.spec("R-17")
async def test_the_loop_does_not_keep_a_queue_that_was_shut_down() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 3600)
    queue.shut_down()
    queue.add_after("b", 3600)
    kept = weakref.ref(queue)
    del queue
    gc.collect()
    assert kept() is None, "a timer still holds it"


async def test_a_key_without_a_delay_comes_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0)
    assert taken(queue) == ["a"]
    await asyncio.sleep(1)
    assert taken(queue) == []


# ------------------------------------------------------------------ workers


async def test_a_new_worker_is_needed_only_when_a_key_waits_and_no_worker_is_idle() -> None:
    queue: WorkQueue[str] = WorkQueue()
    needed = asyncio.create_task(queue.needs_worker())
    await asyncio.sleep(1)
    assert not needed.done(), "no key waits"
    async with waiting(queue) as worker:
        queue.add("a")
        assert (await worker).key == "a"
        assert not needed.done(), "an idle worker took it"
    queue.add("b")
    assert await needed
    assert await queue.needs_worker(), "still"
    assert taken(queue) == ["b"]
    needed = asyncio.create_task(queue.needs_worker())
    async with waiting(queue):
        pass
    queue.add("c")
    assert await needed, "the worker that waited was cancelled: it is idle no longer"
    queue.shut_down()
    assert not await queue.needs_worker()


async def test_no_worker_is_needed_once_the_queue_shuts_down() -> None:
    queue: WorkQueue[str] = WorkQueue()
    needed = asyncio.create_task(queue.needs_worker())
    await asyncio.sleep(0)
    queue.shut_down()
    assert not await needed


async def test_no_worker_is_needed_while_one_is_idle_though_a_key_waits_for_its_turn() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with waiting(queue) as first, waiting(queue):
        needed = asyncio.create_task(queue.needs_worker())
        queue.add("a")
        assert (await first).key == "a"
        assert not needed.done()
        queue.shut_down()
        assert not await needed


async def test_a_worker_that_is_cancelled_before_a_key_comes_does_not_get_it() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with waiting(queue) as first, waiting(queue) as second:
        first.cancel()
        queue.add("a")
        assert (await second).key == "a"


async def test_a_cancelled_worker_that_was_not_woken_wakes_none() -> None:
    queue: WorkQueue[str] = WorkQueue()
    async with waiting(queue) as second:
        async with waiting(queue):
            pass
        queue.add("a")
        assert (await second).key == "a"


# ------------------------------------------------------------------ pausing


async def test_a_paused_queue_hands_out_nothing_until_it_resumes() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert not queue.paused
    queue.pause()
    assert queue.paused
    queue.add("early")
    with pytest.raises(TimeoutError):  # a worker could do nothing
        await asyncio.wait_for(queue.needs_worker(), 1)
    assert taken(queue) == ["early"]
    async with waiting(queue) as first, waiting(queue) as second:
        queue.add("a")
        queue.add("b")
        needed = asyncio.create_task(queue.needs_worker())
        await asyncio.sleep(1)
        assert not first.done()
        assert not second.done()
        assert not needed.done()
        queue.resume()
        assert not queue.paused
        assert {(await first).key, (await second).key} == {"a", "b"}
        queue.add("c")
        assert await needed


async def test_take_hands_out_even_while_paused() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.pause()
    assert queue.take() is None
    queue.add("a")
    assert taken(queue) == ["a"]


@pytest.mark.spec("R-17")
async def test_a_paused_queue_that_shuts_down_leaves_its_waiting_keys() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    item = await queue.get()
    queue.add("b")
    queue.pause()
    drain = asyncio.create_task(queue.shut_down_with_drain())
    with pytest.raises(ShutDown):
        await queue.get()
    assert not drain.done(), "a worker has a key"
    queue.done(item.key)
    await drain


@pytest.mark.spec("R-17")
async def test_a_drain_waits_for_every_key_and_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in "abc":
        queue.add(key)
    items = [await queue.get(), await queue.get()]
    drains = [asyncio.create_task(queue.shut_down_with_drain()) for _ in range(2)]
    await asyncio.sleep(1)
    for item in items:
        queue.done(item.key)
        await asyncio.sleep(1)
        assert not any(drain.done() for drain in drains)
    assert taken(queue) == ["c"]
    await asyncio.gather(*drains)


@pytest.mark.spec("R-17")
async def test_a_drain_ends_when_several_workers_finish_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    items = [await queue.get(), await queue.get()]
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await asyncio.sleep(1)
    for item in items:
        queue.done(item.key)
    await drain


# ------------------------------------------------------------------ what it reports


async def test_the_queue_reports_its_depth_and_how_long_keys_wait_and_work_takes() -> None:
    metrics = Metrics()
    queue: WorkQueue[str] = WorkQueue(limiter=RateLimiter(Backoff(2, 60)), metrics=metrics)
    await asyncio.sleep(100)
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(3)
    queue.add("a")
    item = await queue.get()
    assert (item.key, item.waited) == ("a", 3.0), "since it was added first"
    await asyncio.sleep(5)
    queue.add("a")
    queue.done("a")
    queue.add_rate_limited("c")
    assert metrics.reports == [
        ("added", 1),
        ("added", 2),
        ("handed out", 3.0, 1),
        ("finished", 5.0),
        ("added", 2),
        ("retried",),
    ]


async def test_the_default_limiter_starts_slowly_after_a_hundred_failures() -> None:
    """Upstream: DefaultTypedControllerRateLimiter."""
    queue: WorkQueue[int] = WorkQueue()
    delays = [queue.add_rate_limited(key) for key in range(102)]
    assert delays[:100] == [0.005] * 100
    assert delays[100:] == pytest.approx([0.1, 0.2])


async def test_the_own_limiter_is_used() -> None:
    queue: WorkQueue[str] = WorkQueue(limiter=RateLimiter(Backoff(1, 2), TokenBucket(qps=0.1, burst=1)))
    assert [queue.add_rate_limited("a"), queue.add_rate_limited("b")] == [1, 10]


@pytest.mark.spec("R-16")
async def test_the_namespace_of_a_key_is_its_tenant() -> None:
    class Key(tuple[str, str]):
        @property
        def namespace(self) -> str:
            return self[0]

    queue: WorkQueue[Key] = WorkQueue()
    for namespace, name in ("a1", "a2", "a3", "b1"):
        queue.add(Key((namespace, name)))
    items = [await queue.get() for _ in range(4)]
    assert ["".join(item.key) for item in items] == ["a1", "b1", "a2", "a3"]


async def test_workers_that_stop_waiting_leave_nothing_behind() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await queue.get()
    assert len(queue._waiters) == 0
    queue.shut_down()


async def test_delayed_keys_share_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    call_at, times = loop.call_at, []

    def counted(when: float, *args: object, **options: object) -> asyncio.TimerHandle:
        times.append(when)
        return call_at(when, *args, **options)  # type: ignore[arg-type]

    queue: WorkQueue[int] = WorkQueue()
    monkeypatch.setattr(loop, "call_at", counted)
    for number in range(10, 20):
        queue.add_after(number, float(number))
    queue.add_after(5, 5.0)  # sooner than the timer
    monkeypatch.undo()
    assert times == [10, 5]
    for expected in (5, 10, 11):
        item = await queue.get()
        queue.done(item.key)
        assert (item.key, now()) == (expected, expected)
    queue.shut_down()


async def test_many_keys_at_once_ask_for_a_worker_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    needed = asyncio.create_task(queue.needs_worker())
    await asyncio.sleep(0)
    for key in "abc":
        queue.add(key)
    assert await needed
    assert [queue.get_nowait().key for _ in "abc"] == ["a", "b", "c"]  # type: ignore[union-attr]
