"""Webhooks in the life of a manager: served before anything else needs them, and longer than everything else.

Every replica serves, not only the leader. They start before the caches: to list a kind in one version, the API server
may have to ask for its conversion. They end last, after a delay: a pod is asked to end before its endpoint is gone.

Upstream: the group Webhooks of controller-runtime's pkg/manager/runnable_group.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from konverge.runtime.webhooks.places import Place, Serving
from konverge.runtime.webhooks.server import Reviews

if TYPE_CHECKING:
    from konverge.client import Client
    from konverge.runtime.manager import Manager

_log = logging.getLogger("konverge.webhooks")


@asynccontextmanager
async def serving_webhooks(manager: Manager, client: Client, stop: asyncio.Event) -> AsyncIterator[None]:
    """Inside the block the webhooks of a manager are served. Without webhooks, nothing is."""
    webhooks = manager.webhooks
    if webhooks is None or not webhooks.routes:
        yield
        return
    at_work = Serving(name=manager.name, webhooks=webhooks, client=client, reviews=Reviews(webhooks))
    manager.health.ready["webhook"] = at_work.check
    manager.numbers.more.append(at_work.reviews.metrics)
    place, ended = webhooks.place or _local(), asyncio.Event()
    if webhooks.definitions and place.behind_service:
        manager.readiness.serves_conversions()
    served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(_serve(place, at_work, served, ended), name="webhooks")
    stopping = asyncio.create_task(stop.wait(), name="webhooks wait for the end")
    try:
        waited: list[asyncio.Future[Any]] = [task, stopping, served]
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
        if served.done():
            manager.webhook_port = at_work.port
            _log.info("webhooks are served: %s", ", ".join(sorted(webhooks.routes)))
        elif task.done():
            await task  # raises why they cannot be served
        yield
        if served.done() and place.behind_service:
            manager.readiness.stopping = True
            await asyncio.sleep(webhooks.shutdown_delay)
    finally:
        ended.set()
        stopping.cancel()
        if not served.done():
            task.cancel()  # it still waits for something that a server needs
        await asyncio.wait([task, stopping])
    if not task.cancelled():
        task.result()


async def _serve(place: Place, at_work: Serving, served: asyncio.Future[None], ended: asyncio.Event) -> None:
    async with place.serving(at_work):
        served.set_result(None)
        await ended.wait()


def _local() -> Place:
    from konverge.runtime.webhooks.local import Loopback  # an installed operator does not load it

    return Loopback()
