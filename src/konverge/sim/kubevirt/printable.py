"""The one word of `kubectl get vm`: the first of these that holds, in KubeVirt's own order. Pure."""

from __future__ import annotations

from konverge.sim.kubevirt.kinds import Instance, Obj, VirtualMachine, condition, is_true

FINAL = ("Succeeded", "Failed")


def printable(machine: VirtualMachine, instance: Instance | None, *, moving: bool, binding: bool) -> str:
    """`moving`: a migration is under way; `binding`: a claim waits for its first consumer."""
    status: Obj = instance.status if instance is not None else {}
    phase = status.get("phase", "")
    synchronized = condition(status, "Synchronized")
    reason = synchronized.get("reason", "") if synchronized.get("status") == "False" else ""
    starting = instance is not None and phase in ("", "Pending", "Scheduling", "Scheduled")
    waits = condition(status, "DataVolumesReady").get("status") == "False"
    unplaced = condition(status, "PodScheduled").get("reason") == "Unschedulable"
    checks = (
        ("Terminating", machine.metadata.deletion_timestamp is not None),
        ("Stopping", instance is not None and phase not in FINAL and instance.metadata.deletion_timestamp is not None),
        ("Migrating", moving and phase == "Running"),
        ("Paused", is_true(status, "Paused")),
        ("Running", phase == "Running"),
        ("ErrorPvcNotFound", starting and reason == "FailedPvcNotFound"),
        ("DataVolumeError", starting and reason == "DataVolumeError"),
        ("ErrorUnschedulable", starting and unplaced and not binding),
        ("WaitingForVolumeBinding", starting and (binding or (waits and _binds(status)))),
        ("Provisioning", starting and waits),
        ("ErrImagePull", reason == "ErrImagePull"),
        ("ImagePullBackOff", reason == "ImagePullBackOff"),
        ("Starting", starting),
        ("CrashLoopBackOff", bool(machine.status.get("startFailure"))),
        ("Stopped", instance is None or phase in FINAL),
    )
    return next((word for word, holds in checks if holds), "Unknown")


def _binds(status: Obj) -> bool:
    return condition(status, "DataVolumesReady").get("message") == "WaitForFirstConsumer"
