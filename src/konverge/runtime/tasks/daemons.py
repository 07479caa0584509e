"""The daemons of one controller: one task for each object that should have one, as the cache shows it.

`look` compares what runs with what should run, after every change, and begins or ends lives; it holds nothing that a
later look could not see again. A life that ends leads to another look, so a daemon for a new object of the same name
begins when the old one has ended, never beside it.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from konverge.cache.record import Key, Record
from konverge.observe import logs
from konverge.runtime.failures import Failures
from konverge.runtime.result import TerminalError
from konverge.runtime.retries import is_other_work, is_transient
from konverge.runtime.tasks.cancellation import authors_code
from konverge.runtime.tasks.daemon_context import DaemonContext
from konverge.runtime.tasks.declared import Daemon
from konverge.runtime.tasks.ending import end
from konverge.runtime.tasks.host import TaskHost
from konverge.runtime.tasks.object_task import ObjectTask
from konverge.runtime.tasks.restarts import Restarts
from konverge.workqueue import Item

_log = logging.getLogger("konverge.controller")


class _Life:
    """One daemon of one object, from its start to its end."""

    __slots__ = ("context", "declared", "ending", "record", "run")

    def __init__(
        self, declared: Daemon[Any], record: Record, context: DaemonContext[Any], run: asyncio.Task[None]
    ) -> None:
        self.declared = declared
        self.record = record
        """The object when it began."""
        self.context = context
        self.run = run
        """Its task; it is done when the daemon has done its work."""
        self.ending: asyncio.Task[None] | None = None

    def is_outdated(self, record: Record) -> bool:
        """Whether the object has another spec, for which the daemon should begin again."""
        return self.declared.restart_on_change and record is not self.record and is_other_work(self.record, record)


class Daemons:
    """The daemons of the objects of one controller."""

    def __init__(self, host: TaskHost) -> None:
        self._host = host
        self._declared = {daemon.name: daemon for daemon in host.controller.daemons}
        self._lives: dict[ObjectTask, _Life] = {}
        self._ended = False
        self._stage = f"cannot be judged by a daemon of {host.name}"

    def in_work(self) -> set[Key]:
        return {task.key for task, life in self._lives.items() if not life.run.done()}

    def is_held(self, key: Key) -> bool:
        lives = (self._lives.get(ObjectTask(key, name)) for name in self._declared)
        return any(life is not None and life.declared.holds_deletion and not life.run.done() for life in lives)

    def look(self, key: Key) -> None:
        """An object may have come, changed or gone."""
        if self._ended:
            return
        record = self._host.primary.get(key)
        for name, declared in self._declared.items():
            task = ObjectTask(key, name)
            life, wanted = self._lives.get(task), self._is_wanted(declared, key, record)
            if wanted is None or (life is not None and life.ending is not None):
                continue  # it cannot be judged now; or its end will lead here again
            if life is None:
                if wanted and record is not None:
                    self._begin(task, declared, record)
            elif not wanted or record is None or record.uid != life.record.uid or life.is_outdated(record):
                self._end(task, life)
            else:
                life.context.renew(record)

    def keys(self) -> set[Key]:
        return {task.key for task in self._lives}

    def cancel_foreign(self) -> None:
        """Cancel those of objects that are not ours any more, whatever their grace."""
        for task, life in self._lives.items():
            if not self._host.owns(task.key):
                life.run.cancel("the object moves to another replica")

    async def end(self) -> None:
        """End all; returns when they have ended."""
        self._ended = True
        lives = list(self._lives.items())
        for task, life in lives:
            if life.ending is None:
                self._end(task, life)
        endings = [life.ending for _, life in lives if life.ending is not None]
        if endings:
            await asyncio.wait(endings)

    def cancel(self) -> list[asyncio.Task[None]]:
        """Cancel whatever runs."""
        self._ended = True
        tasks = [task for life in self._lives.values() for task in (life.run, life.ending) if task is not None]
        for task in tasks:
            task.cancel()
        return tasks

    # -------------------------------------------------------------- lives

    def _is_wanted(self, declared: Daemon[Any], key: Key, record: Record | None) -> bool | None:
        """Whether an object should have a daemon; None when that cannot be said."""
        if record is None or record.meta.deletion_timestamp or not self._host.owns(key):
            return False
        quarantine = self._host.primary.quarantine
        if quarantine.unread(key):
            return None
        try:
            obj = self._host.decode(record)
            matches = declared.when is None or bool(declared.when(obj))
        except Exception as error:  # an object that cannot be read, or the author's function
            quarantine.report(key, record.version, record.uid, self._stage, error)
            return None
        quarantine.release(key, self._stage)
        if matches and declared.holds_deletion:
            # Not before the finalizer is there: the object could be gone while its daemon runs.
            return self._host.controller.finalizer in obj.metadata.finalizers
        return matches

    def _begin(self, task: ObjectTask, declared: Daemon[Any], record: Record) -> None:
        context = self._host.daemon_context(task, record)
        name = f"{self._host.name} {task}"
        run = asyncio.create_task(self._run(task, declared, context), name=name)
        self._lives[task] = _Life(declared, record, context, run)
        self._host.begin_work(task.key)
        run.add_done_callback(lambda _: self._host.end_work(task.key))

    def _end(self, task: ObjectTask, life: _Life) -> None:
        life.ending = asyncio.create_task(self._see_off(task, life), name=f"end of {life.run.get_name()}")

    async def _see_off(self, task: ObjectTask, life: _Life) -> None:
        """Wait for the end of a daemon, and look again: what waited for it can go on."""
        await end(life.run, life.context.stopped.set, life.declared.grace, _log)
        del self._lives[task]
        self._host.writes.forget(task)
        if life.declared.holds_deletion:
            self._host.ended(task)
        self.look(task.key)

    async def _run(self, task: ObjectTask, declared: Daemon[Any], context: DaemonContext[Any]) -> None:
        """Call the function until it returns, or this is cancelled."""
        host, restarts, attempt = self._host, Restarts(), 0
        host.attribute_writes(task)
        failures = Failures(host.name, getattr(declared.function, "__module__", ""))
        counts = host.numbers.daemons_running
        while True:
            attempt += 1
            logs.scope.set(logs.Scope(host.name, task, attempt))
            began = host.loop.time()
            counts[declared.name] = counts.get(declared.name, 0) + 1
            try:
                with authors_code():
                    await declared.function(context)
                return
            except Exception as error:  # the author's code, or what it speaks to
                host.count_failure(task)
                if isinstance(error, TerminalError):
                    _log.error("%s %s: %s (not started again until something changes)", host.name, task, error)
                    return
                pause = restarts.next_pause(host.loop.time() - began)
                report = failures.transient if is_transient(error) else failures.failed
                report(Item(task, 0, (), 0.0), error, attempt, pause)
            finally:
                counts[declared.name] -= 1
            if context.stopped.is_set():
                return
            await asyncio.sleep(pause)
