"""The author's code awaits something that was cancelled: a failure like any other, which ends nothing for ever."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from konverge.client import Client
from konverge.runtime import Context, Controller, Manager, Request
from konverge.runtime.declare import Source
from konverge.runtime.tasks.cancellation import AwaitedCancelled, authors_code
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.declared import Daemon, Every
from konverge.runtime.tasks.ending import end
from konverge.runtime.tasks.hooks import HookContext, StartupFailed
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.runtime.tasks.feeds import Feed, feed, install

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-58", "R-59")]


async def await_cancelled() -> None:
    waiting = asyncio.ensure_future(asyncio.sleep(9))
    waiting.cancel()
    await waiting


class Calls:
    """Whatever an author can declare, each awaiting something that was cancelled."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    async def _fail(self, what: str) -> None:
        self.count[what] += 1
        await await_cancelled()

    async def timer(self, ctx: Context[Feed]) -> None:
        await self._fail("timer")

    async def daemon(self, ctx: DaemonContext[Feed]) -> None:
        await self._fail("daemon")

    async def task(self, ctx: TaskContext) -> None:
        await self._fail("task")

    async def source(self) -> AsyncIterator[Request]:
        await self._fail("source")
        yield Request("", "")

    async def hook(self, ctx: HookContext) -> None:
        await self._fail("hook")


async def nothing(ctx: Context[Feed]) -> None: ...


async def test_each_is_called_again(client: Client) -> None:
    await install(client)
    await client.create(feed("a"))
    calls = Calls()
    controller = Controller(
        Feed,
        nothing,
        timers=[Every(10, calls.timer)],
        daemons=[Daemon(calls.daemon)],
        sources=[Source(name="calls", requests=calls.source)],
    )
    manager = Manager(client).add(controller).add_task(calls.task)
    manager.on_shutdown(calls.hook)
    manager.on_shutdown(calls.hook)
    async with manager.running():
        await asyncio.sleep(60)
        assert {name: count > 2 for name, count in calls.count.items()} == dict.fromkeys(
            ("timer", "daemon", "task", "source"), True
        )
    assert calls.count["hook"] == 2, "one that fails does not stop the others"


async def test_a_start_up_hook_fails_the_start(client: Client) -> None:
    manager = Manager(client)
    manager.on_startup(Calls().hook)
    with pytest.raises(StartupFailed):
        await manager.serve(asyncio.Event())


async def test_the_cancellation_of_the_task_itself_passes() -> None:
    async def run() -> None:
        with authors_code():
            await asyncio.sleep(9)

    running = asyncio.create_task(run())
    await asyncio.sleep(1)
    running.cancel()
    await asyncio.wait([running])
    assert running.cancelled()
    with pytest.raises(AwaitedCancelled), authors_code():
        await await_cancelled()


@pytest.mark.virtual
@pytest.mark.parametrize(("grace", "cancelled"), [(0.0, True), (0.5, False)])
async def test_even_a_short_grace_is_given(grace: float, cancelled: bool) -> None:
    asked = asyncio.Event()

    async def polite() -> None:
        await asked.wait()
        await asyncio.sleep(0.4)

    task = asyncio.create_task(polite())
    await asyncio.sleep(0)
    assert await end(task, asked.set, grace, logging.getLogger())
    assert task.cancelled() is cancelled
