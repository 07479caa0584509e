"""The timers of one controller: one heap for all objects, and a task only for a call that is under way.

The calls of an object are due on a grid: its first call, and multiples of the interval after that. So a slow call, a
busy loop and the sum of many small delays move nothing; a call that is still under way when the next is due makes that
one late, and those that were missed are left out.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from konverge import clock
from konverge.cache.record import Key, Record
from konverge.observe import logs
from konverge.runtime.failures import Failures
from konverge.runtime.result import Quarantined, TerminalError
from konverge.runtime.retries import TRANSIENT_DELAY, is_other_work, is_transient
from konverge.runtime.tasks.cancellation import authors_code
from konverge.runtime.tasks.declared import Every
from konverge.runtime.tasks.host import TaskHost
from konverge.runtime.tasks.object_task import ObjectTask
from konverge.runtime.tasks.restarts import FIRST_DELAY, JITTER
from konverge.runtime.tasks.schedule import Schedule
from konverge.workqueue import Item

if TYPE_CHECKING:
    from konverge.runtime.context import Context


BROKEN_INTERVAL = 60.0
"""Seconds between calls for an object whose interval cannot be said: the author's function raises, or gives 0."""

_log = logging.getLogger("konverge.controller")


class _Timer:
    """One timer of one object."""

    __slots__ = ("changed", "declared", "failures", "last", "record", "slot")

    def __init__(self, declared: Every[Any], record: Record, slot: float, now: float) -> None:
        self.declared = declared
        self.record = record
        """The state that was looked at last."""
        self.slot = slot
        """The place on the grid of the next call."""
        self.last = slot
        """The place of the latest call that has ended; as `slot` before the first one."""
        self.changed = now
        """When the object's spec was last seen to change."""
        self.failures = 0
        """Calls that failed in a row."""


class Timers:
    """The timers of the objects of one controller."""

    def __init__(self, host: TaskHost) -> None:
        self._host = host
        self._loop = host.loop
        self._declared = {timer.name: timer for timer in host.controller.timers}
        self._states: dict[ObjectTask, _Timer] = {}
        self._schedule: Schedule[ObjectTask] = Schedule()
        self._handle: asyncio.TimerHandle | None = None
        self._handle_due = 0.0
        self._ready: deque[tuple[ObjectTask, _Timer]] = deque()
        self._calls: dict[ObjectTask, asyncio.Task[None]] = {}
        self._failures = {
            name: Failures(host.name, getattr(timer.function, "__module__", ""))
            for name, timer in self._declared.items()
        }
        self._ended = False

    def in_work(self) -> set[Key]:
        return {task.key for task in self._calls}

    def look(self, key: Key) -> None:
        """An object may have come, changed or gone."""
        record = self._host.primary.get(key)
        if record is not None and (record.meta.deletion_timestamp or not self._host.owns(key)):
            record = None
        for name, declared in self._declared.items():
            task = ObjectTask(key, name)
            state = self._states.get(task)
            if record is None:
                self._drop(task)
            elif state is None or state.record.uid != record.uid:
                self._begin(task, declared, record)
            elif state.record is not record:
                self._adjust(task, state, record)

    def keys(self) -> set[Key]:
        return {task.key for task in self._states}

    def cancel_foreign(self) -> None:
        """Cancel the calls for objects that are not ours any more."""
        for task, call in self._calls.items():
            if not self._host.owns(task.key):
                call.cancel("the object moves to another replica")

    async def end(self) -> None:
        """Make no further call, and wait for those under way."""
        self._ended = True
        if self._handle is not None:
            self._handle.cancel()
        self._ready.clear()
        if self._calls:
            await asyncio.wait(list(self._calls.values()))

    def cancel(self) -> list[asyncio.Task[None]]:
        """Make no further call, and cancel those under way."""
        self._ended = True
        if self._handle is not None:
            self._handle.cancel()
        for call in self._calls.values():
            call.cancel()
        return list(self._calls.values())

    # -------------------------------------------------------------- when

    def _begin(self, task: ObjectTask, declared: Every[Any], record: Record) -> None:
        now = self._loop.time()
        slot = now + self._seconds(task, declared.initial_delay, record)
        self._states[task] = _Timer(declared, record, slot, now)
        self._put(task, max(slot, now + declared.idle))

    def _drop(self, task: ObjectTask) -> None:
        if self._states.pop(task, None) is not None:
            self._schedule.remove(task)
            self._host.writes.forget(task)

    def _adjust(self, task: ObjectTask, state: _Timer, record: Record) -> None:
        """With another spec the object is not idle, and its interval may be another."""
        before, state.record = state.record, record
        if not is_other_work(before, record):
            return
        now = self._loop.time()
        state.changed = now
        waits = state.last < state.slot and not state.failures and task not in self._calls
        if waits and callable(state.declared.interval):
            interval = self._seconds(task, state.declared.interval, record) or BROKEN_INTERVAL
            state.slot = max(state.last + interval, now)
            self._put(task, state.slot)

    def _seconds(self, task: ObjectTask, given: float | Callable[[Any], float], record: Record) -> float:
        """A number of seconds as declared for this object; 0 when the author's function fails, which is reported."""
        if not callable(given):
            return given
        quarantine, stage = self._host.primary.quarantine, f"has no time for {task.name} of {self._host.name}"
        try:
            seconds = max(0.0, float(given(self._host.decode(record))))
        except Exception as error:
            quarantine.report(task.key, record.version, record.uid, stage, error)
            return 0.0
        quarantine.release(task.key, stage)
        return seconds

    def _put(self, task: ObjectTask, due: float) -> None:
        self._schedule.put(task, due)
        self._set_handle()

    def _set_handle(self) -> None:
        due = self._schedule.next_due
        if self._ended or due is None or (self._handle is not None and self._handle_due <= due):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle_due = due
        self._handle = self._loop.call_at(due, self._fire)

    def _fire(self) -> None:
        self._handle = None
        due = self._schedule.take_due(max(self._loop.time(), self._handle_due))
        self._ready.extend((task, self._states[task]) for task in due if task in self._states)
        self._spawn()
        self._set_handle()

    # -------------------------------------------------------------- calls

    def _spawn(self) -> None:
        """Begin calls that are due, as many at a time as the controller has workers."""
        limit = self._host.numbers.workers
        while self._ready and len(self._calls) < limit and not self._ended:
            task, state = self._ready.popleft()
            if self._states.get(task) is not state or task in self._calls:
                continue  # gone, or still under way: its end leads to the next call
            if wait := self._busy_until(state):
                self._put(task, wait)
                continue
            call = asyncio.create_task(self._call(task, state), name=f"{self._host.name} {task}")
            self._calls[task] = call
            self._host.begin_work(task.key)
            call.add_done_callback(lambda _, task=task, state=state: self._done(task, state))  # type: ignore[misc]

    def _busy_until(self, state: _Timer) -> float:
        """Until when the object has to be left alone, because it changed; 0 when it has been idle for long enough."""
        idle_at = state.changed + state.declared.idle
        return idle_at if idle_at > self._loop.time() else 0.0

    async def _call(self, task: ObjectTask, state: _Timer) -> None:
        numbers = self._host.numbers
        logs.scope.set(logs.Scope(self._host.name, task, numbers.timer_calls.get(task.name, 0)))
        declared = state.declared
        try:
            context = await self._host.read(task)
            if declared.when is None or declared.when(context.obj):
                await self._bounded(declared, context)
        except Quarantined:
            due = self._next(task, state)  # it was reported about the object, once for this version
        except TerminalError as error:
            self._terminal(task, error)
            due = self._next(task, state)
        except Exception as error:  # the author's code, or what it speaks to
            if self._states.get(task) is not state:
                return  # the object is gone, which explains it
            due = self._loop.time() + self._failed(task, state, error)
        else:
            due = self._next(task, state)
        if self._states.get(task) is state:
            self._schedule.put(task, due)

    async def _bounded(self, declared: Every[Any], context: Context[Any]) -> None:
        counts = self._host.numbers.timer_calls
        counts[declared.name] = counts.get(declared.name, 0) + 1
        async with asyncio.timeout(self._host.settings.timeout):
            with authors_code():
                await declared.function(context)

    def _done(self, task: ObjectTask, state: _Timer) -> None:
        self._calls.pop(task, None)
        self._host.end_work(task.key)
        present = self._states.get(task)
        if present is not None and present is not state:  # another object of this name waited for the end
            self._schedule.put(task, max(present.slot, self._loop.time()))
        self._spawn()
        self._set_handle()

    def _terminal(self, task: ObjectTask, error: TerminalError) -> None:
        """An error that the author does not want to be retried: the next call is the next one on the grid."""
        self._host.count_failure(task)
        _log.error("%s %s: %s", self._host.name, task, error)

    def _failed(self, task: ObjectTask, state: _Timer, error: Exception) -> float:
        """Count and log a failure; seconds until the next attempt."""
        state.failures += 1
        self._host.count_failure(task)
        transient = is_transient(error)
        longest = TRANSIENT_DELAY if transient else self._host.settings.max_delay
        delay = min(FIRST_DELAY * 2.0 ** min(state.failures - 1, 30), longest) * (1 + JITTER * clock.rng().random())
        report = self._failures[task.name].transient if transient else self._failures[task.name].failed
        report(_item(task), error, state.failures, delay)
        return delay

    def _next(self, task: ObjectTask, state: _Timer) -> float:
        """When the call after one that ended is due."""
        now, record = self._loop.time(), self._host.primary.get(task.key)
        state.failures = 0
        if record is None:
            return now  # it is gone, which `look` sees
        interval = self._seconds(task, state.declared.interval, record) or BROKEN_INTERVAL
        state.last = state.slot if state.declared.sharp else now
        state.slot = state.last + interval * max(1, math.ceil((now - state.last) / interval))
        return state.slot


def _item(task: ObjectTask) -> Item[Any]:
    return Item(task, 0, (), 0.0)
