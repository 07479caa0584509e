"""Virtual time: exact, replayable, and honest about deadlocks."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge import clock
from konverge.sim.loop import EPOCH, Deadlock, VirtualLoop


def simulate(main, seed: int = 0):  # type: ignore[no-untyped-def]
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(seed)) as runner:
        return runner.run(main)


@pytest.mark.spec("S-19")
@given(st.lists(st.integers(0, 10**9).map(lambda ms: ms / 1000), max_size=20))
def test_sleepers_wake_in_the_order_of_their_times(delays: list[float]) -> None:
    async def main() -> list[float]:
        woken: list[float] = []

        async def sleeper(delay: float) -> None:
            await asyncio.sleep(delay)
            woken.append(delay)

        await asyncio.gather(*(sleeper(delay) for delay in delays))
        assert asyncio.get_running_loop().time() == max(delays, default=0.0)
        return woken

    assert simulate(main()) == sorted(delays)


@pytest.mark.spec("S-19")
def test_one_seed_is_one_history() -> None:
    async def main() -> list[object]:
        await asyncio.sleep(clock.rng().random())
        return [clock.now(), clock.monotonic(), clock.new_uid(), clock.utc_now()]

    assert simulate(main(), 7) == simulate(main(), 7)
    assert simulate(main(), 7) != simulate(main(), 8)


def test_wall_time_follows_loop_time_and_jumps_alone() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(60)
        assert clock.now() == EPOCH + 60
        loop.jump_wall_clock(-3600)
        assert clock.now() == EPOCH - 3540
        assert clock.monotonic() == 60

    simulate(main())


def test_waiting_for_ever_is_told_with_the_names_of_those_who_wait() -> None:
    async def main() -> None:
        task = asyncio.create_task(asyncio.Event().wait(), name="the-forgotten")
        await task

    with pytest.raises(Deadlock, match="the-forgotten"):
        simulate(main())


def test_outside_of_a_simulation_time_is_the_systems() -> None:
    assert clock.now() > EPOCH - 10**8
    assert clock.new_uid() != clock.new_uid()


@pytest.mark.virtual
async def test_what_would_take_a_thread_is_done_at_once() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await asyncio.to_thread(sum, [1, 2, 3]) == 6
    with pytest.raises(ZeroDivisionError):
        await loop.run_in_executor(None, divmod, 1, 0)
    assert loop.time() == began


@pytest.mark.virtual
async def test_nobody_wakes_a_hair_too_early_so_time_never_stands_still() -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(169.9999999995956)

    async def until_the_interval_is_over() -> float:
        while loop.time() < 170:
            await asyncio.sleep(170 - loop.time())
        return loop.time()

    async with asyncio.TaskGroup() as group:
        sleepers = [group.create_task(until_the_interval_is_over()) for _ in range(3)]
    assert {sleeper.result() for sleeper in sleepers} == {170.0}
