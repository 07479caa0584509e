"""The caches of a manager: declared by controllers, shared by specification, started together.

Bulk loads create millions of short-lived objects and no reference cycles. So the cyclic garbage collector is off while
caches fill, and what they hold is frozen afterwards: a later full collection does not visit it.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from konverge.cache.informer import CacheSpec, Informer
from konverge.cache.store import IndexFunction, by_owner
from konverge.client import Client
from konverge.objects.meta import Object
from konverge.objects.resource import Resource
from konverge.runtime.config import CacheSettings
from konverge.runtime.declare import Controller


class CacheNotSynced(Exception):
    """A cache could not be filled in time; the text names the resource and the reason."""


@dataclass(slots=True)
class SharedCaches:
    """All informers of a manager, one for each distinct specification."""

    client: Client
    manager: str
    """The field manager: its part of owned objects' managedFields is kept."""
    limits: CacheSettings
    """From the configuration; part of every specification."""
    informers: dict[CacheSpec, Informer] = field(default_factory=dict)
    needed: set[CacheSpec] = field(default_factory=set)
    """Caches that must be filled before controllers start; the resources of the others may be missing in the
    cluster."""

    def declare(self, controller: Controller[Any]) -> dict[Resource, Informer]:
        """The informers that a controller reads and receives changes from."""
        informers: dict[Resource, Informer] = {}
        for spec, kind in _specs(controller):
            full_spec = replace(
                spec,
                # Our entry in managedFields says what we own; without it an apply could not be skipped.
                field_manager=self.manager,
                max_objects=self.limits.max_objects,
                list_timeout=self.limits.list_timeout,
                streaming=self.limits.streaming,
            )
            informer = self.informers.get(full_spec)
            if informer is None:
                informer = self.informers[full_spec] = Informer(self.client.caller, full_spec)
            for name, function in _indexes(controller, kind).items():
                informer.add_index(name, function)
            informers.setdefault(kind.resource, informer)
            if kind not in controller.optional:
                self.needed.add(full_spec)
        return informers

    async def wait_synced(self, limit: float) -> None:
        """Wait until every cache has its first state. Raises CacheNotSynced."""
        try:
            async with asyncio.timeout(limit):
                for informer in self.informers.values():
                    await self._filled(informer).wait()
        except TimeoutError:
            late = [informer for informer in self.informers.values() if not self._filled(informer).is_set()]
            reasons = "; ".join(f"{informer.spec}: {informer.error or 'no answer yet'}" for informer in late)
            raise CacheNotSynced(f"not synced within {limit:g} s: {reasons}") from None

    def _filled(self, informer: Informer) -> asyncio.Event:
        return informer.synced if informer.spec in self.needed else informer.answered

    @property
    def size(self) -> int:
        """How many objects all caches hold."""
        return sum(informer.count for informer in self.informers.values())

    @property
    def unsynced(self) -> list[str]:
        return [str(informer.spec) for informer in self.informers.values() if not self._filled(informer).is_set()]


def _specs(controller: Controller[Any]) -> Iterator[tuple[CacheSpec, type[Object]]]:
    primary = CacheSpec(
        resource=controller.kind.resource,
        namespaces=_namespaces(controller, controller.kind),
        label_selector=controller.label_selector,
        field_selector=controller.field_selector,
    )
    yield primary, controller.kind
    for owned in controller.owns:
        yield CacheSpec(resource=owned.resource, namespaces=_namespaces(controller, owned)), owned
    for watch in controller.watches:
        namespaces = _namespaces(controller, watch.kind) if watch.namespaces is None else watch.namespaces
        yield (
            CacheSpec(
                resource=watch.kind.resource,
                namespaces=namespaces,
                label_selector=watch.label_selector,
                field_selector=watch.field_selector,
            ),
            watch.kind,
        )
    for kind in controller.reads:
        yield CacheSpec(resource=kind.resource, namespaces=_namespaces(controller, kind)), kind


def _namespaces(controller: Controller[Any], kind: type[Object]) -> tuple[str, ...]:
    return controller.namespaces if kind.resource.namespaced else ()


def _indexes(controller: Controller[Any], kind: type[Object]) -> dict[str, IndexFunction]:
    own = controller.indexes.get(kind, {})
    return {"owner": by_owner, **own} if kind in controller.owns else own


@contextmanager
def bulk_load(freeze: Callable[[], bool]) -> Iterator[None]:
    """No cyclic garbage collection inside; what was created inside is frozen at the end, if `freeze` says so.

    There is no collection before the freeze: it would visit everything that was just created, in vain. What is frozen
    is never collected, so a process that runs many managers one after the other, as tests do, must not do this each
    time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freeze():
            gc.freeze()
        if enabled:
            gc.enable()
