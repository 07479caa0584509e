"""What belongs to others is theirs: an object that was there before the operator came is not taken by its name."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.differences import ABSENT, differences
from konverge.check.model import Alarm, Apply, Checkpoint, Obj, Run
from konverge.check.oracles.history import Identity, custom_resources, identity, is_clusters, owned_by, step_of
from konverge.check.oracles.status import says_ready
from konverge.check.reference import Reference, base_step

FOREIGN = "others have {kind} {name}"
"""The name of the step that makes an object of others."""
TAKEN_AWAY = "others take {kind} {name} away"
"""The name of the step in which they delete it again."""


def foreign(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Of the plans that make one first: it is deleted, adopted, overwritten; or all is said to be well without it."""
    if run.plan.steps is None or not run.checkpoints or not run.steps[0].name.startswith(FOREIGN.partition("{")[0]):
        return
    theirs = [
        action.object
        for action in run.steps[0].actions
        if isinstance(action, Apply) and is_clusters(action.object.get("apiVersion", "v1"))
    ]
    for obj in theirs:
        yield from _taken(run, obj, reference)
        yield from _still_missing(run, obj, reference)


def _in_need(reference: Reference, obj: Obj, step: str) -> frozenset[Identity]:
    """The custom resources that have an object of this name after this step without the clash. If none owns it, those
    after whose name it is called; if there is none, all of them."""
    expected = reference.checkpoint(step)
    if expected is None or all(identity(item) != identity(obj) for item in expected.state.values()):
        return frozenset()
    mine, state = custom_resources(reference.run), expected.state
    owners = (
        identity(owner)
        for owner in state.values()
        if identity(owner) in mine and any(identity(item) == identity(obj) for _, item in owned_by(owner, state))
    )
    named = (item for item in mine if f"{obj['metadata']['name']}-".startswith(f"{item[-1]}-"))
    in_need = frozenset(owners) or frozenset(named) or mine
    # One that is not well even without the clash has not come to where the run may be.
    return in_need & {identity(item) for item in state.values() if says_ready(item)}


def _taken(run: Run, obj: Obj, reference: Reference) -> Iterator[Alarm]:
    name, before = next(
        ((key, item) for key, item in run.checkpoints[0].state.items() if identity(item) == identity(obj)), ("", obj)
    )
    if not name:
        return
    for checkpoint in run.checkpoints[1:]:
        if _is_taken_away(checkpoint):
            return
        after = checkpoint.state.get(name)
        if after is None or after["metadata"].get("uid") != before["metadata"].get("uid"):
            yield _alarm(checkpoint, name, "high", "", f"{name}, an object of others, is deleted by its name")
            return
        owners = after["metadata"].get("ownerReferences")
        changed = _changed(before, after)
        if owners or changed:
            what = "is adopted by its name" if owners else f"is overwritten ({', '.join(changed[:3])})"
            field = "metadata.ownerReferences" if owners else changed[0]
            yield _alarm(checkpoint, name, "medium", field, f"{name}, an object of others, {what}")
            return
        yield from _unsaid(run, checkpoint, name, _in_need(reference, obj, base_step(checkpoint)))


def _is_taken_away(checkpoint: Checkpoint) -> bool:
    return checkpoint.step.startswith(TAKEN_AWAY.partition("{")[0])


def _still_missing(run: Run, obj: Obj, reference: Reference) -> Iterator[Alarm]:
    """Nothing is in the operator's way any more, and what it could not make then is not made."""
    last = run.checkpoints[-1]
    expected = reference.checkpoint(run.steps[1].name) if len(run.steps) > 1 else None
    if not _is_taken_away(last) or not last.rested or expected is None:
        return
    there = set(map(identity, last.state.values()))
    for name, item in expected.state.items():
        if identity(item) == identity(obj) and identity(obj) not in there:
            sentence = f"{name} is not made, although others have taken theirs away"
            yield _alarm(last, name, "medium", "", sentence)


def _changed(before: Obj, after: Obj) -> list[str]:
    """The fields that others had set, and that are gone or different."""
    contents = ("spec", "data", "stringData", "metadata")
    return [
        path
        for path, old, _ in differences(
            {key: before[key] for key in contents if key in before},
            {key: after[key] for key in contents if key in after},
        )
        if old != ABSENT and (not path.startswith("metadata.") or path.startswith("metadata.labels"))
    ]


def _unsaid(run: Run, checkpoint: Checkpoint, name: str, in_need: frozenset[Identity]) -> Iterator[Alarm]:
    """It is left alone, and the custom resource says that all is well all the same."""
    step = step_of(run, checkpoint)
    for key, obj in checkpoint.state.items():
        if step and identity(obj) in in_need and says_ready(obj):
            yield Alarm(
                oracle="foreign",
                severity="medium",
                object=key,
                field="status",
                sentence=f"{key} says {says_ready(obj)} although {name}, which it needs, is an object of others",
                step=checkpoint.step,
            )


def _alarm(checkpoint: Checkpoint, name: str, severity: str, field: str, sentence: str) -> Alarm:
    return Alarm(
        oracle="foreign",
        severity="high" if severity == "high" else "medium",
        object=name,
        field=field,
        sentence=sentence,
        step=checkpoint.step,
    )
