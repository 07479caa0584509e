"""Controllers whose requests are not objects of a kind: one for each node and claim, say, or for each tenant.

The controller's kind is the one that it is about; its requests come from `watches` and `sources` alone, and a reconcile
has a request and no object. All else is the same: one key is in work once at a time, failures are retried, a reconcile
sees its own last writes and is not woken by them.
"""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

from konverge import clock
from konverge.objects.meta import Object
from konverge.runtime.engine import Engine
from konverge.runtime.key_context import KeyContext
from konverge.runtime.mapping import WatchMapper, watch_mapper
from konverge.runtime.result import Result
from konverge.runtime.story.entry import Entry
from konverge.runtime.writes import attribute_to

T = TypeVar("T", bound=Object)


class KeyedEngine(Engine[T]):
    """The engine of a controller with `key=…`."""

    def _attach(self) -> None:
        for informer, watch in zip(self.caches.watched, self.controller.watched, strict=True):
            mapper = watch_mapper(self.controller, watch, informer, self.caches, self.enqueue)
            if isinstance(mapper, WatchMapper):
                self._mappers.append(mapper)
            self._listen(informer, mapper)

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self.settings.resync_period * clock.rng().uniform(0.9, 1.1))
            await self._replay()

    async def _attempt(self, entry: Entry) -> Result | None:
        postponed = self._postponed.pop(entry.key, ())
        if postponed:
            entry.reasons = (*postponed, *entry.reasons)
        attribute_to(self.writes, entry.key, entry)
        context: KeyContext[Any] = KeyContext(
            entry.key,
            client=self._client,
            caches=self.caches,
            recorder=self._recorder,
            manager=self._manager,
            entry=entry,
        )
        return await self._reconcile(cast("Any", context))

    def _warn(self, key: Any, reason: str, message: str) -> None:
        """There is no object to record an event about; the log has it."""

    def _is_deleting(self, key: Any) -> bool:
        return False
