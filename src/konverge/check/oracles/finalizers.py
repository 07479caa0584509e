"""A custom resource that is deleted goes away, and nothing is left of it that no other object owns."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.folding import folded
from konverge.check.inputs.asked_for import is_protected, leaves_something
from konverge.check.model import Alarm, Run, Severity
from konverge.check.oracles.history import (
    custom_resources,
    deleted_in,
    first_request,
    identity,
    news,
    resources_at,
    shared_steps,
    step_of,
)
from konverge.check.oracles.state import is_disowned, pairs
from konverge.check.reference import Reference


def finalizers(run: Run, reference: Reference) -> Iterator[Alarm]:
    """A deleted custom resource that is still there at rest, although the user did not ask to protect it."""
    if not any(is_disowned(run, *pair) for pair in pairs(run, reference)):
        yield from news(_held, run, reference)


def _held(run: Run) -> Iterator[Alarm]:
    for checkpoint in run.checkpoints:
        step = step_of(run, checkpoint)
        if step >= len(run.steps) or checkpoint.blind:
            continue
        gone = deleted_in(run, step) & custom_resources(run)
        for name, obj in checkpoint.state.items():
            if identity(obj) not in gone or is_protected(obj):
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
    yield from news(_left, run, reference)


def _left(run: Run) -> Iterator[Alarm]:
    first, mine = first_request(run), custom_resources(run)
    kept = any(leaves_something(obj) for item in run.checkpoints for _, obj in resources_at(run, item))
    made = {
        str(change.ref): change.uid
        for change in run.changes
        if change.moment.type == "ADDED" and change.writer == "operator" and change.revision > first
    }
    for checkpoint in run.checkpoints:
        living = {obj["metadata"].get("uid") for obj in checkpoint.state.values()}
        if any(identity(obj) in mine for obj in checkpoint.state.values()) or not checkpoint.rested or checkpoint.blind:
            continue
        for name, obj in checkpoint.state.items():
            metadata = obj["metadata"]
            owned = any(owner.get("uid") in living for owner in metadata.get("ownerReferences") or ())
            if made.get(name) != metadata.get("uid") or owned:
                continue
            severity: Severity = "low" if kept or obj.get("kind") in NOTED else "medium"
            yield Alarm(
                oracle="orphans",
                severity=severity,
                object=folded(name),
                sentence=f"{name}, which the operator made, outlives the custom resource and has no owner",
                step=checkpoint.step,
            )
