"""Reads what pods refer to, and remembers which pods wait for it, so that they go on when it appears.

A kubelet would try again every few seconds; here the object's own event is the signal, so that virtual time stands
still while a pod waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from konverge.cache import Change
from konverge.client import NotFound
from konverge.objects.kinds.certificates_v1 import ClusterTrustBundle
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Secret
from konverge.runtime import Context, Request, Watches
from konverge.runtime.predicates import ChangePredicate
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.kubelet.references import Kind, Missing, missing, needs_bundles, of_containers, of_volumes

_KINDS: dict[Kind, type[ConfigMap] | type[Secret]] = {"ConfigMap": ConfigMap, "Secret": Secret}
Reference = tuple[str, str, str]
"""Kind, namespace and name of an object."""
_BUNDLES: Reference = ("ClusterTrustBundle", "", "")
"""All trust bundles: a pod may ask for any of a signer."""


class Supplies:
    """The ConfigMaps, Secrets and trust bundles of all pods."""

    def __init__(self) -> None:
        self._waiting: dict[Reference, set[Request]] = {}

    def watches(self) -> list[Watches[Any]]:
        when = ChangePredicate(self._is_awaited)
        return [
            *(Watches(kind, requests=self._users_of, when=when) for kind in _KINDS.values()),
            Watches(ClusterTrustBundle, requests=self._users_of_bundles, when=when),
        ]

    def _is_awaited(self, change: Change) -> bool:
        return bool(self._waiting)

    def _users_of(self, obj: ConfigMap | Secret) -> Iterable[Request]:
        return sorted(self._waiting.get((obj.kind, obj.metadata.namespace, obj.metadata.name), ()))

    def _users_of_bundles(self, bundle: ClusterTrustBundle) -> Iterable[Request]:
        return sorted(self._waiting.get(_BUNDLES, ()))

    async def look(self, ctx: Context[Pod], machine: PodMachine) -> Missing:
        """What the pod's containers would lack if they began now."""
        volumes = not machine.begun
        wanted = of_containers(ctx.obj) | (of_volumes(ctx.obj) if volumes else set())
        trusts = volumes and needs_bundles(ctx.obj)
        if trusts:
            self._waiting.setdefault(_BUNDLES, set()).add(ctx.request)
        namespace = ctx.obj.metadata.namespace
        for kind, name in wanted:  # before reading: what appears meanwhile leads to another reconcile
            self._waiting.setdefault((kind, namespace, name), set()).add(ctx.request)
        objects = {reference: await _read(ctx, *reference) for reference in sorted(wanted)}

        def keys(kind: Kind, name: str, binary: bool) -> Collection[str] | None:
            obj = objects[kind, name]
            if obj is None:
                return None
            return {*obj.data, *obj.binary_data} if binary and isinstance(obj, ConfigMap) else obj.data

        bundles = await ctx.client.list(ClusterTrustBundle) if trusts else ()
        lacking = missing(ctx.obj, keys, volumes=volumes, bundles=bundles)
        if lacking == Missing():
            self.forget(ctx.request)
        return lacking

    def forget(self, request: Request) -> None:
        """The pod waits for nothing any more."""
        for reference, requests in list(self._waiting.items()):
            requests.discard(request)
            if not requests:
                del self._waiting[reference]


async def _read(ctx: Context[Pod], kind: Kind, name: str) -> ConfigMap | Secret | None:
    """From the cache; what it does not have may have been created a moment ago, so the API server is asked."""
    cached = await ctx.get(_KINDS[kind], name)
    if cached is not None:
        return cached
    try:
        return await ctx.client.get(_KINDS[kind], name, ctx.obj.metadata.namespace)
    except NotFound:
        return None
