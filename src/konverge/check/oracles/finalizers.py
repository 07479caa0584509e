"""A custom resource that is deleted goes away, and nothing is left of it that no other object owns."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.folding import folded
from konverge.check.model import Alarm, Run, Severity
from konverge.check.oracles.history import custom_resources, deleted_in, first_request, identity, shared_steps, step_of
from konverge.check.oracles.state import is_disowned, pairs
from konverge.check.reference import Reference


def finalizers(run: Run, reference: Reference) -> Iterator[Alarm]:
    """A deleted custom resource that is still there at rest."""
    known = set() if run is reference.run else {alarm.object for alarm in _held(reference.run)}
    if any(is_disowned(run, *pair) for pair in pairs(run, reference)):
        return
    yield from (alarm for alarm in _held(run) if alarm.object not in known)


def _held(run: Run) -> Iterator[Alarm]:
    for checkpoint in run.checkpoints:
        step = step_of(run, checkpoint)
        if step >= len(run.steps) or checkpoint.blind:
            continue
        gone = deleted_in(run, step) & custom_resources(run)
        for name, obj in checkpoint.state.items():
            if identity(obj) not in gone:
                continue
            held = ", ".join(obj["metadata"].get("finalizers") or ()) or "nothing"
            yield Alarm(
                oracle="finalizers",
                severity="high",
                object=folded(name),
                field="metadata.finalizers",
                sentence=f"{name} is deleted and never goes away: held by {held}",
                step=checkpoint.step,
                actual=held,
            )


NOTED = frozenset(("PersistentVolumeClaim", "Secret"))
"""Kept by some operators on purpose: data, and what opens it."""


def orphans(run: Run, reference: Reference) -> Iterator[Alarm]:
    """What the operator made, no object owns, and outlives the last custom resource.

    Where the reference shows the same steps, what is left over in this run alone differs from it: the state says so.
    """
    if run is not reference.run and shared_steps(run, reference.run) == len(run.steps):
        return
    known = set() if run is reference.run else {alarm.object for alarm in _left(reference.run)}
    yield from (alarm for alarm in _left(run) if alarm.object not in known)


def _left(run: Run) -> Iterator[Alarm]:
    first, mine = first_request(run), custom_resources(run)
    made = {
        str(change.ref): change.uid
        for change in run.changes
        if change.moment.type == "ADDED" and change.writer == "operator" and change.revision > first
    }
    said: set[str] = set()
    for checkpoint in run.checkpoints:
        living = {obj["metadata"].get("uid") for obj in checkpoint.state.values()}
        if any(identity(obj) in mine for obj in checkpoint.state.values()) or not checkpoint.rested or checkpoint.blind:
            continue
        for name, obj in checkpoint.state.items():
            metadata = obj["metadata"]
            owned = any(owner.get("uid") in living for owner in metadata.get("ownerReferences") or ())
            if made.get(name) != metadata.get("uid") or owned or folded(name) in said:
                continue
            said.add(folded(name))
            severity: Severity = "low" if obj.get("kind") in NOTED else "medium"
            yield Alarm(
                oracle="orphans",
                severity=severity,
                object=folded(name),
                sentence=f"{name}, which the operator made, outlives the custom resource and has no owner",
                step=checkpoint.step,
            )
