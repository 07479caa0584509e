"""What there is to collect: one metadata-only informer for each resource that discovery lists.

The garbage collector looks at everything, so it cannot declare what it watches. `Monitors` asks discovery what there
is, and asks again when definitions change. A group that discovery could not ask about keeps its informers: its server
is away, its objects are not.

Upstream: GraphBuilder.syncMonitors (graph_builder.go), GarbageCollector.Sync, GetDeletableResources.
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
SETTLE = 0.2
"""Seconds that a change of a definition waits for others: they are installed in groups, and each of them is written
several times until it is served.
"""
SYNC_TIMEOUT = 30.0
"""Seconds that new informers may take before work goes on without them: one kind that cannot be listed must not stop
the collection of all others. Upstream: initialSyncTimeout (cmd/kube-controller-manager/app/core.go).
"""

_NEEDED = {"delete", "list", "watch"}
# Events have no owners and are many, and events.k8s.io serves the same objects again. Upstream: ignoredResources.
_IGNORED = {("", "events"), ("events.k8s.io", "events")}

_log = logging.getLogger("konverge.kube.gc")


def deletable(every: Iterable[Served]) -> list[Resource]:
    """What can be listed, watched and deleted, each in the preferred version of its group, or else in its first."""
    chosen: dict[tuple[str, str], Served] = {}
    for served in every:
        name = (served.resource.group, served.resource.plural)
        if name not in _IGNORED and set(served.verbs) >= _NEEDED and (served.preferred or name not in chosen):
            chosen[name] = served
    return [served.resource for served in chosen.values()]


class Monitors:
    """Informers of all resources. `run` follows what the server serves until it is cancelled.

    `on_change` receives every change of every object; `on_stopped` a resource whose objects are no longer watched;
    `on_discovered` is called when the served kinds have changed.
    """

    def __init__(
        self,
        client: Client,
        on_change: Callable[[Resource, Change], None],
        on_stopped: Callable[[Resource], None],
        on_discovered: Callable[[], None],
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._on_stopped = on_stopped
        self._on_discovered = on_discovered
        self._running: dict[Resource, asyncio.Task[None]] = {}
        self._kinds: dict[tuple[str, str], Resource] = {}
        self._followed: tuple[list[Served], set[str]] | None = None
        self._changed = asyncio.Event()
        self.synced = asyncio.Event()
        self.has_unknown = False
        """An object refers to a kind that is not served: discovery is asked more often until it is."""

    def kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of exactly this version and kind, as of the last discovery. Upstream: RESTMapping."""
        return self._kinds.get((api_version, kind))

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
                if self.has_unknown:
                    step = min(step, quiet - 1)
                try:
                    async with asyncio.timeout(DISCOVERY_DELAYS[step]):
                        await self._changed.wait()
                    await asyncio.sleep(SETTLE)
                    step = 0
                except TimeoutError:
                    step = min(step + 1, quiet)

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        self._client.mapper.invalidate()
        every = await self._client.mapper.all()
        away = self._client.mapper.unavailable
        if (every, away) == self._followed:
            return
        served = set(deletable(every))
        served |= {resource for resource in self._running if resource.api_version in away}
        kinds = {(entry.resource.api_version, entry.resource.kind): entry.resource for entry in reversed(every)}
        changed, self._kinds = kinds != self._kinds, kinds
        for resource in [resource for resource in self._running if resource not in served]:
            self._running.pop(resource).cancel()
            self._on_stopped(resource)
        fresh = [self._start(group, resource) for resource in sorted(served - set(self._running), key=str)]
        await self._wait_for(fresh)
        self._followed = (every, away)
        self.synced.set()
        if changed:
            self._on_discovered()

    async def _wait_for(self, informers: list[Informer]) -> None:
        try:
            async with asyncio.timeout(SYNC_TIMEOUT):
                for informer in informers:
                    await informer.synced.wait()
        except TimeoutError:
            late = ", ".join(str(informer.spec) for informer in informers if not informer.synced.is_set())
            _log.warning("not listed yet: %s; the collection of other kinds goes on", late)

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
