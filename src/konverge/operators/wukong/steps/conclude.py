"""Step 10: the conditions and the phase, from what the steps have found; and when to look again.

Whatever waiting does not help is the phase Error, and the next look is in thirty seconds. What is on its way is looked
at in ten, though a watch will have told before. A machine that is as wished is not looked at again until something
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
from konverge.operators.wukong.steps.round import Round
from konverge.operators.wukong.volumes import WAITING
from konverge.runtime import Result, find_condition


async def conclude(round: Round) -> Result | None:
    """Say how it is, with one write of the status at most."""
    drop(round.status, PAUSED)
    _stages(round)
    found = tell(round)
    round.status.observed_generation = round.generation
    await round.ctx.save_status()
    if round.failed is not None or round.status.phase == "Error":
        return Result(requeue_after=round.options.error)
    if round.trouble or round.refusals or round.restoring or found.moving or round.again:
        return Result(requeue_after=round.options.wait)
    return None


def tell(round: Round) -> View:
    """How the machine is."""
    found = view(round.status, round.vm, round.vmi, grace=round.options.unschedulable_grace)
    _machine(round, found)
    _details(round)
    _phase(round, found)
    return found


def _say(round: Round, type: str, value: bool | None, reason: str, message: str = "") -> None:
    say(round.status, type, value, reason, message, generation=round.generation)


def _stages(round: Round) -> None:
    """The conditions of the steps before the machine."""
    invalid = round.of(SPEC_VALID)
    _say(round, SPEC_VALID, invalid is None, *((invalid.reason, invalid.message) if invalid else ("Valid", "")))
    if round.wukong is None:
        return
    trouble = round.of(NETWORKS_CONFIGURED)
    if trouble is not None:
        _say(round, NETWORKS_CONFIGURED, False, trouble.reason, trouble.message)
    else:
        _say(round, NETWORKS_CONFIGURED, True, "NetworksReady", _count(len(round.networks), "network"))
    trouble = round.of(VOLUMES_BOUND)
    if trouble is not None:
        _say(round, VOLUMES_BOUND, False, trouble.reason, trouble.message)
    elif round.waiting:
        _say(round, VOLUMES_BOUND, False, WAITING, "; ".join(round.waiting))
    else:
        _say(round, VOLUMES_BOUND, True, "VolumesReady", _count(len(round.volumes), "volume"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _machine(round: Round, found: View) -> None:
    """Ready is about the machine: one that runs is ready, whatever cannot be changed about it just now."""
    trouble = round.of(VIRTUAL_MACHINE_READY)
    if trouble is not None:
        _say(round, VIRTUAL_MACHINE_READY, False, trouble.reason, trouble.message)
    else:
        _say(round, VIRTUAL_MACHINE_READY, found.ready, found.reason, found.message)
    if found.ready or round.vm is not None or not round.trouble:
        _say(round, READY, found.ready, found.reason, found.message)
    else:
        first = round.failed or round.trouble[0]
        _say(round, READY, False, first.reason, first.message)


def _details(round: Round) -> None:
    vm, vmi = round.vm, round.vmi
    movable = find_condition(vmi.status.conditions, "LiveMigratable") if vmi is not None else None
    if movable is None:
        drop(round.status, MIGRATABLE)
    else:
        ok = movable.status == "True"
        _say(round, MIGRATABLE, ok, movable.reason or ("Migratable" if ok else "NotMigratable"), movable.message)
    pending = round.status.pending_changes
    told = "; ".join(pending)
    _say(round, RESTART_REQUIRED, bool(pending), "PendingChanges" if pending else "UpToDate", told)
    _running(round, SNAPSHOT_IN_PROGRESS, vm.status.snapshot_in_progress if vm is not None else None, "Snapshot")
    _running(round, RESTORE_IN_PROGRESS, round.restoring, "Restore")
    for one in round.refusals:
        _say(round, RESTORE_IN_PROGRESS, bool(round.restoring), one.reason, one.message)


def _running(round: Round, type: str, name: str | None, noun: str) -> None:
    """Conditions that are there only while something goes on."""
    if name:
        _say(round, type, True, f"{noun}Running", name)
    else:
        drop(round.status, type)


def _phase(round: Round, found: View) -> None:
    status, before = round.status, round.status.phase
    worst = round.failed
    if worst is not None:
        status.phase, status.message = "Error", worst.message
    else:
        status.phase = found.phase
        status.message = found.message if found.ready or not round.trouble else round.trouble[0].message
    if status.phase == before:
        return
    if status.phase == "Error":
        round.ctx.warning((worst.reason if worst is not None else found.reason), status.message)
    elif status.phase in ("Running", "Stopped"):
        round.ctx.event(status.phase, status.message)
