"""What timers and daemons need of the controller that they belong to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from konverge.cache.informer import Informer
from konverge.cache.record import Key, Record
from konverge.client import Client
from konverge.objects.codec import from_json
from konverge.observe.metrics import ControllerNumbers
from konverge.runtime.base_context import Caches, Recorder
from konverge.runtime.context import Context
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.reasons import External
from konverge.runtime.result import Request, TransientError
from konverge.runtime.story.entry import Entry
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.object_task import ObjectTask
from konverge.runtime.writes import Writes, attribute_to
from konverge.workqueue import GatedQueue, WorkQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskHost:
    """A controller, as its timers and daemons see it."""

    controller: Controller[Any]
    settings: Settings
    numbers: ControllerNumbers
    primary: Informer
    queue: WorkQueue[Request]
    writes: Writes
    client: Client
    caches: Caches
    recorder: Recorder
    manager: str
    gate: GatedQueue[Request] | None
    """The queue, where this process works for some of the objects only."""
    is_busy: Callable[[], bool]
    caught_up: Callable[[Any], Awaitable[bool]]
    """Waits until the caches show the last writes of a request or task; False when they do not."""
    context: Callable[[Key, Record, Entry], Context[Any]]
    loop: asyncio.AbstractEventLoop

    @property
    def name(self) -> str:
        return self.controller.name

    def owns(self, key: Key) -> bool:
        """Whether an object is one that this process works for."""
        return self.gate is None or self.gate.admits(key)

    def begin_work(self, key: Key) -> None:
        """A timer or daemon works for an object: that counts like a reconcile, until `end_work`."""
        if self.gate is not None and self.gate.on_begin is not None:
            self.gate.on_begin(key)

    def end_work(self, key: Key) -> None:
        if self.gate is not None and self.gate.on_done is not None:
            self.gate.on_done(key)

    def decode(self, record: Record) -> Any:
        return from_json(self.controller.kind, record.raw)

    def attribute_writes(self, task: ObjectTask) -> None:
        """From here on, writes of the running asyncio task belong to this timer or daemon."""
        attribute_to(self.writes, task)

    async def read(self, task: ObjectTask) -> Context[Any]:
        """A context as a reconcile has it, never older than the task's own last write."""
        self.attribute_writes(task)
        if self.writes.has_written(task) and not await self.caught_up(task):
            raise TransientError("the cache does not show what was written last")
        record = self.primary.get(task.key)
        if record is None:
            raise TransientError("it is gone")
        return self.context(task.key, record, Entry(task, (), 0.0, self.loop.time()))

    def daemon_context(self, task: ObjectTask, record: Record) -> DaemonContext[Any]:
        return DaemonContext(
            task.key,
            self.controller.kind,
            record,
            read=partial(self.read, task),
            client=self.client,
            caches=self.caches,
            recorder=self.recorder,
            manager=self.manager,
        )

    def ended(self, task: ObjectTask) -> None:
        """A daemon has ended that held the deletion of its object: the clean-up can go on."""
        self.queue.add(task.key, reason=External(f"the end of {task.name}", task.key))

    def count_failure(self, task: ObjectTask) -> None:
        failures = self.numbers.task_failures
        failures[task.name] = failures.get(task.name, 0) + 1
