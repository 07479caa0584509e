"""Election locks: written for ever by whoever leads, and left behind by an operator that crashed.

A real operator that starts again waits until the lock of the dead one has run out, 15 s or more. That wait says nothing
about it, so a lock is released between two incarnations, as its holder would have done at a normal end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from konverge.apiserver.storage import Record
from konverge.client import Client, MergePatch, NotFound
from konverge.objects.resource import Resource

if TYPE_CHECKING:
    from konverge.check.model import Ref
    from konverge.sim.cluster import Cluster

LEADER = "control-plane.alpha.kubernetes.io/leader"
"""Of locks before there were Leases. upstream: client-go resourcelock.LeaderElectionRecordAnnotationKey"""
SUFFIX = "-lock"
"""Of ConfigMaps that belong to a pod for its life. upstream: operator-framework/operator-lib leader.Become"""

LEASES = "coordination.k8s.io/leases"
_OLD = {
    "/configmaps": Resource("", "v1", "ConfigMap", "configmaps", True),
    "/endpoints": Resource("", "v1", "Endpoints", "endpoints", True),
}
_LEASE = Resource("coordination.k8s.io", "v1", "Lease", "leases", True)


def is_lock(table: str, record: Record) -> bool:
    """Whether an object of an old kind is an election lock, and so no part of a state."""
    if table not in _OLD:
        return False
    obj = record.decode()
    if LEADER in (obj["metadata"].get("annotations") or {}):
        return True
    return table == "/configmaps" and record.name.endswith(SUFFIX) and not obj.get("data")


async def release(cluster: Cluster, written: Iterable[Ref]) -> None:
    """Free all Leases and locks among what the operator wrote; it has ended."""
    for ref in sorted(written):
        table = ref.resource
        record = cluster.server.store.get(table, f"{ref.namespace}/{ref.name}")
        if record is None:
            continue
        with suppress(NotFound):
            if table == LEASES:
                await _release_lease(cluster.client, record)
            elif is_lock(table, record):
                await _release_old(cluster.client, _OLD[table], record)


async def _release_lease(client: Client, record: Record) -> None:
    """As a holder does: LeaderElector.release."""
    if (record.decode().get("spec") or {}).get("holderIdentity"):
        freed = {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}}
        await client.patch(_LEASE, record.name, MergePatch(freed), record.namespace)


async def _release_old(client: Client, resource: Resource, record: Record) -> None:
    held = (record.decode()["metadata"].get("annotations") or {}).get(LEADER)
    if held is None:
        await client.delete(resource, record.name, record.namespace)
        return
    freed = json.dumps({**_decoded(held), "holderIdentity": "", "leaseDurationSeconds": 1})
    patch = MergePatch({"metadata": {"annotations": {LEADER: freed}}})
    await client.patch(resource, record.name, patch, record.namespace)


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
