"""A cluster at rest, as data: another run may begin there instead of repeating the workload.

All that lasts is in the store and in the stand-ins' data; controllers, kubelets and the operator read it when they
start. Only what a recorder has counted so far is kept beside it, so that places and moments have the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.storage.records import record_from

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster

Parts = tuple[str, ...]
_INFORM = frozenset(("/events", "events.k8s.io/events"))


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What a recorder has counted."""

    first: int
    """The revision of the store when the run began."""
    time: float
    incarnation: int
    requests: int
    places: tuple[tuple[Parts, int], ...] = ()
    """Parts of a Place without its occurrence: how often it came."""
    moments: tuple[tuple[Parts, int], ...] = ()
    locks: tuple[Parts, ...] = ()
    """Leases and older election locks that the operator wrote: resource, namespace, name."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """After a step, at rest."""

    step: int
    revision: int
    records: dict[str, tuple[msgspec.Raw, ...]]
    """By table: objects as they are stored."""
    applications: dict[str, Any] | None = None
    counted: Counted


def taken(cluster: Cluster, step: int, counted: Counted) -> Snapshot:
    """Of a cluster that is at rest after a step."""
    store = cluster.server.store
    return Snapshot(
        step=step,
        revision=store.revision,
        records={
            table.name: tuple(msgspec.Raw(record.data) for record in table.records.values())
            for table in store.tables.values()
            if table.name not in _INFORM
        },
        applications=cluster.applications.export() if cluster.applications is not None else None,
        counted=counted,
    )


def put_back(cluster: Cluster, snapshot: Snapshot) -> None:
    """Into a cluster that has not started."""
    store = cluster.server.store
    for name, records in snapshot.records.items():
        table = store.table(name)
        for data in records:
            table.restore(record_from(bytes(data)))
    store.open(snapshot.revision, snapshot.revision)
    if cluster.applications is not None and snapshot.applications is not None:
        cluster.applications.restore(snapshot.applications)
