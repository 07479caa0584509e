"""What must always hold, whatever goes wrong. Checked at every change of the store, and once more at rest.

At every change:
- resourceVersions rise;
- nothing disappears while a finalizer holds it, unless by the very write that takes the last one off;
- no two pods of one name run at the same time, which for a StatefulSet means two of one ordinal;
- a Deployment has no more pods than its surge allows, and no deletion of a pod takes it below what must be available.

At rest: no object's owner is missing, and every cache is what the store is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from konverge.apiserver.storage import Event, Record, Store
from konverge.sim.kubelet.containers import Mode
from konverge.sim.observations import Observation
from konverge.sim.rollouts import Rollouts

if TYPE_CHECKING:
    from konverge.sim.cluster import Cluster

OWNED = ("/pods", "apps/replicasets", "batch/jobs", "discovery.k8s.io/endpointslices", "apps/controllerrevisions")


class Violation(AssertionError):
    """Something that must never happen has happened."""


class Invariants:
    """Watches over a cluster. `found` are the violations so far, each with the revision at which it was seen.

    The arithmetic of rollouts (`rollouts`) holds where only the cluster's controllers delete pods.
    """

    def __init__(self, cluster: Cluster, *, rollouts: bool = True) -> None:
        self._cluster = cluster
        self._last = 0
        self._rollouts = Rollouts() if rollouts else None
        self.found: list[str] = []

    def follow(self) -> None:
        """Look at every change from now on."""
        store = self._cluster.server.store
        for name in {*store.tables, *OWNED, "apps/deployments", "apps/statefulsets"}:
            store.subscribe(name, self._follower(name))
        if self._cluster.observations is not None:
            self._cluster.observations.ended.append(self._reconciled)

    def _follower(self, table: str) -> Callable[[Event], None]:
        return lambda event: self._changed(table, event)

    def check(self) -> None:
        """Raises the first violation."""
        if self.found:
            raise Violation(self.found[0])

    # -------------------------------------------------------------- at every change

    def _changed(self, table: str, event: Event) -> None:
        if event.revision <= self._last:
            self._report(event.revision, f"{table} {event.key}: revision {event.revision} after {self._last}")
        self._last = max(self._last, event.revision)
        if event.record is None:
            self._removed(table, event)
        if table == "/pods":
            self._one_of_a_name(event)
        problem = self._rollouts.changed(table, event) if self._rollouts is not None else ""
        if problem:
            self._report(event.revision, problem)

    def _reconciled(self, observed: Observation) -> None:
        problem = self._rollouts.ended(observed) if self._rollouts is not None else ""
        if problem:
            self._report(self._last, problem)

    def _removed(self, table: str, event: Event) -> None:
        """Watchers see an object go in the state that was stored before; the release shows what the last write did."""
        metadata = event.old.decode()["metadata"] if event.old is not None else {}
        held, release = metadata.get("finalizers") or (), event.release
        left = [name for name in held if release is None or name not in release.dropped]
        if left:
            self._report(event.revision, f"{table} {event.key} went although {', '.join(left)} held it")
        over = metadata.get("deletionTimestamp") and not metadata.get("deletionGracePeriodSeconds")
        if release is not None and release.by_update and not over:
            self._report(event.revision, f"{table} {event.key} went by an update before its deletion was due")

    def _one_of_a_name(self, event: Event) -> None:
        if event.record is None or event.old is not None:
            return
        running = [
            machine
            for machine in self._cluster.kubelet.machines.values()
            if f"{machine.pod.metadata.namespace}/{machine.pod.metadata.name}" == event.key
            and machine.pod.spec.node_name not in self._cluster.kubelet.lost
            and any(container.mode is Mode.RUNNING for container in machine.mains.values())
        ]
        if running and not all(machine.ending is not None for machine in running):
            self._report(event.revision, f"pod {event.key} was recreated while the old one still runs")

    def _report(self, revision: int, message: str) -> None:
        self.found.append(f"at revision {revision}: {message}")

    # -------------------------------------------------------------- at rest

    def at_rest(self) -> None:
        """For a cluster that has settled. Raises the first violation."""
        store = self._cluster.server.store
        uids = {_uid(record) for table in store.tables.values() for record in table.records.values()}
        for table in OWNED:
            for record in _records(store, table):
                self._owned(table, record, uids)
        self._caches(store)
        self.check()

    def _owned(self, table: str, record: Record, uids: set[str]) -> None:
        owners = msgspec.json.decode(record.data)["metadata"].get("ownerReferences") or []
        if owners and not any(owner["uid"] in uids for owner in owners):
            self._report(record.revision, f"{table} {record.key} is an orphan: {owners[0]['name']} is gone")

    def _caches(self, store: Store) -> None:
        for spec, informer in self._cluster.manager.caches.informers.items():
            if spec.label_selector or spec.field_selector or spec.namespaces:
                continue
            table = f"{spec.resource.group}/{spec.resource.plural}"
            stored = {(record.namespace, record.name): record.revision for record in _records(store, table)}
            cached = {(key.namespace, key.name): record.version for key, record in informer.items()}
            if stored != cached:
                odd = sorted(set(stored.items()) ^ set(cached.items()))[:3]
                self._report(store.revision, f"the cache of {spec} is not what is stored: {odd}")


def _uid(record: Record) -> str:
    uid: str = msgspec.json.decode(record.data)["metadata"]["uid"]
    return uid


def _records(store: Store, name: str) -> list[Record]:
    table = store.tables.get(name)
    return [] if table is None else list(table.records.values())
