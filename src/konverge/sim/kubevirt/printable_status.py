"""The one word of `kubectl get vm`: the first of these that holds, in KubeVirt's own order. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.sim.kubevirt.kinds import Instance, Obj, VirtualMachine, condition, is_true

FINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What else is going on."""

    moving: bool = False
    """A migration."""
    filling: bool = False
    """Something comes into one of its volumes."""
    unbound: bool = False
    """One of its claims has no volume yet."""


def printable(machine: VirtualMachine, instance: Instance | None, around: Around) -> str:
    status: Obj = instance.status if instance is not None else {}
    phase = status.get("phase", "")
    synchronized = condition(status, "Synchronized")
    reason = synchronized.get("reason", "") if synchronized.get("status") == "False" else ""
    starting = instance is not None and phase in ("", "Pending", "Scheduling", "Scheduled")
    unplaced = condition(status, "PodScheduled").get("reason") == "Unschedulable"
    checks = (
        ("Terminating", machine.metadata.deletion_timestamp is not None),
        ("Stopping", instance is not None and phase not in FINAL and instance.metadata.deletion_timestamp is not None),
        ("Migrating", around.moving and phase == "Running"),
        ("Paused", is_true(status, "Paused")),
        ("Running", phase == "Running"),
        ("ErrorPvcNotFound", starting and reason == "FailedPvcNotFound"),
        ("DataVolumeError", starting and reason == "DataVolumeError"),
        ("ErrorUnschedulable", starting and unplaced),
        ("Provisioning", starting and around.filling),
        ("WaitingForVolumeBinding", starting and around.unbound),
        ("ErrImagePull", reason == "ErrImagePull"),
        ("ImagePullBackOff", reason == "ImagePullBackOff"),
        ("Starting", starting),
        ("CrashLoopBackOff", bool(machine.status.get("startFailure"))),
        ("Stopped", instance is None or phase in FINAL),
    )
    return next((word for word, holds in checks if holds), "Unknown")
