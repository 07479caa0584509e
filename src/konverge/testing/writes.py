"""`assert_no_writes`: nothing is written in a cluster while all is well."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from konverge.apiserver.storage import Event
from konverge.apiserver.storage.table import Table
from konverge.observe.logs import scope
from konverge.sim.cluster import RESTLESS
from konverge.testing.differences import Obj, differences, pairs

if TYPE_CHECKING:
    from konverge.sim import Cluster
    from konverge.testing.real import RealCluster

SHOWN = 10
"""Writes, and lines of one write, that a message shows."""


@dataclass(frozen=True, slots=True)
class Write:
    """One write: what was written, by whom, and what it changed."""

    verb: str
    what: str
    """The resource and the key: `apps/deployments default/shop`."""
    writers: tuple[str, ...]
    """The controller whose reconcile it was, and the field manager, as far as they are known."""
    subject: str
    """The key of the reconcile that wrote."""
    changes: tuple[str, ...]

    def __str__(self) -> str:
        by = " as ".join(self.writers) or "a client outside of a reconcile"
        reconcile = f" (in a reconcile of {self.subject})" if self.subject else ""
        more = [f"… {len(self.changes) - SHOWN} more"] if len(self.changes) > SHOWN else []
        lines = [f"  {line}" for line in (*self.changes[:SHOWN], *more)]
        return "\n".join((f"{by} {self.verb} {self.what}{reconcile}", *lines))


class Written(AssertionError):
    """Something was written that should not have been; `writes` has all of it."""

    def __init__(self, message: str, writes: list[Write]) -> None:
        super().__init__(message)
        self.writes = writes


@asynccontextmanager
async def assert_no_writes(
    cluster: Cluster | RealCluster, *, by: str = "", ignore: Collection[str] = RESTLESS
) -> AsyncIterator[list[Write]]:
    """Raises when anything in the cluster changes inside the block, and says who wrote what.

        await settled(cluster)
        async with assert_no_writes(cluster):
            await cluster.clock.advance(3600)

    `by` is the name of a controller or of a field manager: then only its writes count. `ignore` are resources that do
    not: Leases and Events unless given otherwise. The value is the list of the writes so far.
    """
    writes: list[Write] = []

    def observe(table: Table, event: Event) -> None:
        if table.name in ignore:
            return
        write = _write(table, event)
        if not by or by in write.writers:
            writes.append(write)

    observers = cluster.server.store.observers
    observers.append(observe)
    try:
        yield writes
    finally:
        observers.remove(observe)
    if writes:
        count = "1 write" if len(writes) == 1 else f"{len(writes)} writes"
        more = [f"… {len(writes) - SHOWN} more writes"] if len(writes) > SHOWN else []
        text = "\n".join((*(str(write) for write in writes[:SHOWN]), *more))
        raise Written(f"{count} where there should be none:\n{text}", writes)


def _write(table: Table, event: Event) -> Write:
    old = event.old.decode() if event.old is not None else None
    new = event.record.decode() if event.record is not None else None
    current = scope.get()
    verb = "created" if old is None else "deleted" if new is None else "changed"
    writers = (current.controller if current else "", _field_manager(old, new))
    known = tuple(dict.fromkeys(name for name in writers if name))
    kind = "Secret" if table.name == "/secrets" else ""  # a record does not have it
    changes = differences(old, new, kind) if old is not None and new is not None else []
    what = f"{table.name.lstrip('/')} {event.key}"
    return Write(verb, what, known, str(current.subject) if current else "", tuple(changes))


def _field_manager(old: Obj | None, new: Obj | None) -> str:
    """The manager of the write: its entry in managedFields changed, or (the same fields in the same second) it has the
    fields that changed."""
    before, after = _managed(old), _managed(new)
    changed = [entry for entry in after if entry not in before]
    paths = [path for path, _, _ in pairs(old or {}, new or {})]
    candidates = changed or [entry for entry in after if any(_has(entry.get("fieldsV1"), path) for path in paths)]
    return str(candidates[-1]["manager"]) if candidates else ""


def _managed(obj: Obj | None) -> list[Obj]:
    return ((obj or {}).get("metadata") or {}).get("managedFields") or []


def _has(fields: Any, path: str) -> bool:
    """Whether a set of fields has a path, as far as names lead: what is in lists counts as the list."""
    for name in path.partition("[")[0].split("."):
        if not isinstance(fields, dict) or f"f:{name}" not in fields:
            return False
        fields = fields[f"f:{name}"]
        if not fields:
            return True
    return True
