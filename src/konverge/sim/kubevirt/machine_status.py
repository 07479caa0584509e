"""What a VirtualMachine says about itself: one word for people, and the conditions of its instance.

Upstream: setPrintableStatus and syncConditions of pkg/virt-controller/watch/vm.
"""

from __future__ import annotations

import msgspec

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.runtime import Context
from konverge.sim.kubevirt import launcher
from konverge.sim.kubevirt.kinds import (
    OVER,
    DataVolume,
    Instance,
    Migration,
    Obj,
    VirtualMachine,
    condition,
    drop_condition,
    is_true,
    set_condition,
)
from konverge.sim.kubevirt.templates import strategy

FILLED = ("Succeeded", "WaitForFirstConsumer", "PendingPopulation")
"""The phases of a DataVolume in which nothing comes into it."""
_OWN_CONDITIONS = ("Ready", "Failure", "RestartRequired")
"""Those that a machine does not take over from its instance as they are."""
_IMPORT_ERRORS = ("Error", "ImagePullFailed")


def take_conditions(status: Obj, instance: Instance | None) -> None:
    """All conditions of the instance are the machine's too. Without an instance they stay, but for Ready."""
    if instance is None:
        set_condition(status, "Ready", False, "VMINotExists", "VMI does not exist")
        return
    taken = [entry for entry in instance.status.get("conditions", []) if entry["type"] not in _OWN_CONDITIONS]
    names = {str(entry["type"]) for entry in taken}
    for entry in [entry for entry in status.get("conditions", []) if entry["type"] not in (*names, *_OWN_CONDITIONS)]:
        drop_condition(status, entry["type"])
    missing = {"status": "False", "reason": "VMIConditionMissing", "message": "VMI is missing the Ready condition"}
    ready = {"type": "Ready", **(condition(instance.status, "Ready") or missing)}
    for entry in (ready, *taken):
        set_condition(status, entry["type"], entry["status"], entry.get("reason", ""), entry.get("message", ""))


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """What else is going on."""

    moving: bool = False
    """A migration."""
    filling: bool = False
    """Something comes into one of its volumes."""
    broken: bool = False
    """What comes into one of its volumes does not arrive."""
    unbound: bool = False
    """One of its claims has no volume yet."""


def printable(machine: VirtualMachine, instance: Instance | None, around: Around) -> str:
    """The one word of `kubectl get vm`: the first of these that holds. Upstream: setPrintableStatus."""
    status: Obj = instance.status if instance is not None else {}
    phase = status.get("phase", "")
    synchronized = condition(status, "Synchronized")
    reason = synchronized.get("reason", "") if synchronized.get("status") == "False" else ""
    starting = instance is not None and phase in ("", "Pending", "Scheduling", "Scheduled")
    unplaced = condition(status, "PodScheduled").get("reason") == "Unschedulable"
    checks = (
        ("Terminating", machine.metadata.deletion_timestamp is not None),
        ("Stopping", instance is not None and phase not in OVER and instance.metadata.deletion_timestamp is not None),
        ("Migrating", around.moving and phase == "Running"),
        ("Paused", is_true(status, "Paused")),
        ("Running", phase == "Running"),
        ("ErrorPvcNotFound", starting and reason == "FailedPvcNotFound"),
        ("DataVolumeError", around.broken),
        ("ErrorUnschedulable", starting and unplaced),
        ("Provisioning", around.filling),
        ("WaitingForVolumeBinding", around.unbound and _set_to_start(machine, instance)),
        ("ErrImagePull", reason == "ErrImagePull"),
        ("ImagePullBackOff", reason == "ImagePullBackOff"),
        ("Starting", starting),
        ("CrashLoopBackOff", bool(machine.status.get("startFailure"))),
        ("Stopped", instance is None or phase in OVER),
    )
    return next((word for word, holds in checks if holds), "Unknown")


def _set_to_start(machine: VirtualMachine, instance: Instance | None) -> bool:
    """Whether it is on its way to run, as far as its strategy goes. Upstream: isSetToStart."""
    asked = next((str(request["action"]) for request in machine.status.get("stateChangeRequests", [])), "")
    match strategy(machine.spec):
        case "Always":
            return True
        case "Manual":
            return asked == "Start" if instance is None else asked != "Stop"
        case "RerunOnFailure":
            return instance is None or instance.status.get("phase") != "Succeeded"
        case "Once":
            return instance is None
    return False


async def look_around(ctx: Context[VirtualMachine]) -> Around:
    """What the instance alone does not show."""
    moving = any(
        migration.spec.get("vmiName") == ctx.request.name and migration.status.get("phase") not in OVER
        for migration in await ctx.list(Migration)
    )
    filling = broken = unbound = False
    template = ctx.obj.spec["template"]["spec"]
    for name in launcher.claims_of(template).values():
        claim = await ctx.get(PersistentVolumeClaim, name)
        unbound |= claim is not None and claim.status.phase == "Pending"
    for name in launcher.data_volumes_of(template) if ctx.serves(DataVolume) else ():
        volume = await ctx.get(DataVolume, name)
        if volume is not None:
            filling |= volume.status.get("phase") not in FILLED
            running = condition(volume.status, "Running")
            stopped = running.get("status") == "False" and running.get("reason") in _IMPORT_ERRORS
            broken |= stopped or volume.status.get("phase") == "Failed"
    return Around(moving=moving, filling=filling, broken=broken, unbound=unbound)
