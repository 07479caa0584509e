"""Step 10: the conditions and the phase, from what the steps have found; and when to look again.

Whatever waiting does not help is the phase Error, and the next look is in thirty seconds. What is on its way is looked
at in ten, though a watch usually reports earlier. A machine that is as desired is not looked at again until something
changes.
"""

from __future__ import annotations

from konverge.operators.wukong.conditions import (
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
    drop,
    say,
)
from konverge.operators.wukong.phases import View, view
from konverge.operators.wukong.steps.state import ReconcileState
from konverge.operators.wukong.volumes import WAITING
from konverge.runtime import Result, find_condition


async def conclude(state: ReconcileState) -> Result | None:
    """Say how it is, with one write of the status at most."""
    drop(state.status, PAUSED)
    _stages(state)
    shown = report(state)
    state.status.observed_generation = state.generation
    await state.ctx.save_status()
    if state.failed is not None or state.status.phase == "Error":
        return Result(requeue_after=state.options.error)
    if state.trouble or state.refusals or state.restoring or shown.moving or state.again:
        return Result(requeue_after=state.options.wait)
    return None


def report(state: ReconcileState) -> View:
    """How the machine is."""
    shown = view(state.status, state.vm, state.vmi, grace=state.options.unschedulable_grace)
    _machine(state, shown)
    _details(state)
    _phase(state, shown)
    return shown


def _say(state: ReconcileState, type: str, value: bool | None, reason: str, message: str = "") -> None:
    say(state.status, type, value, reason, message, generation=state.generation)


def _stages(state: ReconcileState) -> None:
    """The conditions of the steps before the machine."""
    invalid = state.of(SPEC_VALID)
    _say(state, SPEC_VALID, invalid is None, *((invalid.reason, invalid.message) if invalid else ("Valid", "")))
    if state.wukong is None:
        return
    trouble = state.of(NETWORKS_CONFIGURED)
    if trouble is not None:
        _say(state, NETWORKS_CONFIGURED, False, trouble.reason, trouble.message)
    else:
        _say(state, NETWORKS_CONFIGURED, True, "NetworksReady", _count(len(state.networks), "network"))
    trouble = state.of(VOLUMES_BOUND)
    if trouble is not None:
        _say(state, VOLUMES_BOUND, False, trouble.reason, trouble.message)
    elif state.waiting:
        _say(state, VOLUMES_BOUND, False, WAITING, "; ".join(state.waiting))
    else:
        _say(state, VOLUMES_BOUND, True, "VolumesReady", _count(len(state.volumes), "volume"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _machine(state: ReconcileState, view: View) -> None:
    """Ready is about the machine: one that runs is ready, whatever cannot be changed about it just now."""
    trouble = state.of(VIRTUAL_MACHINE_READY)
    if trouble is not None:
        _say(state, VIRTUAL_MACHINE_READY, False, trouble.reason, trouble.message)
    else:
        _say(state, VIRTUAL_MACHINE_READY, view.ready, view.reason, view.message)
    if view.ready or state.vm is not None or not state.trouble:
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
    _running(state, RESTORE_IN_PROGRESS, state.restoring, "Restore")
    for refusal in state.refusals:
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
    if status.phase == before:
        return
    if status.phase == "Error":
        state.ctx.warning((worst.reason if worst is not None else view.reason), status.message)
    elif status.phase in ("Running", "Stopped"):
        state.ctx.event(status.phase, status.message)
