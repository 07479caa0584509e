"""The death of a manager reaches its caller: the block that it runs beside is cancelled with the cause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from konverge.client import Client
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager
from konverge.runtime.alongside import alongside, ungrouped
from konverge.runtime.elector import LeadershipLost
from konverge.runtime.manager import LeaderElection
from tests.runtime.objects import secret
from tests.runtime.test_elector import Unreliable

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-01")]


async def nothing(ctx: Context[Secret]) -> None:
    """A reconciler that is content."""


def now() -> float:
    return asyncio.get_running_loop().time()


async def fail_after(seconds: float, error: BaseException) -> None:
    await asyncio.sleep(seconds)
    raise error


def failing(seconds: float = 10) -> asyncio.Task[None]:
    return asyncio.create_task(fail_after(seconds, LookupError("broken")), name="helper")


async def test_a_manager_that_dies_cancels_its_block_with_the_cause(client: Client, caplog: Any) -> None:
    manager = Manager(client).add(Controller(Secret, nothing))
    await client.create(secret("a"))

    async def broken(*_: object) -> None:
        raise LookupError("broken")

    async def run() -> None:
        async with manager.running():
            manager.engines["secret"]._process = broken  # type: ignore[method-assign]
            await asyncio.sleep(3600)

    with pytest.raises(LookupError, match="broken") as caught:
        await run()
    assert now() < 1
    assert caught.value.__suppress_context__  # its traceback has no cancellation
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]
    assert "manager konverge has ended: broken" in caplog.text
    await asyncio.sleep(1)  # the caller can go on


async def test_a_manager_that_lost_its_leadership_ends_its_block(server: Any, client: Client) -> None:
    wire = Unreliable(server.transport, trouble=0)
    poor = Client(wire, credentials=client.caller._credentials)  # type: ignore[attr-defined]
    manager = Manager(poor, leader_election=LeaderElection(name="op")).add(Controller(Secret, nothing))

    async def run() -> None:
        async with manager.running():
            wire.away = True
            await asyncio.Event().wait()

    with pytest.raises(LeadershipLost):
        await run()
    assert now() < 60


async def test_a_manager_that_cannot_start_raises_what_is_wrong(client: Client) -> None:
    manager = Manager(client).add(Controller(Secret, nothing, depends_on=["absent"]))
    with pytest.raises(ValueError, match="absent"):
        async with manager.running():
            pytest.fail("it does not run")


async def test_the_block_ends_first_and_the_task_is_waited_for() -> None:
    async def work() -> None:
        await stop.wait()
        await asyncio.sleep(5)
        ended.append(now())

    stop, ended = asyncio.Event(), []  # type: ignore[var-annotated]
    async with alongside(asyncio.create_task(work()), stop.set):
        await asyncio.sleep(1)
    assert ended == [6]


async def test_an_error_of_the_block_stops_the_task_and_is_raised() -> None:
    async def work() -> None:
        await stop.wait()
        ended.append(now())

    stop, ended = asyncio.Event(), []  # type: ignore[var-annotated]
    with pytest.raises(ZeroDivisionError) as caught:
        async with alongside(asyncio.create_task(work()), stop.set):
            raise ZeroDivisionError
    assert not hasattr(caught.value, "__notes__")
    assert ended == [0]


async def test_an_error_at_the_end_of_the_task_is_raised_after_the_block() -> None:
    async def work() -> None:
        await stop.wait()
        raise LookupError("cannot stop")

    stop = asyncio.Event()
    with pytest.raises(LookupError, match="cannot stop"):
        async with alongside(asyncio.create_task(work()), stop.set):
            await asyncio.sleep(1)
    await asyncio.sleep(0)
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_task_that_ends_well_lets_the_block_go_on() -> None:
    async with alongside(asyncio.create_task(asyncio.sleep(1)), lambda: None):
        await asyncio.sleep(10)
    assert now() == 10


async def test_a_task_that_is_cancelled_from_outside_ends_the_block() -> None:
    task = failing(3600)
    asyncio.get_running_loop().call_later(5, task.cancel)
    with pytest.raises(RuntimeError, match="helper was cancelled"):
        async with alongside(task, lambda: None):
            await asyncio.sleep(60)
    assert now() == 5


async def test_a_caller_that_is_cancelled_at_the_same_moment_stays_cancelled() -> None:
    async def caller() -> None:
        async with alongside(helper, lambda: None):
            helper.add_done_callback(lambda _: task.cancel())
            await asyncio.sleep(60)

    helper = failing()
    task = asyncio.create_task(caller())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_caller_that_is_cancelled_ends_the_task_and_stays_cancelled() -> None:
    async def caller() -> None:
        async with alongside(asyncio.create_task(stop.wait()), stop.set):  # type: ignore[arg-type]
            await asyncio.sleep(60)

    stop = asyncio.Event()
    task = asyncio.create_task(caller())
    await asyncio.sleep(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stop.is_set()
    assert now() == 1


async def test_an_earlier_cancellation_of_the_caller_is_its_own_business() -> None:
    async def caller() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            async with alongside(asyncio.create_task(asyncio.sleep(1)), lambda: None):
                await asyncio.sleep(2)
        return asyncio.current_task().cancelling()  # type: ignore[union-attr]

    task = asyncio.create_task(caller())
    await asyncio.sleep(1)
    task.cancel()
    assert await task == 1


async def test_a_block_that_turns_the_cancellation_into_its_own_error_names_the_cause() -> None:
    async def block() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise KeyError("mine") from None

    with pytest.raises(KeyError) as caught:
        async with alongside(failing(), lambda: None):
            await block()
    assert caught.value.__notes__ == ["before that, helper had ended: broken"]
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_block_that_ignores_the_cancellation_is_followed_by_the_cause() -> None:
    async def block() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(5)

    with pytest.raises(LookupError, match="broken"):
        async with alongside(failing(), lambda: None):
            await block()
    assert now() == 15
    assert asyncio.current_task().cancelling() == 0  # type: ignore[union-attr]


async def test_a_block_that_spans_two_tasks_gets_the_cause_at_its_end() -> None:
    async def fixture() -> AsyncIterator[None]:
        async with alongside(failing(), lambda: None):
            yield

    made = fixture()
    await asyncio.create_task(anext(made))  # type: ignore[arg-type]
    await asyncio.sleep(20)
    with pytest.raises(LookupError, match="broken"):
        await anext(made, None)


async def test_of_a_group_the_first_error_is_raised_alone() -> None:
    async def work() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail_after(2, ValueError("second")))
            group.create_task(fail_after(1, LookupError("first")))

    with pytest.raises(LookupError, match="first") as caught:
        await ungrouped(work())
    assert caught.value.__context__ is None


async def test_work_without_an_error_raises_nothing() -> None:
    await ungrouped(asyncio.sleep(1))
    assert now() == 1
