"""Puts what a controller has besides its reconciles at its engine: timers, daemons, and the call for what is gone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from konverge.cache.store import Change
from konverge.client import Client
from konverge.runtime.base_context import Recorder
from konverge.runtime.reasons import Changed
from konverge.runtime.result import Request
from konverge.runtime.tasks.gone import Gone, GoneObjects
from konverge.runtime.tasks.host import TaskHost
from konverge.runtime.tasks.object_tasks import ObjectTasks

if TYPE_CHECKING:
    from konverge.runtime.engine import Engine


def gone_objects(engine: Engine[Any], client: Client, recorder: Recorder, manager: str) -> GoneObjects | None:
    controller = engine.controller
    if controller.on_gone is None:
        return None

    def queue(request: Request, change: Change) -> None:
        engine.queue.add(request, reason=Changed(controller.kind.resource.kind, change))

    make = partial(Gone, client=client, caches=engine.caches, recorder=recorder, manager=manager)
    gone = GoneObjects(controller.on_gone, queue, make)
    if engine.gate is not None:
        gone.owns = engine.gate.admits
    gone.shows = lambda namespace: engine.caches.primary.covers([namespace])
    engine.caches.primary.add_handler(gone.changed, engine.is_busy)
    return gone


def object_tasks(engine: Engine[Any], client: Client, recorder: Recorder, manager: str) -> ObjectTasks | None:
    if not (engine.controller.timers or engine.controller.daemons):
        return None
    host = TaskHost(
        controller=engine.controller,
        settings=engine.settings,
        numbers=engine.numbers,
        primary=engine.caches.primary,
        queue=engine.queue,
        gate=engine.gate,
        writes=engine.writes,
        client=client,
        caches=engine.caches,
        recorder=recorder,
        manager=manager,
        is_busy=engine.is_busy,
        caught_up=engine.caught_up,
        context=engine.context,
        loop=engine.loop,
    )
    return ObjectTasks(host)
