"""How far a disk is, from its DataVolume, its claim and its storage class. Pure.

That a claim is bound says nothing about data: CDI binds before it fills where it works the older way, and after where
it works the newer. So where there is a DataVolume, its phase counts. Where there is none any more, CDI has tidied up
after itself, and the claim is all there is. A claim or DataVolume that waits for its first consumer waits for the
virtual machine: that is no reason to hold it back.
"""

from __future__ import annotations

import msgspec

from konverge.objects import Condition
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.quantity import Quantity
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.names import REQUESTED_SIZE
from konverge.operators.wukong.status import SPEC_VALID, VOLUMES_BOUND, Trouble
from konverge.runtime import find_condition

FIRST_CONSUMER = ("WaitForFirstConsumer", "PendingPopulation")
"""CDI's older and newer names of one phase: nothing is filled before a first consumer reads it."""
WAITING = "WaitingForFirstConsumer"


class Standing(msgspec.Struct, frozen=True):
    """How a disk stands."""

    bound: bool
    """The data is there."""
    trouble: Trouble | None = None
    """What the virtual machine has to wait for; None where it need not."""
    waiting: str = ""
    """What the disk waits for, if that is the virtual machine."""


_THERE = Standing(True)


def stands(
    disk: str,
    volume: DataVolume | None,
    claim: PersistentVolumeClaim | None,
    storage: StorageClass | None,
    *,
    restarts: int,
) -> Standing:
    """How a disk stands for which something has been made."""
    if claim is not None and claim.metadata.deletion_timestamp:
        return _no(disk, "ClaimDeleting", "its claim is being deleted, and is gone when nothing uses it any more")
    if claim is not None and claim.status.phase == "Lost":
        return _no(disk, "ClaimLost", "the volume of its claim is lost", failed=True)
    if volume is not None:
        if storage is None and claim is not None and claim.status.phase == volume.status.phase == "Pending":
            return _no(disk, "ClaimPending", _why_pending(claim, storage))
        return _of_volume(disk, volume, restarts)
    if claim is None:
        return _no(disk, "ClaimPending", "its claim is not there yet")
    if claim.status.phase == "Bound":
        return _THERE
    if storage is not None and storage.volume_binding_mode == "WaitForFirstConsumer":
        return Standing(False, waiting=f"disk {disk} waits for its first consumer")
    return _no(disk, "ClaimPending", _why_pending(claim, storage))


def _no(disk: str, reason: str, message: str, *, failed: bool = False) -> Standing:
    return Standing(False, Trouble(VOLUMES_BOUND, reason, f"disk {disk}: {message}", failed))


def _of_volume(disk: str, volume: DataVolume, restarts: int) -> Standing:
    status = volume.status
    bound, running = find_condition(status.conditions, "Bound"), find_condition(status.conditions, "Running")
    cause = _cause(running) or _cause(bound)
    if bound is not None and bound.reason == "ClaimLost":
        return _no(disk, "ClaimLost", "the volume of its claim is lost", failed=True)
    if status.phase == "Succeeded":
        return _THERE
    if status.phase in FIRST_CONSUMER:
        return Standing(False, waiting=f"disk {disk} waits for its first consumer")
    if status.phase == "Failed":
        return _no(disk, "ImportFailed", f"CDI has given up: {cause or 'no reason is given'}", failed=True)
    if status.restart_count >= restarts:
        message = f"the import failed {status.restart_count} times: {cause or 'no reason is given'}"
        return _no(disk, "ImportFailing", message)
    if status.phase == "UploadReady":
        return _no(disk, "WaitingForUpload", f"waits for data: virtctl image-upload dv {volume.metadata.name}")
    if status.phase == "Paused":
        return _no(disk, "ImportPaused", "the import is paused")
    how = ": ".join(text for text in (status.phase, cause) if text)  # without a phase CDI has refused it for now
    return _no(disk, "Importing", how or "CDI has not looked at it yet")


def _cause(condition: Condition | None) -> str:
    return condition.message if condition is not None and condition.status != "True" else ""


def _why_pending(claim: PersistentVolumeClaim, storage: StorageClass | None) -> str:
    name = claim.spec.storage_class_name
    if storage is not None:
        made = f"class {storage.metadata.name}, provisioner {storage.provisioner}, has made no volume"
        return f"its claim is pending: {made}"
    if name:
        return f"its claim is pending: there is no storage class {name}"
    return "its claim is pending: it names no storage class, and the cluster has no default one"


# ------------------------------------------------------------------ growing


def asked(volume: DataVolume | None, claim: PersistentVolumeClaim, size: str) -> str:
    """The size that was requested last, of a disk that CDI filled: its claim is larger, by what a file system takes.

    Where neither an annotation nor the DataVolume says so, it is not known, and a smaller request is believed.
    """
    noted = claim.metadata.annotations.get(REQUESTED_SIZE, "")
    if noted:
        return noted
    block = volume.spec.storage if volume is not None else None
    first = block.resources.requests.get("storage") if block is not None and block.resources is not None else None
    if first is not None:
        return str(first)
    present = requested(claim)
    return size if Quantity(size) < Quantity(present) else present


def requested(claim: PersistentVolumeClaim) -> str:
    return str(claim.spec.resources.requests.get("storage", "")) if claim.spec.resources is not None else ""


def capacity(claim: PersistentVolumeClaim) -> str:
    return str(claim.status.capacity.get("storage", ""))


def may_grow(
    disk: str, size: str, before: str, claim: PersistentVolumeClaim, storage: StorageClass | None
) -> Trouble | bool:
    """Whether the claim is to grow now, or why it never can."""
    desired, last = Quantity(size), Quantity(before)
    if desired == last:
        return False
    if desired < last:
        return Trouble(SPEC_VALID, "DiskCannotShrink", f"disk {disk} has {before} and cannot shrink to {size}", True)
    if claim.status.phase != "Bound":
        return False  # a claim grows when it has a volume
    if storage is None or storage.allow_volume_expansion is not True:
        name = storage.metadata.name if storage is not None else claim.spec.storage_class_name or "none"
        text = f"disk {disk} has {before} and cannot grow to {size}: storage class {name} allows no expansion"
        return Trouble(SPEC_VALID, "DiskCannotGrow", text, True)
    return True
