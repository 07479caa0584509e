"""One cluster besides the home cluster: its client, caches, events and engines.

Everything in here is the cluster's own, queues and workers included, so one that does not answer holds up nothing of
the others. Caches fill on standby replicas too; engines start when this process leads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from konverge.cache.quarantine import Quarantined
from konverge.client import Client
from konverge.objects.resource import Resource
from konverge.observe.events import EventRecorder
from konverge.observe.metrics import Counted, Numbers, RequestNumbers
from konverge.runtime.base_context import Recorder
from konverge.runtime.caches import SharedCaches
from konverge.runtime.clusters.access import OtherClusters
from konverge.runtime.clusters.engine import ClusterEngine
from konverge.runtime.clusters.feeds import Feeds
from konverge.runtime.config import CacheSettings
from konverge.runtime.declare import Controller, Settings
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.engine import Engine, reference
from konverge.runtime.problems import log_problems
from konverge.runtime.reconciled import Observer
from konverge.runtime.story.story import Story
from konverge.runtime.writes import Tracked


class Surroundings(Protocol):
    """What members have in common: the manager's declarations, and whether this process leads."""

    name: str
    controllers: Sequence[Controller[Any]]
    limits: CacheSettings
    numbers: Numbers
    leading: asyncio.Event
    observers: Sequence[Observer]
    story: Story

    @property
    def fed(self) -> Sequence[tuple[Controller[Any], Engine[Any]]]:
        """Controllers of the home cluster that watch kinds in the others, with their engines."""
        ...

    def fenced(self, client: Client) -> Client: ...
    def settings_of(self, controller: Controller[Any]) -> Settings: ...
    def recorder_of(self, writer: Client) -> Recorder: ...
    def others_of(self, controller: str) -> OtherClusters: ...
    async def dependencies_of(self, controller: Controller[Any]) -> None: ...


class Member:
    """One cluster, from its connection to its end."""

    def __init__(self, name: str, client: Client, around: Surroundings) -> None:
        self.name = name
        self.server = client.server
        self.requests = RequestNumbers()
        self.writer = around.fenced(Counted(client, self.requests))
        """For reconciles of other clusters. Their own writes are tracked by the caches of their own cluster."""
        self._ended = asyncio.Event()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.engines: dict[str, Engine[Any]] = {}
        """Those that have begun, by the name of the controller."""
        self.declared: dict[str, DeclaredCaches] = {}
        self._around = around
        tracked = Tracked(self.writer)
        self._tracked = tracked
        self.caches = SharedCaches(tracked, around.name, around.limits)
        self._controllers = {controller.name: controller for controller in around.controllers}
        for controller in around.controllers:
            self.declared[controller.name] = self.caches.declare(controller)
        self._feeds = Feeds(self.caches)
        for controller, engine in around.fed:
            declared = self.declared.setdefault(controller.name, DeclaredCaches(None))
            self._feeds.add(controller, declared, engine)

    @property
    def problem(self) -> str:
        """Why it is away, or an empty text."""
        errors = {informer.error for informer in self.caches.informers.values() if informer.error}
        if errors:
            return min(errors)
        return f"not synced yet: {', '.join(self.caches.unsynced)}" if self.caches.unsynced else ""

    async def run(self) -> None:
        """Until it is cancelled: first the reconciles end, then the events and the caches."""
        recorder = self._around.recorder_of(self.writer)
        log_problems(self.caches, f"cluster {self.name} at {self.server}", self._around.controllers, "")
        async with asyncio.TaskGroup() as caches:
            helpers = [
                caches.create_task(informer.run(), name=f"cluster {self.name} cache {informer.spec}")
                for informer in self.caches.informers.values()
            ]
            for informer in self.caches.informers.values():
                informer.quarantine.listeners.append(partial(_report, recorder, informer.spec.resource))
            if isinstance(recorder, EventRecorder):
                helpers.append(caches.create_task(recorder.run(), name=f"cluster {self.name} events"))
            try:
                async with asyncio.TaskGroup() as working:
                    for name, controller in self._controllers.items():
                        work = self._work(controller, recorder)
                        self._tasks[name] = working.create_task(work, name=f"cluster {self.name} controller {name}")
                    await self._ended.wait()
            finally:
                self._feeds.stop()
                for helper in helpers:
                    helper.cancel()

    async def _work(self, controller: Controller[Any], recorder: Recorder) -> None:
        around, declared = self._around, self.declared[controller.name]
        await self.caches.wait_filled(declared)
        await around.leading.wait()
        await around.dependencies_of(controller)
        if controller.component and isinstance(recorder, EventRecorder):
            recorder = recorder.named(controller.component)
        engine: Engine[Any] = ClusterEngine(
            replace(controller, name=f"{controller.name}@{self.name}"),
            cluster=self.name,
            clusters=around.others_of(controller.name),
            client=self._tracked,
            caches=declared,
            recorder=recorder,
            manager=controller.field_manager or around.name,
            settings=around.settings_of(controller),
            observers=around.observers,
            story=around.story,
        )
        self.engines[controller.name] = engine
        around.numbers.controllers.append(engine.numbers)
        try:
            await engine.run()
        finally:
            around.numbers.controllers.remove(engine.numbers)
            around.story.drop(engine.controller.name)

    def shut_down(self) -> None:
        """Take no new keys, and finish the queued ones."""
        self._ended.set()
        for name, task in self._tasks.items():
            if name in self.engines:
                self.engines[name].queue.shut_down()
            else:
                task.cancel()  # it has not begun: there is nothing to finish


def _report(recorder: Recorder, resource: Resource, entry: Quarantined) -> None:
    about = reference(resource, entry.key, entry.uid, entry.version)
    recorder.event("ObjectQuarantined", f"{entry.stage}: {entry.error}", about=about, type="Warning")
