"""Whether the objects of a cluster say themselves that something is still under way.

Only to shorten a wait that would be long: where they say nothing, the wait is the long one or that of the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge.apiserver.storage import Store
from konverge.check.gate.recorder import RESTLESS
from konverge.check.model import Obj

_GOOD = frozenset(("Ready", "Available", "AllReplicasReady", "ClusterAvailable", "Initialized", "Healthy"))
_BUSY = frozenset(("Progressing", "Reconciling", "Updating", "ScalingUp", "ScalingDown", "Pending", "Creating"))
_WORKLOADS = frozenset(("apps/statefulsets", "apps/replicasets", "apps/deployments"))
ROLLING = frozenset(("apps/statefulsets", "apps/deployments"))
"""Say how many pods have the newest template. Some operators delete the others one by one, one in each pass."""
_OVER = frozenset(("Succeeded", "Failed"))


def is_under_way(store: Store, since: int) -> bool:
    """Of what was written after a revision."""
    return any(is_busy(table, obj) for table, obj in _objects(store, since))


def _objects(store: Store, since: int) -> Iterator[tuple[str, Obj]]:
    for table in store.tables.values():
        if table.name not in RESTLESS:
            for record in table.records.values():
                if record.revision > since:
                    yield table.name, record.decode()


def is_busy(table: str, obj: Obj) -> bool:
    """Whether an object says that the user has to act."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    if metadata.get("deletionTimestamp"):
        return True
    if not isinstance(status, dict) or not isinstance(spec, dict):
        return False
    observed = status.get("observedGeneration")
    if isinstance(observed, int) and observed < metadata.get("generation", 0):
        return True
    if table in _WORKLOADS:
        wanted = spec.get("replicas", 1)
        updated = status.get("updatedReplicas", 0) if table in ROLLING else wanted
        return bool(wanted != status.get("readyReplicas", 0) or wanted != updated)
    if table == "/persistentvolumeclaims":
        return bool(_requested(spec) != (status.get("capacity") or {}).get("storage"))
    if table == "/pods" and status.get("phase") in _OVER:
        return False
    return _by_conditions(status.get("conditions"))


def _requested(spec: Obj) -> Any:
    return ((spec.get("resources") or {}).get("requests") or {}).get("storage")


def _by_conditions(conditions: Any) -> bool:
    if not isinstance(conditions, list):
        return False
    for condition in conditions:
        if isinstance(condition, dict):
            kind, holds = condition.get("type"), condition.get("status")
            if (kind in _GOOD and holds == "False") or (kind in _BUSY and holds == "True"):
                return True
    return False
