"""How many objects there are of a kind that a quota names: `count/widgets.example.com`.

A kind is watched (metadata only) from the first time that a quota names it. The informers belong to a source of the
controller: they start and stop with it.

Upstream: QuotaMonitor (pkg/controller/resourcequota/resource_quota_monitor.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from konverge.cache import CacheSpec, Change, Informer
from konverge.client import Client, UnknownKind
from konverge.objects.quota.usage import PLAIN
from konverge.objects.resource import Resource
from konverge.runtime import Request


class Counters:
    """Counts of kinds by namespace, for the quotas that name them."""

    def __init__(self) -> None:
        self._informers: dict[Resource, Informer] = {}
        self._asked: dict[str, set[Request]] = {}
        self._fresh: asyncio.Queue[Informer] = asyncio.Queue()
        self._changed_quotas: asyncio.Queue[Request] = asyncio.Queue()

    async def count(self, client: Client, name: str, quota: Request) -> int | None:
        """How many objects of the named kind the quota's namespace has; None when the name is not that of a kind."""
        plural = name.removeprefix("count/")
        if plural == name and name not in PLAIN:
            return None
        try:
            resource = await client.mapper.find(plural)
        except UnknownKind:
            return None
        if not resource.namespaced:
            return None
        self._asked.setdefault(quota.namespace, set()).add(quota)
        informer = self._informer(client, resource)
        await informer.synced.wait()
        return sum(1 for _ in informer.items(quota.namespace))

    def _informer(self, client: Client, resource: Resource) -> Informer:
        known = self._informers.get(resource)
        if known is None:
            spec = CacheSpec(resource=resource, metadata_only=True)
            known = self._informers[resource] = Informer(client.caller, spec)
            self._fresh.put_nowait(known)
        return known

    async def requests(self) -> AsyncIterator[Request]:
        """The quotas in whose namespace objects were created or deleted; the informers run as long as this does."""
        async with asyncio.TaskGroup() as group:
            starter = group.create_task(self._start(group), name="quota counters")
            try:
                while True:
                    yield await self._changed_quotas.get()
            finally:
                starter.cancel()

    async def _start(self, group: asyncio.TaskGroup) -> None:
        while True:
            informer = await self._fresh.get()
            informer.add_handler(self._changed)
            group.create_task(informer.run(), name=f"quota counter {informer.spec}")

    def _changed(self, change: Change) -> None:
        if not change.initial and (change.old is None or change.new is None):
            for quota in self._asked.get(change.key.namespace, ()):
                self._changed_quotas.put_nowait(quota)
