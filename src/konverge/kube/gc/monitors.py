"""Metadata of every kind that the server serves, followed as kinds come and go.

The garbage collector looks at everything, so it cannot declare what it watches. `Monitors` asks discovery what there
is, keeps one metadata-only informer for each resource, and asks again when definitions change.

Upstream: GraphBuilder.syncMonitors (pkg/controller/garbagecollector/graph_builder.go), GarbageCollector.Sync.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from konverge.cache import CacheSpec, Change, Informer
from konverge.client import Client, ClientError
from konverge.client.discovery import Served
from konverge.objects.resource import Resource

DEFINITIONS = {("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")}
"""Kinds whose objects say what is served."""
DISCOVERY_DELAYS = (1.0, 5.0, 30.0, 600.0)
"""Seconds between two requests for discovery after a definition changed: discovery follows it, but not at once. The
last is for changes that no definition announces, such as those of an aggregated server. Upstream asks every 30 s.
"""

_NEEDED = {"delete", "list", "watch"}
# Events have no owners and are many, and events.k8s.io serves the same objects again.
_IGNORED = {("", "events"), ("events.k8s.io", "events")}

_log = logging.getLogger("konverge.kube")

OnChange = Callable[[Resource, Change], None]


def deletable(every: Iterable[Served]) -> list[Resource]:
    """What can be listed, watched and deleted, each in the preferred version of its group, or else in its first."""
    chosen: dict[tuple[str, str], Served] = {}
    for served in every:
        name = (served.resource.group, served.resource.plural)
        if name not in _IGNORED and set(served.verbs) >= _NEEDED and (served.preferred or name not in chosen):
            chosen[name] = served
    return [served.resource for served in chosen.values()]


class Monitors:
    """Informers of all resources. `run` follows what the server serves until it is cancelled."""

    def __init__(self, client: Client, on_change: OnChange) -> None:
        self._client = client
        self._on_change = on_change
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._changed = asyncio.Event()
        self.synced = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            quiet = len(DISCOVERY_DELAYS) - 1
            step = quiet
            while True:
                self._changed.clear()
                try:
                    await self._follow(group)
                except ClientError as error:
                    _log.warning("discovery failed and is asked again soon: %s", error)
                    step = min(step, quiet - 1)
                try:
                    async with asyncio.timeout(DISCOVERY_DELAYS[step]):
                        await self._changed.wait()
                    step = 0
                except TimeoutError:
                    step = min(step + 1, quiet)

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        self._client.mapper.invalidate()
        served = set(deletable(await self._client.mapper.all()))
        for resource in [resource for resource in self._running if resource not in served]:
            self._running.pop(resource).cancel()
        fresh = [self._start(group, resource) for resource in sorted(served - set(self._running), key=str)]
        for informer in fresh:
            await informer.synced.wait()
        self.synced.set()

    def _start(self, group: asyncio.TaskGroup, resource: Resource) -> Informer:
        informer = Informer(self._client.caller, CacheSpec(resource=resource, metadata_only=True))
        informer.add_handler(lambda change: self._on_change(resource, change))
        if (resource.group, resource.plural) in DEFINITIONS:
            informer.add_handler(self._redefined)
        self._running[resource] = group.create_task(informer.run(), name=f"monitor {resource.group_resource}")
        return informer

    def _redefined(self, change: Change) -> None:
        if not change.initial:
            self._changed.set()
