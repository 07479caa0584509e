"""The state at every rest must be that of the reference at the same step."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from konverge.check.differences import ABSENT, is_digest
from konverge.check.folding import folded
from konverge.check.model import Alarm, Checkpoint, Edit, Obj, OperatorAway, Run, Severity
from konverge.check.normal import compared, counted, made_by_others, normal
from konverge.check.oracles.desired import rests
from konverge.check.oracles.history import custom_resources, deleted_in, identity, made_too_late, resources_at
from konverge.check.oracles.repair import Repair, conditions, entries
from konverge.check.oracles.status import says_ready
from konverge.check.oracles.unfinished import Unfinished
from konverge.check.redaction import spoken_value
from konverge.check.reference import Reference, base_step

_DELETION = "metadata.deletionTimestamp"


def state(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per object that is missing, left over, or different, and per field; each at the first rest."""
    if run is reference.run:
        return
    others = made_by_others((run, reference.run))
    accidents = made_too_late(reference.run)
    said: set[tuple[str, str, str]] = set()
    gap = _Gap.of(run, reference)
    repair = Repair(run, reference, list(pairs(run, reference)))
    unseen = any(isinstance(item, OperatorAway) and item.last > item.step for item in run.plan.perturbations)
    for checkpoint, expected in pairs(run, reference):
        if is_disowned(run, checkpoint, expected):
            return
        if gap is not None and _is_held(run, expected, checkpoint):
            return  # what passed unseen here keeps the reference from going on
        late = {folded(name) for name, obj in expected.state.items() if obj["metadata"].get("uid") in accidents}
        unfinished = Unfinished(expected, checkpoint)
        kept_out = _kept_out(run, checkpoint)
        for alarm in _compared(checkpoint, expected, reference, others):
            if alarm.object in late or unfinished.explains(alarm.object, alarm.field):
                continue
            if gap is not None and gap.explains(checkpoint, alarm):
                continue
            if unseen and alarm.field and alarm.field != _DELETION:
                continue  # what outlives a custom resource need not have what was asked for unseen
            if run.plan.pattern == "edits":
                alarm = repair.judged(alarm, checkpoint, expected)
            if alarm.object in kept_out:
                alarm = msgspec.structs.replace(alarm, severity="low")
            if alarm.group not in said:
                said.add(alarm.group)
                yield alarm


def _kept_out(run: Run, checkpoint: Checkpoint) -> frozenset[str]:
    """The custom resources that say that something outside of the cluster, which they would have made, exists already.

    Nobody cleaned it up, since the operator was away when the one before it was deleted: it may be anybody's.
    """
    away = [item for item in run.plan.perturbations if isinstance(item, OperatorAway)]
    if not any(deleted_in(run, step) for item in away for step in range(item.step, item.last + 1)):
        return frozenset()
    return frozenset(
        folded(name)
        for name, obj in resources_at(run, checkpoint)
        if any(item.get("reason") == "AlreadyExists" and item.get("status") == "False" for item in entries(obj))
    )


def _is_held(run: Run, expected: Checkpoint, actual: Checkpoint) -> bool:
    """Whether the custom resource says in the one state that something failed, and in the other that it did not."""
    mine = custom_resources(run)
    for name, obj in actual.state.items():
        if identity(obj) in mine:
            ours, theirs = conditions(expected.state.get(name, {})), conditions(obj)
            if any(ours.get(kind) == "False" and status == "True" for kind, status in theirs.items()):
                return True
    return False


class _Gap:
    """States that passed unseen: who never saw them may be where it was before."""

    def __init__(self, run: Run, reference: Reference, before: Checkpoint | None) -> None:
        self._before = normal(before.state) if before is not None else {}
        self._masks = reference.masks
        self._desired = {item.step.name: item.desired for item in rests(run)}
        self._asked = self._desired.get(before.step) if before is not None else None

    @classmethod
    def of(cls, run: Run, reference: Reference) -> _Gap | None:
        first = next((number for number, checkpoint in enumerate(run.checkpoints) if checkpoint.blind), None)
        if first is None:
            return None
        return cls(run, reference, reference.beside(run, run.checkpoints[first - 1]) if first else None)

    def explains(self, checkpoint: Checkpoint, alarm: Alarm) -> bool:
        """What only the unseen states would have left behind is missing; or, where the user asks for the same again as
        before them, a field is as it was then."""
        if not alarm.field:
            return alarm.actual == 0 and alarm.object not in self._before
        ours, theirs = self._before.get(alarm.object, []), normal(checkpoint.state).get(alarm.object, [])
        if alarm.field == _DELETION or not ours or len(ours) != len(theirs):
            return False
        if self._asked != self._desired.get(base_step(checkpoint)):
            return False
        changed = (
            compared(alarm.object, one, other, self._masks, derived=False)
            for one, other in zip(ours, theirs, strict=True)
        )
        return not any(path == alarm.field for paths in changed for path, _, _ in paths)


def pairs(run: Run, reference: Reference) -> Iterator[tuple[Checkpoint, Checkpoint]]:
    """The states of a run that can be compared, each with that of the reference."""
    for checkpoint in run.checkpoints:
        expected = reference.beside(run, checkpoint)
        if expected is None or not checkpoint.rested or checkpoint.blind:
            continue
        if bool(expected.refused) == bool(checkpoint.refused):
            yield checkpoint, expected


def is_disowned(run: Run, actual: Checkpoint, expected: Checkpoint) -> bool:
    """Others have taken an object out of the operator's hands, and the custom resource says so: it is theirs now."""
    taken = [
        item
        for item in run.plan.perturbations
        if isinstance(item, Edit) and item.patch is not None and "metadata" in item.patch and not item.subresource
    ]
    mine = custom_resources(run)
    return bool(taken) and any(
        identity(obj) in mine and says_ready(expected.state.get(name, {})) and not says_ready(obj)
        for name, obj in actual.state.items()
    )


def _compared(
    actual: Checkpoint, expected: Checkpoint, reference: Reference, others: frozenset[str]
) -> Iterator[Alarm]:
    ours, theirs = normal(expected.state), normal(actual.state)
    for key in sorted({*ours, *theirs}):
        derived = key not in others
        wanted, present = ours.get(key, []), theirs.get(key, [])
        least, most = counted(key, wanted, derived=derived), counted(key, present, derived=derived)
        if least != most and key not in reference.unsteady:
            yield _count(actual, key, least, most)
        for one, other in zip(wanted, present, strict=False):
            yield from _fields(actual, key, one, other, reference, derived=derived)


def _count(checkpoint: Checkpoint, key: str, wanted: int, present: int) -> Alarm:
    what = f"{key} is missing" if not present else f"{key} is left over" if not wanted else f"{key}: {present} of them"
    return Alarm(
        oracle="state",
        severity="high",
        object=key,
        sentence=f"{what} at rest (without the fault: {wanted})",
        step=checkpoint.step,
        expected=wanted,
        actual=present,
    )


def _fields(
    checkpoint: Checkpoint, key: str, one: Obj, other: Obj, reference: Reference, *, derived: bool
) -> Iterator[Alarm]:
    if bool(one["metadata"].get("deletionTimestamp")) != bool(other["metadata"].get("deletionTimestamp")):
        yield Alarm(
            oracle="state",
            severity="high",
            object=key,
            field=_DELETION,
            sentence=f"{key} is {'not ' if one['metadata'].get('deletionTimestamp') else ''}being deleted, for ever",
            step=checkpoint.step,
        )
    for path, wanted, present in compared(key, one, other, reference.masks, derived=derived):
        shown = "absent" if present == ABSENT else spoken_value(key, path, present)
        normally = "absent" if wanted == ABSENT else spoken_value(key, path, wanted)
        yield Alarm(
            oracle="state",
            severity="low" if is_digest(path, wanted, present) else _severity(key, path),
            object=key,
            field=path,
            sentence=f"{path} of {key} stays {shown[:80]} (without the fault: {normally[:80]})",
            step=checkpoint.step,
            expected=wanted,
            actual=present,
        )


def _severity(key: str, path: str) -> Severity:
    """By what it means for users: a field that the operator decides is wrong for ever, or it is only shown wrong."""
    if path.startswith("metadata.annotations") or (path.startswith("metadata.labels") and not key.startswith("pods ")):
        return "medium"  # notes for others; by the labels of pods they are selected
    if not path.startswith("status."):
        return "high"
    group = key.partition(" ")[0].partition("/")[0] if "/" in key.partition(" ")[0] else ""
    if "." not in group or group.endswith(".k8s.io"):
        return "medium"  # pods that do not run, replicas that are not there
    telling = path.endswith((".status", ".phase", ".state")) or ".ready" in path.lower()
    return "medium" if telling else "low"
