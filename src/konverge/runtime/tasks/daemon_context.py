"""What a daemon works with: its object as it is now, a signal to stop, and writes that are those of the leader."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from konverge.cache.record import Record
from konverge.client import Client
from konverge.objects.codec import from_json
from konverge.objects.meta import Object
from konverge.runtime.base_context import BaseContext, Caches, Recorder
from konverge.runtime.context import Context
from konverge.runtime.result import Request

T = TypeVar("T", bound=Object)


class DaemonContext(BaseContext, Generic[T]):
    """One life of a daemon.

    async def follow(ctx: DaemonContext[Feed]) -> None:
        async for entry in entries_of(ctx.obj.spec.url):
            reading = await ctx.read()
            reading.obj.status.latest = entry
            await reading.save_status()
    """

    def __init__(
        self,
        request: Request,
        kind: type[T],
        record: Record,
        *,
        read: Callable[[], Awaitable[Context[T]]],
        client: Client,
        caches: Caches,
        recorder: Recorder,
        manager: str,
    ) -> None:
        self.request = request
        self.client = client
        self.log = logging.getLogger("konverge.controller")
        self.stopped = asyncio.Event()
        """Set when the daemon should end; it is cancelled after its grace."""
        self._kind = kind
        self._record = record
        self._returned = record
        """The state that `changed` compares with."""
        self._renewed = asyncio.Event()
        self._read = read
        self._caches = caches
        self._recorder = recorder
        self._manager = manager

    def _default_namespace(self) -> str:
        return self.request.namespace

    @property
    def obj(self) -> T:
        """The object as it is now: a copy of its latest known state, made at each access."""
        return from_json(self._kind, self._record.raw)

    async def changed(self) -> T:
        """Wait until the object is another than `changed` returned last (or than it was at the start)."""
        while self._record is self._returned:
            self._renewed.clear()
            await self._renewed.wait()
        self._returned = self._record
        return self.obj

    async def read(self) -> Context[T]:
        """The object to write on, with `apply`, `save_status` and all that a reconcile has.

        It shows what this daemon wrote before. Raises TransientError when the cache has not shown that in time.
        """
        return await self._read()

    async def apply(self, desired: Object, *, own: bool = True, adopt: bool = False, force: bool = True) -> bool:
        """Server-side apply, as in a reconcile: see `Context.apply`."""
        return (await self._apply(desired, self.obj if own else None, adopt=adopt, force=force)).differs

    def event(self, reason: str, message: str, *, type: str = "Normal", about: Object | None = None) -> None:
        """Record an event about the object (or another one)."""
        self._recorder.event(reason, message, about=about or self.obj, type=type)

    def renew(self, record: Record) -> None:
        """The object has another state."""
        self._record = record
        self._renewed.set()
