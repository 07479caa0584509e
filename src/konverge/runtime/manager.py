"""The manager: brings declared controllers to life, in order, and ends them in order.

Start: connect → check permissions → serve health → fill caches → be elected → start controllers as their dependencies
become ready. End: take nothing new → finish what is queued, within a limit → end workers, then caches → flush events →
give the Lease back → close. Each step is awaited before the next; every task belongs to one task group.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

from konverge.cache.informer import CacheSpec
from konverge.client import Client
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.caches import SharedCaches, bulk_load
from konverge.runtime.context import Recorder
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.engine import Engine
from konverge.runtime.writes import Tracked

_log = logging.getLogger("konverge.manager")


class NoEvents:
    """A recorder for programs that record none."""

    def event(self, about: Object, type: str, reason: str, message: str) -> None: ...


class Manager:
    """Runs controllers.

    manager = Manager(client)
    manager.add(Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service]))
    async with manager.running():
        ...
    """

    def __init__(
        self,
        client: Client,
        *,
        name: str = "konverge",
        settings: Settings | None = None,
        recorder: Recorder | None = None,
        sync_timeout: float = 120.0,
        shutdown_timeout: float = 30.0,
    ) -> None:
        self.name = name
        self.client = Tracked(client)
        self.engines: dict[str, Engine[Any]] = {}
        self._settings = settings or Settings()
        self._recorder = recorder or NoEvents()
        self._sync_timeout = sync_timeout
        self._shutdown_timeout = shutdown_timeout
        self._controllers: list[Controller[Any]] = []
        self.caches = SharedCaches(self.client, name, CacheSpec(resource=Resource("", "", "", "")))

    def add(self, controller: Controller[Any]) -> Self:
        """Declare a controller. Before the start only."""
        if any(other.name == controller.name for other in self._controllers):
            raise ValueError(f"there is a controller {controller.name!r} already; give this one a name=…")
        self._controllers.append(controller)
        return self

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Everything is synced and at work inside the block, and has ended in order after it."""
        stop = asyncio.Event()
        ready = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self.serve(stop, ready), name=f"manager {self.name}")
        await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
        try:
            if ready.done():
                yield self
        finally:
            stop.set()
            await serving

    async def serve(self, stop: asyncio.Event, ready: asyncio.Future[None] | None = None) -> None:
        """The whole life, until `stop` is set. Raises what ended it otherwise."""
        for controller in self._controllers:
            self.engines[controller.name] = self._engine(controller)
        async with asyncio.TaskGroup() as group:
            with bulk_load():
                watching = [group.create_task(i.run(), name=f"cache {i.spec}") for i in self.caches.informers.values()]
                await self.caches.wait_synced(self._sync_timeout)
            working = [group.create_task(e.run(), name=f"controller {n}") for n, e in self.engines.items()]
            if ready is not None and not ready.done():
                ready.set_result(None)
            await stop.wait()
            await self._drain(working)
            for task in watching:
                task.cancel()

    async def _drain(self, working: list[asyncio.Task[None]]) -> None:
        for engine in self.engines.values():
            engine.queue.shut_down()
        _, late = await asyncio.wait(working, timeout=self._shutdown_timeout) if working else (set(), set())
        for task in late:
            _log.warning("%s did not finish within %g s and is ended", task.get_name(), self._shutdown_timeout)
            task.cancel()

    def _engine(self, controller: Controller[Any]) -> Engine[Any]:
        return Engine(
            controller,
            client=self.client,
            informers=self.caches.declare(controller),
            recorder=self._recorder,
            manager=self.name,
            settings=controller.settings or self._settings,
        )
