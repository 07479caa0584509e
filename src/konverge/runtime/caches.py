"""The caches of a manager: declared by controllers, shared where the specifications are equal, started together."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from msgspec.structs import replace

from konverge.cache.informer import Informer
from konverge.cache.spec import CacheSpec
from konverge.cache.store import IndexFunction, by_owner
from konverge.client import Client
from konverge.objects.meta import Object, PartialObjectMetadata
from konverge.runtime.config import CacheSettings
from konverge.runtime.declare import Controller
from konverge.runtime.declared import DeclaredCaches, Sets
from konverge.runtime.indexing import of_form
from konverge.runtime.relations import CachedKind, Watches


class CacheNotSynced(Exception):
    """A cache could not be filled in time; the text names the resource and the reason."""


class SharedCaches(msgspec.Struct):
    """All informers of a manager, one for each distinct specification."""

    client: Client
    manager: str
    """The field manager: its part of owned objects' managedFields is kept."""
    limits: CacheSettings
    """From the configuration; part of every specification."""
    informers: dict[CacheSpec, Informer] = msgspec.field(default_factory=dict)
    needed: set[CacheSpec] = msgspec.field(default_factory=set)
    """Caches that must be filled before controllers start; the resources of the others may be missing in the
    cluster."""
    sets: Sets = msgspec.field(default_factory=dict)

    def declare(self, controller: Controller[Any]) -> DeclaredCaches:
        """The informers that a controller reads and receives changes from."""
        declared = DeclaredCaches(controller)
        declared.sets = self.sets
        primary = _spec(controller.kind, controller.namespaces, controller.label_selector, controller.field_selector)
        declared.primary = self._use(declared, controller, controller.kind, primary)
        declared.owned = [self._declared(declared, controller, owned.kind, owned) for owned in controller.owned]
        declared.watched = [self._declared(declared, controller, watch.kind, watch) for watch in controller.watched]
        for use in controller.uses:
            if use.cached and isinstance(use.kind, type):
                self._declared(declared, controller, use.kind, use)
        return declared

    def watch(self, declared: DeclaredCaches, controller: Controller[Any], watch: Watches[Any]) -> Informer:
        """The informer of one watched kind, beside those that were declared."""
        return self._declared(declared, controller, watch.kind, watch)

    def _declared(
        self, caches: DeclaredCaches, controller: Controller[Any], kind: type[Object], declared: CachedKind
    ) -> Informer:
        namespaces = controller.namespaces if declared.namespaces is None else declared.namespaces
        spec = replace(
            _spec(kind, namespaces, declared.label_selector, declared.field_selector),
            metadata_only=declared.cache.metadata_only or issubclass(kind, PartialObjectMetadata),
            projection=declared.cache.project,
            transform=declared.cache.transform,
        )
        return self._use(caches, controller, kind, spec)

    def _use(
        self, declared: DeclaredCaches, controller: Controller[Any], kind: type[Object], spec: CacheSpec
    ) -> Informer:
        full_spec = replace(
            spec,
            # Our entry in managedFields says what we own; without it an apply could not be skipped. A partial cache
            # is never compared with what is applied.
            field_manager=(controller.field_manager or self.manager) if spec.whole else "",
            max_objects=self.limits.max_objects,
            list_timeout=self.limits.list_timeout,
            streaming=self.limits.streaming,
        )
        informer = self.informers.get(full_spec)
        if informer is None:
            informer = self.informers[full_spec] = Informer(self.client.caller, full_spec)
        form = spec.read_as(kind)
        indexes = {name: of_form(function, form) for name, function in _indexes(controller, kind, form).items()}
        names = {name: informer.ensure_index(name, function) for name, function in indexes.items()}
        declared.add(informer, names, form)
        if kind not in controller.optional_kinds:
            self.needed.add(full_spec)
        return informer

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

    async def wait_filled(self, declared: DeclaredCaches) -> None:
        """Wait until the caches of one controller have their first state, however long that takes."""
        for informers in declared.by_resource.values():
            for informer in informers:
                await self._filled(informer).wait()

    def _filled(self, informer: Informer) -> asyncio.Event:
        return informer.synced if informer.spec in self.needed else informer.answered

    @property
    def size(self) -> int:
        """How many objects all caches hold."""
        return sum(informer.count for informer in self.informers.values())

    @property
    def unsynced(self) -> list[str]:
        return [str(informer.spec) for informer in self.informers.values() if not self._filled(informer).is_set()]


def _spec(
    kind: type[Object], namespaces: tuple[str, ...], label_selector: str = "", field_selector: str = ""
) -> CacheSpec:
    return CacheSpec(
        resource=kind.resource,
        namespaces=namespaces if kind.resource.namespaced else (),
        label_selector=label_selector,
        field_selector=field_selector,
    )


def _indexes(controller: Controller[Any], kind: type[Object], form: type[Any]) -> dict[str, IndexFunction]:
    """The indexes that are declared for a kind, or for the class of what its cache keeps."""
    own = {**controller.index_functions.get(kind, {}), **controller.index_functions.get(form, {})}
    if all(owned.kind is not kind for owned in controller.owned):
        return own
    if own.get("owner", by_owner) is not by_owner:
        raise ValueError(f"the index 'owner' of {kind.__name__} is built in, for ctx.owned: give yours another name")
    return {"owner": by_owner, **own}
