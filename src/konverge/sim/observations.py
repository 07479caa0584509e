"""What a controller saw when it acted.

Caches lag behind the store, and under faults by as much as you like: a decision can be right by what was seen and still
meet a world that has moved on. So that invariants can distinguish a wrong decision from a late view, the caches of a
reconcile are remembered as they are when it begins, and an observer of a write can ask who wrote it and what the writer
saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import msgspec

from konverge.cache.record import Record
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.meta import Object
from konverge.runtime import Context, Controller, Reconciler, Result

Obj = dict[str, Any]

REMEMBERED: dict[type[Object], tuple[type[Object], ...]] = {
    Deployment: (Deployment, ReplicaSet),
    ReplicaSet: (ReplicaSet, Pod),
}
"""By the kind of a controller: which of its caches are remembered."""

_current: ContextVar[Observation | None] = ContextVar("observed", default=None)


class Observation(msgspec.Struct, eq=False):
    """The caches of one reconcile, of its namespace, as they were when it began."""

    kind: type[Object]
    uid: str
    """Of the object that is reconciled."""
    records: dict[type[Object], dict[str, Record]]
    """By kind and uid."""
    dismissed: set[str] = msgspec.field(default_factory=set)
    """Pods that it has deleted."""

    @property
    def version(self) -> int:
        """Of the object that is reconciled."""
        return self.records[self.kind][self.uid].version

    def obj(self) -> Obj:
        return _decode(self.records[self.kind][self.uid])

    def owned(self, kind: type[Object]) -> Iterator[tuple[str, Record]]:
        """The objects of a kind that it controls, by uid."""
        for uid, record in self.records[kind].items():
            if any(owner.controller and owner.uid == self.uid for owner in record.meta.owner_references):
                yield uid, record

    def pods(self) -> dict[str, Obj]:
        """Those of a ReplicaSet."""
        return {uid: _decode(record) for uid, record in self.owned(Pod)}


def _decode(record: Record) -> Obj:
    obj: Obj = msgspec.json.decode(record.raw)
    return obj


def current() -> Observation | None:
    """What the reconcile saw in which this is called, if it is one that is remembered."""
    return _current.get()


class Observations:
    """Records what controllers see; `ended` are called for each reconcile that succeeded."""

    def __init__(self) -> None:
        self.ended: list[Callable[[Observation], None]] = []

    def through(self, controller: Controller[Any]) -> Controller[Any]:
        """The same controller, with what it sees remembered, if its kind is one of those."""
        inner = controller.reconciler
        kinds = REMEMBERED.get(controller.kind)
        if kinds is None or not isinstance(inner, Reconciler):
            return controller

        async def reconcile(ctx: Context[Any]) -> Result | None:
            observed = Observation(
                controller.kind, ctx.obj.metadata.uid, {kind: _remember(ctx, kind) for kind in kinds}
            )
            token = _current.set(observed)
            try:
                result = await inner.reconcile(ctx)
            finally:
                _current.reset(token)
            for notify in self.ended:
                notify(observed)
            return result

        return replace(controller, reconciler=reconcile)


def _remember(ctx: Context[Any], kind: type[Object]) -> dict[str, Record]:
    lister = ctx.caches.lister(kind)
    assert lister is not None, f"{kind.__name__} is not cached"
    return {record.uid: record for _, record in lister.informer.items(ctx.request.namespace)}
