"""The work queue: no lost key, no key in two hands, delays, shutdown."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from konverge.sim.loop import VirtualLoop
from konverge.workqueue import Backoff, RateLimiter, ShutDown, WorkQueue
from konverge.workqueue.queue import Pending
from tests.sizes import examples

virtual = pytest.mark.virtual


def now() -> float:
    return asyncio.get_running_loop().time()


@virtual
@pytest.mark.spec("R-13")
async def test_a_key_added_often_is_handed_out_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(3):
        queue.add("a", reason="changed")
    item = await queue.get()
    assert (item.key, item.reasons, len(queue)) == ("a", ("changed",), 0)


@virtual
@pytest.mark.spec("R-13")
async def test_a_key_added_while_being_worked_on_comes_back_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a", reason="first")
    queue.add("a", reason="second")
    assert len(queue) == 0
    queue.done("a")
    assert (await queue.get()).reasons == ("first", "second")
    queue.done("a")
    assert len(queue) == 0


@virtual
@pytest.mark.spec("R-14")
async def test_the_earliest_of_several_delays_of_a_key_wins() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 30)
    queue.add_after("a", 10)
    queue.add_after("a", 20)
    await queue.get()
    assert now() == 10
    queue.done("a")
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(100)
    assert not waiting.done()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


@virtual
@pytest.mark.spec("R-15")
async def test_a_failing_key_backs_off_and_success_resets_it() -> None:
    queue: WorkQueue[str] = WorkQueue(limiter=RateLimiter(Backoff(1, 60)))
    assert [queue.add_rate_limited("a") for _ in range(3)] == [1, 2, 4]
    assert queue.num_requeues("a") == 3
    queue.forget("a")
    assert queue.num_requeues("a") == 0


@virtual
@pytest.mark.spec("R-17")
async def test_a_queue_that_shuts_down_hands_out_waiting_keys_and_takes_no_new_ones() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add_after("later", 5)
    queue.shut_down()
    queue.add("b")
    assert (await queue.get()).key == "a"
    with pytest.raises(ShutDown):
        await queue.get()


@virtual
@pytest.mark.spec("R-17")
async def test_a_drain_waits_for_keys_being_worked_on() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    item = await queue.get()
    queue.add("a")  # dirty: it must still be worked on
    drain = asyncio.create_task(queue.shut_down_with_drain())
    await asyncio.sleep(1)
    queue.done(item.key)
    again = await queue.get()
    await asyncio.sleep(1)
    assert not drain.done()
    queue.done(again.key)
    await drain


@virtual
async def test_shut_down_wakes_every_waiting_worker() -> None:
    queue: WorkQueue[str] = WorkQueue()
    workers = [asyncio.create_task(queue.get()) for _ in range(5)]
    await asyncio.sleep(0)
    queue.shut_down()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(result, ShutDown) for result in results)


@virtual
async def test_a_cancelled_worker_wakes_another_in_its_place() -> None:
    queue: WorkQueue[str] = WorkQueue()
    first = asyncio.create_task(queue.get())
    second = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")  # wakes the first …
    first.cancel()  # … which is cancelled before it runs
    assert (await second).key == "a"
    assert first.cancelled() or await asyncio.gather(first, return_exceptions=True)


# ------------------------------------------------------------------ any program

actions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 4), st.sampled_from([0, -100])),
        st.tuples(st.just("after"), st.integers(0, 4), st.integers(0, 50)),
        st.tuples(st.just("fail"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("sleep"), st.integers(0, 30), st.just(0)),
    ),
    max_size=60,
)


@pytest.mark.spec("R-13", "R-14")
@settings(max_examples=examples(2))
@given(actions, st.integers(1, 4), st.integers(0, 2**16))
def test_no_key_is_lost_and_none_is_with_two_workers(
    program: list[tuple[str, int, int]], workers: int, seed: int
) -> None:
    """Whatever is added is worked on after it was added; and never by two at a time."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        queue: WorkQueue[int] = WorkQueue(limiter=RateLimiter(Backoff(1, 64), None))
        in_hand: set[int] = set()
        wanted: dict[int, float] = {}  # key -> latest time by which work must begin after
        began: dict[int, float] = {}

        async def work() -> None:
            while True:
                try:
                    item = await queue.get()
                except ShutDown:
                    return
                assert item.key not in in_hand
                in_hand.add(item.key)
                began[item.key] = loop.time()
                await asyncio.sleep(loop.rng.choice([0, 0, 1, 7]))
                in_hand.discard(item.key)
                queue.done(item.key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for action, number, extra in program:
            if action == "sleep":
                await asyncio.sleep(number)
                continue
            wanted[number] = loop.time()
            if action == "add":
                queue.add(number, priority=extra)
            elif action == "after":
                queue.add_after(number, extra)
            else:
                queue.add_rate_limited(number)
        await asyncio.sleep(1000)
        await queue.shut_down_with_drain()
        await asyncio.gather(*tasks)
        for key, since in wanted.items():
            assert began[key] >= since

    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        runner.run(main())


def test_a_delay_that_is_over_before_its_timer_is_set_adds_the_key() -> None:
    """uvloop answers `call_at` with a plain handle when the time has just passed (a `konverge up` died of it)."""
    uvloop = pytest.importorskip("uvloop")

    async def work() -> list[str]:
        queue: WorkQueue[str] = WorkQueue()
        for number in range(50):
            queue.add_after(f"k{number}", 1e-7 * (50 - number))
        return [(await queue.get()).key for _ in range(50)]

    assert len(uvloop.run(work())) == 50


@virtual
async def test_what_is_in_a_queue_is_shown_with_its_time() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key, delay in (("late", 9.0), ("soon", 3.0), ("never", 60.0)):
        queue.add_after(key, delay, reason=f"in {delay:g} s")
    queue.add("first")
    queue.add("second", reason="changed")
    await queue.get()
    await asyncio.sleep(1)
    assert queue.pending() == [
        Pending("first", "in work", 1.0),
        Pending("second", "waiting", 1.0, ("changed",)),
        Pending("soon", "delayed", 2.0, ("in 3 s",)),
        Pending("late", "delayed", 8.0, ("in 9 s",)),
        Pending("never", "delayed", 59.0, ("in 60 s",)),
    ]


@virtual
@pytest.mark.spec("R-13")
async def test_the_oldest_key_is_the_one_that_has_waited_longest() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.oldest == 0
    queue.add("a")
    await asyncio.sleep(3)
    queue.add("b")
    await asyncio.sleep(1)
    assert queue.oldest == 4
    await queue.get()
    assert queue.oldest == 1


@virtual
@pytest.mark.spec("R-13")
async def test_a_key_is_taken_without_waiting_where_one_waits_and_the_queue_is_not_paused() -> None:
    queue: WorkQueue[str] = WorkQueue()
    assert queue.get_nowait() is None
    queue.add("a")
    queue.pause()
    assert queue.get_nowait() is None
    queue.resume()
    item = queue.get_nowait()
    assert item is not None
    assert item.key == "a"
    assert queue.get_nowait() is None
