"""Tasks of a manager: work that belongs to no object, for as long as the manager runs or leads.

A task is the author's code. One that raises is started again after a back-off, and costs nothing but itself; one that
returns has done its work. At the end each is asked to stop, cancelled, and left behind with a line in the log when it
ignores both.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from konverge.client import Client
from konverge.objects.meta import Object
from konverge.observe.metrics import TaskNumbers
from konverge.runtime.base_context import BaseContext, Caches, Recorder
from konverge.runtime.failures import message
from konverge.runtime.tasks.cancellation import authors_code
from konverge.runtime.tasks.ending import SILENCE, end
from konverge.runtime.tasks.restarts import Restarts

_log = logging.getLogger("konverge.manager")


class TaskContext(BaseContext):
    """What a task works with.

    async def report(ctx: TaskContext) -> None:
        while True:
            await publish(await ctx.list(WebApp))
            await asyncio.sleep(60)
    """

    def __init__(self, name: str, *, client: Client, caches: Caches, recorder: Recorder, manager: str) -> None:
        self.name = name
        self.client = client
        self.stop = asyncio.Event()
        """Set when the task should end; it is cancelled after its grace."""
        self.log = logging.getLogger("konverge.task")
        self._caches = caches
        self._recorder = recorder
        self._manager = manager

    async def apply(self, desired: Object, *, owner: Object | None = None, force: bool = True) -> bool:
        """Server-side apply, as in a reconcile (see `Context.apply`); with an owner, that object's rules hold."""
        return (await self._apply(desired, owner, adopt=False, force=force)).differs

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        """Record an event about an object."""
        self._recorder.event(reason, message, about=about, type=type)


class ManagerTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it was declared (`manager.add_task`)."""

    function: Callable[[TaskContext], Awaitable[object]]
    name: str
    leader_only: bool
    grace: float


class RunningTasks:
    """The tasks of one run of a manager.

    `contexts` makes the context of a task; `numbers` is filled in by name.
    """

    def __init__(self, contexts: Callable[[ManagerTask], TaskContext], numbers: dict[str, TaskNumbers]) -> None:
        self._contexts = contexts
        self._numbers = numbers
        self._running: list[tuple[ManagerTask, TaskContext, asyncio.Task[None]]] = []
        self._ended = False

    def start(self, tasks: list[ManagerTask]) -> None:
        """Start tasks, each when an earlier run of it has ended. After `ask` none is started any more."""
        if self._ended:
            return
        self._running = [entry for entry in self._running if not entry[2].done()]
        for task in tasks:
            earlier = [run for other, _, run in self._running if other is task]
            context, numbers = self._contexts(task), TaskNumbers()
            self._numbers[task.name] = numbers
            run = asyncio.create_task(_run_after(earlier, task, context, numbers), name=f"task {task.name}")
            self._running.append((task, context, run))

    def ask(self) -> None:
        """Ask all to stop."""
        self._ended = True
        for _, context, _ in self._running:
            context.stop.set()

    def cancel(self, *, leader_only: bool = False) -> None:
        """Cancel all at once, or those of the leader alone: they may not go on."""
        self._ended = self._ended or not leader_only
        for task, context, run in self._running:
            if task.leader_only or not leader_only:
                context.stop.set()
                if not run.cancelling():  # a second one would end what it does at its end
                    run.cancel()

    async def end(self, limit: float) -> None:
        """End all, each within its grace; after `limit` seconds those that still run are left behind."""
        self._ended = True
        running, self._running = self._running, []
        ending = [
            end(run, context.stop.set, min(task.grace, limit), _log, max(limit - task.grace, 1.0))
            for task, context, run in running
        ]
        await asyncio.gather(*ending)


async def _run_after(
    earlier: list[asyncio.Task[None]], task: ManagerTask, context: TaskContext, numbers: TaskNumbers
) -> None:
    """A leader that lost its place and won it again: what was cancelled then may still be at its end."""
    while late := [run for run in earlier if not run.done()]:
        _, waiting = await asyncio.wait(late, timeout=SILENCE)
        if waiting:
            _log.warning(
                "the task %s begins when its earlier run has ended: it must not catch CancelledError", task.name
            )
    if not context.stop.is_set():
        await _run(task, context, numbers)


async def _run(task: ManagerTask, context: TaskContext, numbers: TaskNumbers) -> None:
    """Call the function until it returns, or this is cancelled."""
    loop = asyncio.get_running_loop()
    restarts = Restarts()
    while True:
        began = loop.time()
        numbers.running = True
        try:
            with authors_code():
                await task.function(context)
        except Exception as error:  # the author's code, or what it speaks to
            pause = restarts.next_pause(loop.time() - began)
            numbers.restarts += 1
            numbers.down = message(error)
            _log.error("the task %s failed and is started again in %.1f s", task.name, pause, exc_info=error)
        else:
            _log.info("the task %s has ended", task.name)
            return
        finally:
            numbers.running = False
        if context.stop.is_set():
            return
        await asyncio.sleep(pause)
        numbers.down = ""


def task_name(function: Any) -> str:
    """How a function is called in logs and metrics."""
    return str(getattr(function, "__name__", type(function).__name__))
