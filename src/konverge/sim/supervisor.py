"""What keeps a cluster running: services side by side, and a manager that is restarted when it had to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from konverge.client import Client
from konverge.runtime import Controller, LeadershipLost, Manager, Settings
from konverge.runtime.manager import LeaderElection
from konverge.sim.observations import Observations

MANAGER = "kube-controller-manager"


@asynccontextmanager
async def running(work: Sequence[tuple[str, Coroutine[Any, Any, None]]]) -> AsyncIterator[None]:
    """All of this runs inside the block. What fails ends the rest, and is raised when the block is left."""

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            for name, coroutine in work:
                group.create_task(coroutine, name=name)

    task = asyncio.create_task(together(), name="cluster services")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Supervised:
    """Managers of the same controllers, one after the other: who loses the leadership ends, and another begins."""

    def __init__(
        self,
        client: Client,
        controllers: Callable[[], list[Controller[Any]]],
        *,
        paused: Collection[str],
        elected: bool,
        observations: Observations | None = None,
    ) -> None:
        self._client = client
        self._controllers = controllers
        self._paused = paused
        self._elected = elected
        self._sights = observations
        self._terms = 0
        self.manager: Manager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(stop, ready), name="managers")
        await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
        try:
            if ready.done():
                yield
        finally:
            stop.set()
            await serving

    async def _serve(self, stop: asyncio.Event, ready: asyncio.Future[None]) -> None:
        while not stop.is_set():
            self.manager = self._next()
            try:
                await self.manager.serve(stop, ready)
            except LeadershipLost:
                continue

    def _next(self) -> Manager:
        self._terms += 1
        election = None
        if self._elected:
            election = LeaderElection(name=MANAGER, namespace="kube-system", identity=f"{MANAGER}-{self._terms}")
        manager = Manager(
            self._client,
            name=MANAGER,
            settings=Settings(max_retries=0),  # a cluster's own controllers never give up, as kube-controller-manager
            check_permissions=False,
            paused=self._paused,
            leader_election=election,
        )
        for controller in self._controllers():
            manager.add(controller if self._sights is None else self._sights.through(controller))
        return manager
