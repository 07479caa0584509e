"""Step 10: the conditions and the phase, from what the steps have found; and when to look again.

VMI Running → Running; not yet → Creating; Failed, Unknown → Error; no VMI: Stopped where none is wanted, else Creating.
Some of what KubeVirt calls an error passes by itself (no node is found while a claim is still being made), so that is
reported after a grace time only, and is never the phase Error.

Whatever waiting does not help is the phase Error, and the next look is in thirty seconds. What is on its way is looked
at in ten, though a watch usually reports earlier. A machine that is as desired is not looked at again until something
changes.
"""

from __future__ import annotations

import msgspec

from konverge.objects.times import seconds_since
from konverge.operators.wukong.effective_spec import attached
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.status import (
    MIGRATABLE,
    NETWORKS_CONFIGURED,
    PAUSED,
    READY,
    RESTART_REQUIRED,
    RESTORE_IN_PROGRESS,
    SNAPSHOT_IN_PROGRESS,
    SPEC_VALID,
    VIRTUAL_MACHINE_READY,
    VOLUMES_BOUND,
    WITHIN_QUOTA,
    Phase,
    WukongStatus,
    drop,
    say,
)
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.volumes import WAITING
from konverge.runtime import Result, find_condition, is_true

CLASHES = ("NotOurs", "ClaimNotOurs", "PolicyNotOurs")
"""Reasons of trouble with an object of another owner under the name of a part of ours."""
CRASHING = "CrashLoopBackOff"
_TELLING = ("ErrorPvcNotFound", "DataVolumeError", "ErrImagePull", "ImagePullBackOff")
"""KubeVirt's printable statuses that say better than a phase what a machine waits for."""
_ENDS = ("RerunOnFailure", "Once")
"""Strategies by which a guest that shut itself down stays down."""


class View(msgspec.Struct, frozen=True):
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
        return _runs(vmi)
    if phase in ("Failed", "Unknown"):
        return _failed(vm, vmi)
    if phase == "Succeeded":
        return _ended(vm)
    return _starting(vm, vmi, grace)


def _runs(vmi: VirtualMachineInstance) -> View:
    if vmi.metadata.deletion_timestamp:
        return View("Running", False, "VMStopping", "the guest is shutting down")
    if is_true(vmi.status.conditions, "Paused"):
        return View("Running", False, "VMPaused", "the guest is paused")
    ready = find_condition(vmi.status.conditions, "Ready")
    if ready is not None and ready.status == "False":
        return View("Running", False, ready.reason or "GuestNotReady", ready.message or "the guest is not ready")
    return View("Running", True, "VMRunning", "the virtual machine is running")


def _without_guest(status: WukongStatus, vm: VirtualMachine) -> View:
    word, strategy = vm.status.printable_status, vm.spec.run_strategy
    if word == CRASHING:
        return _crashing(vm)
    was_up = status.phase in ("Running", "Stopped")
    if strategy in ("Halted", "Manual", "") or (strategy in _ENDS and was_up and word == "Stopped"):
        unable = _unable(vm)
        why = f" ({unable.message})" if unable is not None else ""
        return View("Stopped", False, "VMStopped", f"the virtual machine is stopped{why}")
    starting = View("Creating", False, "VMCreating", f"KubeVirt starts it: {word or 'not looked at yet'}")
    return _blocked(vm) or _unable(vm) or starting


def _unable(vm: VirtualMachine) -> View | None:
    """What KubeVirt itself calls a failure: an instance type that there is not, a refusal of the API server."""
    failure = find_condition(vm.status.conditions, "Failure")
    if failure is None or failure.status != "True":
        return None
    message = f"KubeVirt cannot start it: {failure.message or failure.reason}"
    return View("Error", False, failure.reason or "VMFailed", message)


def _blocked(vm: VirtualMachine) -> View | None:
    word = vm.status.printable_status
    if word not in _TELLING:
        return None
    return View("Creating", False, word, f"KubeVirt cannot start it: {_why(vm) or word}")


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
    if failure is None or failure.consecutive_fail_count < 2:
        return ""
    return f" {failure.consecutive_fail_count} times in a row"


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
    synced = find_condition(vmi.status.conditions, "Synchronized")
    if synced is not None and synced.status == "False" and synced.message:
        return View(
            "Creating", False, synced.reason or "NotSynchronized", f"KubeVirt cannot start it: {synced.message}"
        )
    message = f"the virtual machine is {vmi.status.phase or 'not yet looked at'}"
    return _blocked(vm) or View("Creating", False, "VMCreating", message)


def _why(vm: VirtualMachine) -> str:
    """KubeVirt's own text for a failure."""
    failure = find_condition(vm.status.conditions, "Failure")
    return failure.message if failure is not None and failure.status == "True" else ""


async def conclude(state: ReconcileState) -> Result | None:
    """Say how it is, with one write of the status at most."""
    state.reasons = {condition.type: condition.reason for condition in state.status.conditions}
    drop(state.status, PAUSED)
    _stages(state)
    shown = report(state)
    state.status.observed_generation = state.generation
    await state.ctx.save_status()
    if state.status.phase == "Error":
        return Result(requeue_after=state.options.error)
    if state.trouble or state.refusals or state.restoring or shown.moving or state.again:
        return Result(requeue_after=state.options.wait)
    return None


def report(state: ReconcileState) -> View:
    """How the machine is."""
    shown = view(state.status, state.vm, state.vmi, grace=state.options.unschedulable_grace)
    held = state.of(WITHIN_QUOTA)
    if held is not None and state.vm is None:
        shown = View("Pending", False, held.reason, held.message)
    _machine(state, shown)
    _details(state)
    _phase(state, shown)
    return shown


def _say(state: ReconcileState, type: str, value: bool | None, reason: str, message: str = "") -> None:
    say(state.status, type, value, reason, message, generation=state.generation)


def _stages(state: ReconcileState) -> None:
    """The conditions of the steps before the machine."""
    _judge(state, SPEC_VALID, True, "Valid")
    if state.wukong is None:
        return
    if len(state.networks) < len(attached(state.wukong.spec)):
        _unseen(state, NETWORKS_CONFIGURED)
    else:
        _judge(state, NETWORKS_CONFIGURED, True, "NetworksReady", _count(len(state.networks), "network"))
    if len(state.volumes) < len(state.wukong.spec.disks):
        _unseen(state, VOLUMES_BOUND)
    elif state.waiting:
        _judge(state, VOLUMES_BOUND, False, WAITING, "; ".join(state.waiting))
    else:
        _judge(state, VOLUMES_BOUND, True, "VolumesReady", _count(len(state.volumes), "volume"))


def _unseen(state: ReconcileState, type: str) -> None:
    """An earlier step ended the reconcile: what was known stays as it is."""
    trouble = state.of(type)
    if trouble is not None:
        _say(state, type, False, trouble.reason, trouble.message)
    elif type not in state.reasons:
        _say(state, type, None, "NotReached", "an earlier step has failed")


def _judge(state: ReconcileState, type: str, value: bool, reason: str, message: str = "") -> None:
    """A condition is as given, unless there is trouble with it."""
    trouble = state.of(type)
    if trouble is not None:
        value, reason, message = False, trouble.reason, trouble.message
    _say(state, type, value, reason, message)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _machine(state: ReconcileState, view: View) -> None:
    """Ready is about the machine: one that runs is ready, whatever cannot be changed about it just now. But one that
    lacks a part, because an object of another owner has the name of it, is not."""
    _judge(state, VIRTUAL_MACHINE_READY, view.ready, view.reason, view.message)
    clash = next((trouble for trouble in state.trouble if trouble.reason in CLASHES), None)
    if clash is not None:
        _say(state, READY, False, clash.reason, clash.message)
    elif state.vm is not None or not state.trouble:
        _say(state, READY, view.ready, view.reason, view.message)
    else:
        first = state.failed or state.trouble[0]
        _say(state, READY, False, first.reason, first.message)


def _details(state: ReconcileState) -> None:
    vm, vmi = state.vm, state.vmi
    movable = find_condition(vmi.status.conditions, "LiveMigratable") if vmi is not None else None
    if movable is None:
        drop(state.status, MIGRATABLE)
    else:
        ok = movable.status == "True"
        _say(state, MIGRATABLE, ok, movable.reason or ("Migratable" if ok else "NotMigratable"), movable.message)
    pending = state.status.pending_changes
    message = "; ".join(pending)
    _say(state, RESTART_REQUIRED, bool(pending), "PendingChanges" if pending else "UpToDate", message)
    _running(state, SNAPSHOT_IN_PROGRESS, vm.status.snapshot_in_progress if vm is not None else None, "Snapshot")
    if not state.refusals:
        _running(state, RESTORE_IN_PROGRESS, state.restoring, "Restore")
    for refusal in state.refusals:
        if state.reasons.get(RESTORE_IN_PROGRESS) != refusal.reason:
            state.ctx.warning(refusal.reason, refusal.message)
        _say(state, RESTORE_IN_PROGRESS, bool(state.restoring), refusal.reason, refusal.message)


def _running(state: ReconcileState, type: str, name: str | None, noun: str) -> None:
    """Conditions that are there only while something goes on."""
    if name:
        _say(state, type, True, f"{noun}Running", name)
    else:
        drop(state.status, type)


def _phase(state: ReconcileState, view: View) -> None:
    status, before = state.status, state.status.phase
    worst = state.failed
    if worst is not None:
        status.phase, status.message = "Error", worst.message
    else:
        status.phase = view.phase
        status.message = view.message if view.ready or not state.trouble else state.trouble[0].message
    known = worst is None or state.reasons.get(worst.condition) == worst.reason
    if status.phase == before and known:
        return
    if status.phase == "Error":
        state.ctx.warning((worst.reason if worst is not None else view.reason), status.message)
    elif status.phase in ("Running", "Stopped"):
        state.ctx.event(status.phase, status.message)
