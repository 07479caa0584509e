"""The state at every rest must be that of the reference at the same step."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.differences import ABSENT, differences
from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.reference import Reference, by_folded_name


def state(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per object that is missing, left over, or different, and per field."""
    for checkpoint in run.checkpoints:
        expected = reference.checkpoint(checkpoint.step.removesuffix(", then"))
        if expected is not None and checkpoint.rested:
            yield from _compared(checkpoint, expected, reference)


def _compared(actual: Checkpoint, expected: Checkpoint, reference: Reference) -> Iterator[Alarm]:
    ours, theirs = by_folded_name(expected.state), by_folded_name(actual.state)
    for key in sorted({*ours, *theirs}):
        wanted, present = ours.get(key, []), theirs.get(key, [])
        if len(wanted) != len(present):
            yield _count(actual, key, len(wanted), len(present))
        for one, other in zip(wanted, present, strict=False):
            yield from _fields(actual, key, one, other, reference)


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


def _fields(checkpoint: Checkpoint, key: str, one: Obj, other: Obj, reference: Reference) -> Iterator[Alarm]:
    resource = key.partition(" ")[0]
    if bool(one["metadata"].get("deletionTimestamp")) != bool(other["metadata"].get("deletionTimestamp")):
        yield Alarm(
            oracle="state",
            severity="high",
            object=key,
            field="metadata.deletionTimestamp",
            sentence=f"{key} is {'not ' if one['metadata'].get('deletionTimestamp') else ''}being deleted, for ever",
            step=checkpoint.step,
        )
    for path, wanted, present in differences(one, other):
        if not reference.masks.hides(resource, path):
            shown = "absent" if present == ABSENT else repr(present)
            normal = "absent" if wanted == ABSENT else repr(wanted)
            yield Alarm(
                oracle="state",
                severity="low" if path.startswith("status.") else "high",
                object=key,
                field=path,
                sentence=f"{path} of {key} stays {shown[:80]} (without the fault: {normal[:80]})",
                step=checkpoint.step,
                expected=wanted,
                actual=present,
            )
