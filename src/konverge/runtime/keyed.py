"""Controllers whose requests are not objects of a kind: one for each node and claim, say, or for each tenant.

The controller's kind is the one that it is about; its requests come from `watches` and `sources` alone, and a reconcile
has a request and no object. All else is the same: one key is in work once at a time, failures are retried, a reconcile
sees its own last writes and is not woken by them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import Any, Generic, TypeVar, cast

from konverge import clock
from konverge.client import Client
from konverge.objects.meta import Object
from konverge.runtime.base_context import BaseContext, Caches, Recorder
from konverge.runtime.engine import Engine
from konverge.runtime.mapping import WatchMapper, watch_mapper
from konverge.runtime.reasons import Reason
from konverge.runtime.result import Result
from konverge.runtime.story.entry import Entry
from konverge.runtime.writes import attribute_to

Q = TypeVar("Q", bound=Hashable)
T = TypeVar("T", bound=Object)

_log = logging.getLogger("konverge.controller")


class KeyContext(BaseContext, Generic[Q]):
    """One reconcile of a request that is not an object.

    async def attach(ctx: KeyContext[Attachment]) -> None:
        node = await ctx.get(Node, ctx.request.node)
    """

    def __init__(
        self, request: Q, *, client: Client, caches: Caches, recorder: Recorder, manager: str, entry: Entry
    ) -> None:
        self.request = request
        self.client = client
        self.reasons: tuple[Reason, ...] = entry.reasons  # type: ignore[assignment]
        self.log = _log
        self._caches = caches
        self._recorder = recorder
        self._manager = manager
        self._entry = entry

    def _default_namespace(self) -> str:
        """That of the request, where it has one."""
        return str(getattr(self.request, "namespace", ""))

    async def apply(self, desired: Object, *, owner: Object | None = None, force: bool = True) -> bool:
        """Server-side apply, as `Context.apply`; with an owner that object controls what is applied."""
        return (await self._apply(desired, owner, adopt=False, force=force)).differs

    def event(self, reason: str, message: str, *, about: Object, type: str = "Normal") -> None:
        """Record an event about an object."""
        self._recorder.event(reason, message, about=about, type=type)
        if self._entry is not None:
            self._entry.event(type, reason, message, about)


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
