"""What one run of a manager does besides its controllers: its tasks and its hooks, each at its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from konverge.client import Client
from konverge.observe.metrics import Numbers
from konverge.runtime.base_context import Recorder
from konverge.runtime.caches import SharedCaches
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.tasks.hooks import ShutdownHooks
from konverge.runtime.tasks.manager_tasks import ManagerTask, RunningTasks, TaskContext


class TaskOwner(Protocol):
    """What is needed of a manager."""

    name: str
    numbers: Numbers
    caches: SharedCaches

    @property
    def tasks(self) -> Sequence[ManagerTask]: ...
    @property
    def shutdown_timeout(self) -> float: ...


class Besides:
    """Tasks and shut-down hooks of one run, and their end.

    `fenced` writes only while this process leads, `client` always: a task of every replica is meant to act on each.
    """

    def __init__(
        self, manager: TaskOwner, client: Client, fenced: Client, recorder: Recorder, hooks: ShutdownHooks
    ) -> None:
        self._manager = manager
        self._client = client
        self._recorder = recorder
        self._caches = DeclaredCaches(None)
        for informer in manager.caches.informers.values():
            self._caches.add(informer, {})
        self._tasks = RunningTasks(self._context, manager.numbers.tasks)
        self._hooks = hooks
        hooks.client = fenced
        self.leading = fenced
        """Writes only while this process leads, for the tasks of the leader."""

    def start(self, *, leader_only: bool) -> None:
        """Start those tasks that belong to the leader alone, or those of every replica."""
        self._tasks.start([task for task in self._manager.tasks if task.leader_only is leader_only])

    def ask(self) -> None:
        """The manager stops: tasks may end by themselves while controllers finish."""
        self._tasks.ask()

    def cancel(self) -> None:
        """Leadership was lost: nothing may go on."""
        self._tasks.cancel()

    def lead(self, leads: bool) -> None:
        """Of several replicas that work, this one is the first, or is so no longer."""
        if leads:
            self.start(leader_only=True)
        else:
            self._tasks.cancel(leader_only=True)

    async def end(self) -> None:
        """End the tasks, then run the shut-down hooks; once."""
        await self._tasks.end(self._manager.shutdown_timeout)
        await self._hooks.run()

    def _context(self, task: ManagerTask) -> TaskContext:
        client = self.leading if task.leader_only else self._client
        return TaskContext(
            task.name, client=client, caches=self._caches, recorder=self._recorder, manager=self._manager.name
        )
