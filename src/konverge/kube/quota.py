"""The ResourceQuota controller: the status of a quota follows what exists.

Admission counts up when an object is created; here everything is counted again when an object is created or deleted or
a pod ends, so that what is freed can be used again. The write is guarded by the version that was read: admission may be
counting at the same time.

Upstream: pkg/controller/resourcequota/resource_quota_controller.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec

from konverge.cache import CacheSpec, Change, Informer
from konverge.client import Client, MergePatch, UnknownKind, merge_between
from konverge.kube.listers import declared
from konverge.kube.pod_predicates import has_ended
from konverge.objects.amounts import Amounts, total
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service
from konverge.objects.meta import Object
from konverge.objects.quantity import Quantity
from konverge.objects.quota import usage
from konverge.objects.quota.scopes import Scope, claim_in_scope, no_scope, pod_in_scope, scopes_of
from konverge.objects.resource import Resource
from konverge.runtime import Context, Controller, Reconciler, Request, Result, Source, Watches, generation_changed
from konverge.runtime.context import Caches
from konverge.runtime.predicates import ChangePredicate

Obj = dict[str, Any]

RESYNC = 300.0
"""Seconds after which a quota is counted again in any case: pods past their grace period end without an event.
Upstream: the
default of ResourceQuotaSyncPeriod."""


class QuotaReconciler(Reconciler[ResourceQuota]):
    def __init__(self, counters: Counters) -> None:
        self._counters = counters

    # upstream: syncResourceQuota
    async def reconcile(self, ctx: Context[ResourceQuota]) -> Result | None:
        quota = ctx.obj
        if ctx.deleting:
            return None
        used = await self._count(ctx)
        status = ResourceQuotaStatus(hard=dict(quota.spec.hard), used=used)
        patch = merge_between({"status": quota.status}, {"status": status})
        if patch.body:
            patch = MergePatch({**patch.body, "metadata": {"resourceVersion": quota.metadata.resource_version}})
            await ctx.client.patch(ResourceQuota, ctx.request.name, patch, ctx.request.namespace, subresource="status")
        return Result(requeue_after=RESYNC)

    async def _count(self, ctx: Context[ResourceQuota]) -> Amounts:
        """What is used of each name in the quota. A name that is not known here keeps its value."""
        quota, names = ctx.obj, list(ctx.obj.spec.hard)
        used: Amounts = {}
        for kind, of, is_about, in_scope in _MEASURED:
            in_scopes = (obj for obj in _cached(ctx, kind) if all(in_scope(scope, obj) for scope in _scopes(quota)))
            used |= total(map(of, in_scopes), filter(is_about, names))
        for name in names:
            if name not in used:
                number = await self._counters.count(ctx.client, name, ctx.request)
                if number is not None:
                    used[name] = Quantity(0 if _scopes(quota) else number)
                elif name in quota.status.used:
                    used[name] = quota.status.used[name]
        return used


_MEASURED: tuple[
    tuple[type[Object], Callable[[Obj], Amounts], Callable[[str], bool], Callable[[Scope, Obj], bool]], ...
] = (
    (Pod, usage.of_pod, usage.is_pod_name, pod_in_scope),
    (Service, usage.of_service, usage.is_service_name, no_scope),
    (PersistentVolumeClaim, usage.of_claim, usage.is_claim_name, claim_in_scope),
)
"""Kinds that use more than a count: what an object uses, which names are about the kind, and which objects are in a
scope."""


def _scopes(quota: ResourceQuota) -> list[Scope]:
    return scopes_of(to_dict(quota))


def _cached(ctx: Context[Any], kind: type[Object]) -> Iterator[Obj]:
    informer = declared(ctx.caches, kind).informer
    return (msgspec.json.decode(record.raw) for _, record in informer.items(ctx.request.namespace))


# ------------------------------------------------------------------ counts of any kind


class Counters:
    """Counts of kinds by namespace, for the quotas that name them: `count/widgets.example.com`.

    A kind is watched (metadata only) from the first time that a quota names it. The informers belong to a source of the
    controller: they start and stop with it. Upstream: QuotaMonitor (resource_quota_monitor.go).
    """

    def __init__(self) -> None:
        self._informers: dict[Resource, Informer] = {}
        self._asked: dict[str, set[Request]] = {}
        self._fresh: asyncio.Queue[Informer] = asyncio.Queue()
        self._changed_quotas: asyncio.Queue[Request] = asyncio.Queue()

    async def count(self, client: Client, name: str, quota: Request) -> int | None:
        """How many objects of the named kind the quota's namespace has; None when the name is not that of a kind."""
        plural = name.removeprefix("count/")
        if plural == name and name not in usage.PLAIN:
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


# ------------------------------------------------------------------ declaration


def _quotas_of(obj: Object, caches: Caches) -> list[Request]:
    return [key for key, _ in declared(caches, ResourceQuota).informer.items(obj.metadata.namespace)]


@ChangePredicate
def _usage_changed(change: Change) -> bool:
    """The usage of a pod changes with its spec and with its end; its other changes do not matter."""
    if change.old is None or change.new is None:
        return True
    return generation_changed(change) or has_ended(change.old.raw) != has_ended(change.new.raw)


def controllers() -> list[Controller[Any]]:
    counters = Counters()
    return [
        Controller(
            ResourceQuota,
            QuotaReconciler(counters),
            watches=[
                Watches(Pod, lookup=_quotas_of, when=_usage_changed),
                Watches(Service, lookup=_quotas_of),
                Watches(PersistentVolumeClaim, lookup=_quotas_of),
            ],
            sources=[Source(name="counters", requests=counters.requests)],
        )
    ]
