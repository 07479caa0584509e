"""The deletion of a definition: its instances are deleted first, and their finalizers are respected.

Upstream: pkg/controller/finalizer/crd_finalizer.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.apiserver.crd.definition.naming import FINALIZER, condition, copied, is_true, set_condition
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.storage import Store
from konverge.apiserver.storage.table import Table
from konverge.apiserver.strategy import Context, Obj

_STEP = 100
"""Instances that are deleted at a time: other requests get their turn in between."""
_PENDING = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"


def holds(obj: Obj) -> bool:
    """A definition is never removed by the first DELETE, which only marks it."""
    return not obj["metadata"].get("deletionTimestamp")


def mark(obj: Obj, context: Context) -> None:
    """Set a finalizer of the server's own, and a condition. This is no change of the spec."""
    metadata = obj["metadata"]
    metadata.pop("deletionGracePeriodSeconds", None)
    if FINALIZER in (metadata.get("finalizers") or ()):
        return
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), FINALIZER]
    if metadata.get("generation", 0) > 1:
        metadata["generation"] -= 1
    set_condition(obj, "Terminating", "True", "InstanceDeletionPending", _PENDING, timestamp())


def is_due(obj: Obj) -> bool:
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FINALIZER in (metadata.get("finalizers") or ())


def begin(obj: Obj, now: str) -> Obj | None:
    """The definition with its deletion in progress; None when that is already so."""
    terminating = condition(obj, "Terminating")
    if terminating is not None and terminating["reason"] == "InstanceDeletionInProgress":
        return None
    fresh = copied(obj)
    text = "CustomResource deletion is in progress"
    set_condition(fresh, "Terminating", "True", "InstanceDeletionInProgress", text, now)
    return fresh


def finish(obj: Obj, now: str) -> Obj:
    """The definition without our finalizer: the last state that watchers see."""
    fresh = copied(obj)
    if is_true(obj, "Established"):
        set_condition(fresh, "Terminating", "False", "InstanceDeletionCompleted", "removed all instances", now)
    else:
        set_condition(fresh, "Terminating", "False", "NeverEstablished", "resource was never established", now)
    left = [finalizer for finalizer in fresh["metadata"]["finalizers"] if finalizer != FINALIZER]
    fresh["metadata"].pop("finalizers")
    if left:
        fresh["metadata"]["finalizers"] = left
    return fresh


def delete_all(store: Store, table: Table) -> Iterator[None]:
    """Delete every instance, some with each step: those with finalizers are marked, the others removed."""
    for number, key in enumerate(list(table.keys()), 1):
        if number % _STEP == 0:
            yield
        record = table.records.get(key)
        if record is None:
            continue
        obj = record.decode()
        metadata = obj["metadata"]
        if not metadata.get("finalizers"):
            store.remove(table, key, expected=record.revision)
        elif not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = timestamp()
            metadata["deletionGracePeriodSeconds"] = 0
            metadata["generation"] = metadata.get("generation", 0) + 1
            store.put(table, obj, expected=record.revision)
