"""What others have beside the operator's objects stays as it is: another custom resource, and notes of people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from konverge.check.differences import differences
from konverge.check.folding import folded
from konverge.check.model import Alarm, Apply, Change, Checkpoint, Obj, Run, Severity
from konverge.check.normal import compared
from konverge.check.oracles.deletions import PRECIOUS
from konverge.check.oracles.history import (
    custom_resources,
    deleted_in,
    deletions_begun,
    identity,
    is_clusters,
    owned_by,
)
from konverge.check.reference import Reference

NOTES = "others put notes on what the operator made"
"""The name of the step in which they do."""
ANOTHER = "another {kind}"
"""The name of the step that makes a second custom resource."""
ELSEWHERE = f"{ANOTHER} in another namespace"
"""The same, where it is called as the first."""

_HISTORY = frozenset(("/pods", "batch/jobs"))
"""What has run is history, whose deletion takes nothing away."""
_CONTENTS = ("spec", "data", "metadata.labels", "metadata.ownerReferences")


def neighbours(run: Run, reference: Reference) -> Iterator[Alarm]:
    """While the user changes and deletes one custom resource, what belongs to another is deleted or changed."""
    others = _others(run, reference)
    if not others or not run.checkpoints[0].rested or run.checkpoints[0].refused:
        return
    state = run.checkpoints[0].state
    theirs = {name: (obj, other["kind"]) for other in others for name, obj in owned_by(other, state)}
    made = _made_first(run) - {obj["metadata"].get("uid") for obj, _ in theirs.values()}
    said: set[str] = set()
    for change in _deletions_by_operator(run):
        name = str(change.ref)
        if name in said:
            continue
        severity: Severity = "high" if change.ref.resource in PRECIOUS else "medium"
        if name in theirs and theirs[name][0]["metadata"].get("uid") == change.uid:
            said.add(name)
            sentence = f"{name} is deleted, which belongs to another {theirs[name][1]}"
            yield _alarm(run.steps[change.step].name, severity, name, "", sentence)
        elif change.uid in made and (kind := _needed_by(run, change, others)):
            said.add(name)
            sentence = f"{name} is deleted, which was made for another {kind}"
            yield _alarm(run.steps[change.step].name, severity, name, "", sentence)
    for checkpoint in run.checkpoints[1:]:
        for name in theirs.keys() - said:
            obj, kind = theirs[name]
            path = _changed(name, obj, checkpoint, reference)
            if path:
                said.add(name)
                sentence = f"{path} of {name} changes, which belongs to another {kind}"
                yield _alarm(checkpoint.step, "medium", name, path, sentence)
        for name, obj in state.items():
            path = _overwritten(name, obj, checkpoint, reference) if obj["metadata"].get("uid") in made else ""
            if path and name not in said:
                said.add(name)
                sentence = f"{path} of {name} is overwritten, which was made for another {others[0]['kind']}"
                yield _alarm(checkpoint.step, "medium", name, path, sentence)


def _deletions_by_operator(run: Run) -> Iterator[Change]:
    """After the first step."""
    begun = deletions_begun(run)
    for change in run.changes:
        if change.step and change.moment.type == "DELETED" and begun.get(change.uid, change).writer == "operator":
            yield change


def _made_first(run: Run) -> set[str]:
    """The uids of what the operator made in the first step, for another custom resource: nothing else was there yet."""
    return {
        change.uid
        for change in run.changes
        if change.step == 0 and change.moment.type == "ADDED" and change.writer == "operator"
    }


def _needed_by(run: Run, deletion: Change, others: Sequence[Obj]) -> str:
    """The kind of another custom resource that is still there; empty if there is none, or the object was replaced."""
    if deletion.ref.resource in _HISTORY:
        return ""
    after = next((item for item in run.checkpoints if item.step == run.steps[deletion.step].name), None)
    if after is None or (str(deletion.ref) in after.state and not deleted_in(run, deletion.step)):
        return ""
    left = (obj for obj in after.state.values() if identity(obj) in set(map(identity, others)))
    return next((obj["kind"] for obj in left if not obj["metadata"].get("deletionTimestamp")), "")


def another(run: Run, reference: Reference) -> Obj | None:
    """A custom resource of the first step that the reference does not have."""
    return next(iter(_others(run, reference)), None)


def _others(run: Run, reference: Reference) -> list[Obj]:
    """Those custom resources of the first step."""
    if run.plan.pattern != "edits" or run.plan.steps is None or not run.checkpoints:
        return []
    known = custom_resources(reference.run)
    made = {
        identity(action.object)
        for action in run.steps[0].actions
        if isinstance(action, Apply) and not is_clusters(action.object.get("apiVersion", "v1"))
    }
    return [obj for obj in run.checkpoints[0].state.values() if identity(obj) in made - known]


def _changed(name: str, before: Obj, checkpoint: Checkpoint, reference: Reference) -> str:
    """The first field that another value was written to; empty for one that is shared by several owners."""
    after = checkpoint.state.get(name)
    if after is None or after["metadata"].get("uid") != before["metadata"].get("uid"):
        return ""
    if len(after["metadata"].get("ownerReferences") or ()) > 1:
        return ""
    paths = (path for path, _, _ in compared(name, before, after, reference.masks, derived=False))
    return next((path for path in paths if path.startswith(_CONTENTS)), "")


def _overwritten(name: str, before: Obj, checkpoint: Checkpoint, reference: Reference) -> str:
    """The first field that another value was written to, where the object is now as without the other custom resource:
    what is for all of them would know of both."""
    path = _changed(name, before, checkpoint, reference)
    expected = reference.checkpoint(checkpoint.step)
    alone = expected.state.get(name) if expected is not None else None
    if not path or alone is None:
        return ""
    paths = (item for item, _, _ in compared(name, checkpoint.state[name], alone, reference.masks, derived=False))
    return "" if any(item.startswith(_CONTENTS) for item in paths) else path


def notes(run: Run, reference: Reference) -> Iterator[Alarm]:
    """An annotation of others on an object that the operator made is gone, and the object is still the same."""
    position = next((number for number, step in enumerate(run.steps) if step.name == NOTES), 0)
    if not position:
        return
    noted = {
        identity(action.object): action.object["metadata"]["annotations"]
        for action in run.steps[position].actions
        if isinstance(action, Apply)
    }
    said: set[str] = set()
    for checkpoint in run.checkpoints[position:]:
        for name, obj in checkpoint.state.items():
            wanted = noted.get(identity(obj))
            earlier = run.checkpoints[0].state.get(name)
            if wanted is None or earlier is None or name in said or not _is_same(earlier, obj):
                continue
            lost = [path for path, _, _ in differences(wanted, _kept(obj, wanted))]
            if lost:
                said.add(name)
                sentence = f"annotation {lost[0]}, which others put on {name}, is taken away"
                yield _alarm(checkpoint.step, "medium", name, "metadata.annotations", sentence)


def _kept(obj: Obj, wanted: dict[str, str]) -> dict[str, str]:
    present = obj["metadata"].get("annotations") or {}
    return {key: present[key] for key in wanted if key in present}


def _is_same(one: Obj, other: Obj) -> bool:
    return bool(one["metadata"].get("uid") == other["metadata"].get("uid"))


def _alarm(step: str, severity: Severity, name: str, field: str, sentence: str) -> Alarm:
    return Alarm(oracle="foreign", severity=severity, object=folded(name), field=field, sentence=sentence, step=step)
