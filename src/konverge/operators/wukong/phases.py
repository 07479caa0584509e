"""From what KubeVirt says about a machine to a phase and a reason. Pure.

VMI Running → Running; not yet → Creating; Failed, Unknown → Error; no VMI: Stopped where none is wanted, else Creating.
Some of what KubeVirt calls an error passes by itself (no node is found while a claim is still being made), so that is
reported after a grace time only, and is never the phase Error.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge.objects.times import seconds_since
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.status import Phase, WukongStatus
from konverge.runtime import find_condition, is_true

CRASHING = "CrashLoopBackOff"
_TELLING = ("ErrorPvcNotFound", "DataVolumeError", "ErrImagePull", "ImagePullBackOff")
"""KubeVirt's printable statuses that say better than a phase what a machine waits for."""
_ENDS = ("RerunOnFailure", "Once")
"""Strategies by which a guest that shut itself down stays down."""


@dataclass(frozen=True, slots=True)
class View:
    """How a machine is."""

    phase: Phase
    ready: bool
    reason: str
    message: str

    @property
    def moving(self) -> bool:
        """Something is about to happen that no event may announce: look again soon."""
        return self.phase == "Creating" or self.reason in ("VMStopping", CRASHING)


def view(status: WukongStatus, vm: VirtualMachine | None, vmi: VirtualMachineInstance | None, *, grace: float) -> View:
    """What the machine is doing. The status is that of before."""
    if vm is None:
        return View("Creating", False, "VMCreating", "the VirtualMachine is not made yet")
    if vmi is None:
        return _without_guest(status, vm)
    phase = vmi.status.phase
    if phase == "Running":
        return _running(vmi)
    if phase in ("Failed", "Unknown"):
        return _failed(vm, vmi)
    if phase == "Succeeded":
        return _ended(vm)
    return _starting(vm, vmi, grace)


def _running(vmi: VirtualMachineInstance) -> View:
    if vmi.metadata.deletion_timestamp:
        return View("Running", False, "VMStopping", "the guest is shutting down")
    if is_true(vmi.status.conditions, "Paused"):
        return View("Running", False, "VMPaused", "the guest is paused")
    ready = find_condition(vmi.status.conditions, "Ready")
    if ready is not None and ready.status == "False":
        return View("Running", False, ready.reason or "GuestNotReady", ready.message or "the guest is not ready")
    return View("Running", True, "VMRunning", "the virtual machine is running")


def _without_guest(status: WukongStatus, vm: VirtualMachine) -> View:
    word, strategy = vm.status.printable_status or "", vm.spec.run_strategy or ""
    if word == CRASHING:
        return _crashing(vm)
    was_up = status.phase in ("Running", "Stopped")
    if strategy in ("Halted", "Manual", "") or (strategy in _ENDS and was_up and word == "Stopped"):
        return View("Stopped", False, "VMStopped", "the virtual machine is stopped")
    if word in _TELLING:
        return View("Creating", False, word, f"KubeVirt cannot start it: {_why(vm) or word}")
    return View("Creating", False, "VMCreating", f"KubeVirt starts it: {word or 'not looked at yet'}")


def _ended(vm: VirtualMachine) -> View:
    if vm.spec.run_strategy == "Always":
        return View("Creating", False, "VMCreating", "the guest shut itself down, and is started again")
    return View("Stopped", False, "GuestShutDown", "the guest shut itself down")


def _failed(vm: VirtualMachine, vmi: VirtualMachineInstance) -> View:
    if vm.status.printable_status == CRASHING:
        return _crashing(vm)
    why = vmi.status.reason or _why(vm) or vmi.status.phase
    return View("Error", False, "VMFailed", f"the virtual machine failed{_times(vm)}: {why}")


def _crashing(vm: VirtualMachine) -> View:
    failure = vm.status.start_failure
    retry = failure.retry_after_timestamp if failure is not None else None
    later = f"; KubeVirt tries again at {retry}" if retry else ""
    return View("Error", False, CRASHING, f"the virtual machine failed{_times(vm)}{later}")


def _times(vm: VirtualMachine) -> str:
    failure = vm.status.start_failure
    count = (failure.consecutive_fail_count or 0) if failure is not None else 0
    return f" {count} times in a row" if count > 1 else ""


def _starting(vm: VirtualMachine, vmi: VirtualMachineInstance, grace: float) -> View:
    if vmi.metadata.deletion_timestamp:
        return View("Creating", False, "VMStopping", "the virtual machine is taken down")
    scheduled = find_condition(vmi.status.conditions, "PodScheduled")
    stuck = scheduled is not None and scheduled.status == "False"
    since = scheduled.last_transition_time if scheduled is not None else None
    if (stuck or vm.status.printable_status == "ErrorUnschedulable") and seconds_since(
        since or vmi.metadata.creation_timestamp
    ) >= grace:
        why = (scheduled.message if scheduled is not None else "") or "the scheduler finds no node"
        return View("Creating", False, "Unschedulable", f"no node for it: {why}")
    word = vm.status.printable_status or ""
    if word in _TELLING:
        return View("Creating", False, word, f"KubeVirt cannot start it: {_why(vm) or word}")
    return View("Creating", False, "VMCreating", f"the virtual machine is {vmi.status.phase or 'not yet looked at'}")


def _why(vm: VirtualMachine) -> str:
    """KubeVirt's own text for a failure."""
    failure = find_condition(vm.status.conditions, "Failure")
    return (failure.message or "") if failure is not None else ""
