"""What the simulated controllers have in common: a pace, one Controller each, and a status that is written once.

A reconcile ends what is deleted, leaves alone what is over, and lets `_advance` change the status of everything else.

A duration follows from the seed and from what takes that long, not from how many others were drawn before it: a test
with one machine more has the same history for all the others.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Any, ClassVar, Generic
from zlib import crc32

import msgspec

from konverge import clock
from konverge.objects.meta import Object, ObjectMeta
from konverge.runtime import Context, Controller, Request, Result, Watches
from konverge.runtime.context import Caches
from konverge.sim.kubevirt import faults
from konverge.sim.kubevirt.kinds import Foreign, T, kept, save, with_finalizers, without_finalizer

Span = tuple[float, float]
_REMEMBERED = 20_000
_HAIR = 1e-6


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, from the least to the most."""

    begin: Span = (0.2, 0.6)
    """Between the phases of a controller that has nothing to wait for."""
    boot: Span = (4.0, 9.0)
    """From the launcher pod that is ready to a guest that runs."""
    agent: Span = (12.0, 30.0)
    """From there to its guest agent."""
    stop: Span = (4.0, 12.0)
    """A guest that shuts down."""
    gone: Span = (2.0, 4.0)
    """What a VirtualMachine stays after its instance has gone."""
    importer: Span = (2.0, 5.0)
    """Until the pod that imports, clones or takes an upload has started."""
    transfer: Span = (25.0, 60.0)
    """An import."""
    clone: Span = (6.0, 15.0)
    restart: Span = (10.0, 20.0)
    """Between the attempts of an importer that fails."""
    migrate: Span = (2.0, 4.0)
    """Each phase of a migration."""
    snapshot: Span = (4.0, 10.0)
    restore: Span = (4.0, 10.0)
    network: Span = (4.0, 8.0)
    """A node that takes on another network."""
    retry: Span = (5.0, 5.0)
    """Until something is looked at again that no event announces."""


QUICK = Timings(
    boot=(1.0, 2.0),
    agent=(2.0, 4.0),
    stop=(0.5, 1.0),
    gone=(0.3, 0.6),
    importer=(0.5, 1.0),
    transfer=(3.0, 6.0),
    clone=(1.0, 2.0),
    restart=(3.0, 5.0),
    migrate=(0.4, 0.8),
    snapshot=(1.0, 2.0),
    restore=(1.0, 2.0),
    network=(1.0, 2.0),
    retry=(1.0, 1.0),
)
"""For tests on real time, and for people."""


class Pace(msgspec.Struct):
    """When the steps of objects are due. It remembers the moment at which each was first asked for."""

    seed: int = 0
    _due: dict[tuple[str, str], float] = msgspec.field(default_factory=dict)

    def draw(self, meta: ObjectMeta, step: str, span: Span) -> float:
        """How long a step of an object takes."""
        return clock.seeded(crc32(f"{self.seed}/{meta.namespace}/{meta.name}/{step}".encode())).uniform(*span)

    def left(self, meta: ObjectMeta, step: str, span: Span) -> float:
        """Seconds until a step is over; none when it is. It begins with the first question."""
        now = asyncio.get_running_loop().time()
        due = self._due.get((meta.uid, step))
        if due is None:
            self._tidy(now)
            due = self._due[meta.uid, step] = now + self.draw(meta, step, span)
        left = due - now
        return left if left > _HAIR else 0.0

    def begun(self, meta: ObjectMeta, step: str) -> bool:
        return (meta.uid, step) in self._due

    def again(self, meta: ObjectMeta, step: str) -> None:
        """The next call starts this step again."""
        self._due.pop((meta.uid, step), None)

    def _tidy(self, now: float) -> None:
        """What was over long ago is forgotten: objects say themselves how far they are."""
        if len(self._due) > _REMEMBERED:
            self._due = {key: due for key, due in self._due.items() if due > now - 3600}


def seconds(settings: Mapping[str, str], name: str, default: float) -> float:
    """A number of seconds among the settings of a fault."""
    try:
        return float(settings.get(name, default))
    except ValueError:
        return default


class KindController(ABC, Generic[T]):
    """The controller of one kind."""

    kind: ClassVar[type[Foreign]]
    short: ClassVar[str]
    """The short name of the kind, by which its faults are known."""
    name: ClassVar[str]
    component: ClassVar[str]
    """Who its Events are from."""
    finalizer: ClassVar[str] = ""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def controllers(self) -> list[Controller[Any]]:
        return [self._declared()]

    def _declared(self, *watches: Watches[Any], **options: Any) -> Controller[Any]:
        return Controller(
            self.kind,
            self.reconcile,
            name=self.name,
            component=self.component,
            watches=[faults.switches(self.kind), *watches],
            **options,
        )

    @abstractmethod
    async def reconcile(self, ctx: Context[T]) -> Result | None: ...


class PhaseController(KindController[T]):
    """The controller of a kind whose objects go through phases until they are over."""

    async def reconcile(self, ctx: Context[T]) -> Result | None:
        obj, client, finalizers = ctx.obj, ctx.client, [self.finalizer] if self.finalizer else []
        if ctx.deleting or self._is_over(obj):
            await self._release(ctx)
            if ctx.deleting:
                await without_finalizer(client, obj, *finalizers)
            return None
        before = kept(obj)
        await with_finalizers(client, obj, finalizers)
        left = await self._advance(ctx, await faults.of(ctx, self.short))
        await save(client, obj, before)
        if self._is_over(obj):
            await self._release(ctx)
        return again(left)

    @abstractmethod
    async def _advance(self, ctx: Context[T], wrong: faults.Faults) -> float:
        """As far as it goes; the answer is when to look again, infinity when something changes."""

    def _is_over(self, obj: T) -> bool:
        return False

    async def _release(self, ctx: Context[T]) -> None:
        """Let go of what the object holds: it is over, or deleted."""


def again(left: float) -> Result | None:
    return Result(requeue_after=left) if left < inf else None


def every(kind: type[Foreign]) -> Callable[[Object, Caches], Iterable[Request]]:
    """A change that concerns all objects of a kind."""

    def lookup(changed: Object, caches: Caches) -> Iterable[Request]:
        lister = caches.lister(kind)
        objects = lister.list(None) if lister is not None else []
        return [Request(obj.metadata.namespace, obj.metadata.name) for obj in objects]

    return lookup


def under(caches: Caches, kind: type[Foreign], index: str, value: str) -> Iterable[Request]:
    """The objects that an index has under a value."""
    lister = caches.lister(kind)
    return [] if lister is None else sorted(lister.keys_by_index(index, value))
