"""Custom resources from which others are made, or by which they are bound: templates, classes, quotas.

They own nothing, where others of the same check do, and are read when something is made from them. That a change of one
does not reach what is there, or reaches it only when that is made again, is how such things work.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from konverge.check.model import Alarm, Apply, Run, Step
from konverge.check.oracles.history import Identity, custom_resources, identity, owned_by
from konverge.check.reference import Reference

_ORACLES = frozenset(("effect", "path-dependence"))


def lowered(alarms: Iterable[Alarm], run: Run, reference: Reference) -> list[Alarm]:
    """What follows from a change of such a custom resource is a note. A run that was made smaller may have nothing but
    that one any more: what is made from it is in the reference."""
    owners: frozenset[Identity] | None = None
    made = []
    for alarm in alarms:
        if alarm.oracle in _ORACLES and alarm.severity != "low":
            owners = _owners(run) | _owners(reference.run) if owners is None else owners
            changed = _changed(run, alarm.step)
            if owners and changed is not None and changed not in owners:
                alarm = msgspec.structs.replace(alarm, severity="low")
        made.append(alarm)
    return made


def _owners(run: Run) -> frozenset[Identity]:
    """The user's custom resources that own something at any rest."""
    mine = custom_resources(run)
    return frozenset(
        identity(obj)
        for checkpoint in run.checkpoints
        for obj in checkpoint.state.values()
        if identity(obj) in mine and next(owned_by(obj, checkpoint.state), None) is not None
    )


def _changed(run: Run, name: str) -> Identity | None:
    """The custom resource whose field was changed in this step, or last before it."""
    number = next((number for number, step in enumerate(run.steps) if step.name == name), -1)
    for step in reversed(run.steps[: number + 1]):
        applied = _applied(step)
        if step.about and len(applied) == 1:
            return applied[0]
    return None


def _applied(step: Step) -> list[Identity]:
    return [identity(action.object) for action in step.actions if isinstance(action, Apply)]
