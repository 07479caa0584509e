"""Timers and daemons of one controller: they begin when it runs, follow the cache, and have ended when it ends.

Only the process that leads runs its controllers, so only the leader has timers and daemons. After a restart they begin
from what the cache holds.
"""

from __future__ import annotations

import asyncio
import logging

from konverge.cache.record import Key
from konverge.cache.store import Change
from konverge.runtime.tasks.daemons import Daemons
from konverge.runtime.tasks.host import TaskHost
from konverge.runtime.tasks.timers import Timers

ABORT_LIMIT = 5.0
"""Seconds that timers and daemons have to end when they are cancelled because the controller was."""

_log = logging.getLogger("konverge.controller")

PER_TURN = 256
"""Objects that are looked at before other tasks run."""


class ObjectTasks:
    """Follows the cache of a controller's kind for its timers and daemons."""

    def __init__(self, host: TaskHost) -> None:
        self._host = host
        self._running = False
        self._timers = Timers(host)
        self._daemons = Daemons(host)
        host.primary.add_handler(self._changed, host.is_busy)

    def is_held(self, key: Key) -> bool:
        """Whether a daemon that holds the deletion of its object still runs."""
        return self._daemons.is_held(key)

    def in_work(self) -> set[Key]:
        """The objects that a timer or a daemon works for at this moment."""
        return {*self._timers.in_work(), *self._daemons.in_work()}

    async def start(self) -> None:
        """Begin with what the cache holds."""
        self._running = True
        await self.refresh()

    async def refresh(self) -> None:
        """Look at every object again: which of them are ours may be another matter than before."""
        if not self._running:
            return
        for number, (key, _) in enumerate(self._host.primary.items(), 1):
            self._daemons.look(key)
            self._timers.look(key)
            if number % PER_TURN == 0:
                await asyncio.sleep(0)

    def let_go(self, *, within: float) -> None:
        """Some objects are not ours any more: call their timers no more, end their daemons, cancel what is late."""
        for key in {*self._timers.keys(), *self._daemons.keys()}:
            self._daemons.look(key)
            self._timers.look(key)
        self._host.loop.call_later(within, self._cancel_foreign)

    def _cancel_foreign(self) -> None:
        self._timers.cancel_foreign()
        self._daemons.cancel_foreign()

    async def end(self) -> None:
        """Call no timer again and end all daemons; returns when all have ended."""
        self._running = False
        await asyncio.gather(self._timers.end(), self._daemons.end())

    async def abort(self) -> None:
        """Cancel whatever still runs. One that ignores this is left behind: it cannot write without leadership."""
        self._running = False
        tasks = [*self._timers.cancel(), *self._daemons.cancel()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=ABORT_LIMIT)
            for task in late:
                _log.error("%s has not ended %g s after its cancellation: left behind", task.get_name(), ABORT_LIMIT)

    def _changed(self, change: Change) -> None:
        if self._running:
            self._daemons.look(change.key)
            self._timers.look(change.key)
