"""What others have beside the operator's objects stays as it is: another custom resource, and notes of people."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.differences import differences
from konverge.check.folding import folded
from konverge.check.model import Alarm, Apply, Checkpoint, Obj, Run, Severity
from konverge.check.normal import compared
from konverge.check.oracles.deletions import PRECIOUS
from konverge.check.oracles.history import custom_resources, deletions_begun, identity, is_clusters, owned_by
from konverge.check.reference import Reference

NOTES = "others put notes on what the operator made"
"""The name of the step in which they do."""
ANOTHER = "another {kind}"
"""The name of the step that makes a second custom resource."""

_CONTENTS = ("spec", "data", "metadata.labels", "metadata.ownerReferences")


def neighbours(run: Run, reference: Reference) -> Iterator[Alarm]:
    """While the user changes and deletes one custom resource, what belongs to another is deleted or changed."""
    other = another(run, reference)
    if other is None or not run.checkpoints[0].rested or run.checkpoints[0].refused:
        return
    theirs, begun = dict(owned_by(other, run.checkpoints[0].state)), deletions_begun(run)
    said: set[str] = set()
    for change in run.changes:
        name = str(change.ref)
        mine = name in theirs and theirs[name]["metadata"].get("uid") == change.uid
        by_operator = begun.get(change.uid, change).writer == "operator"
        if mine and change.step and change.moment.type == "DELETED" and by_operator:
            severity: Severity = "high" if change.ref.resource in PRECIOUS else "medium"
            sentence = f"{name} is deleted, which belongs to another {other['kind']}"
            if name not in said:
                said.add(name)
                yield _alarm(run.steps[change.step].name, severity, name, "", sentence)
    for checkpoint in run.checkpoints[1:]:
        for name in theirs.keys() - said:
            path = _changed(name, theirs[name], checkpoint, reference)
            if path:
                said.add(name)
                sentence = f"{path} of {name} changes, which belongs to another {other['kind']}"
                yield _alarm(checkpoint.step, "medium", name, path, sentence)


def another(run: Run, reference: Reference) -> Obj | None:
    """The custom resource of the first step that the reference does not have."""
    if run.plan.pattern != "edits" or run.plan.steps is None or not run.checkpoints:
        return None
    known = custom_resources(reference.run)
    made = {
        identity(action.object)
        for action in run.steps[0].actions
        if isinstance(action, Apply) and not is_clusters(action.object.get("apiVersion", "v1"))
    }
    state = run.checkpoints[0].state
    return next((obj for obj in state.values() if identity(obj) in made - known), None)


def _changed(name: str, before: Obj, checkpoint: Checkpoint, reference: Reference) -> str:
    """The first field that another value was written to; empty for one that is shared by several owners."""
    after = checkpoint.state.get(name)
    if after is None or after["metadata"].get("uid") != before["metadata"].get("uid"):
        return ""
    if len(after["metadata"].get("ownerReferences") or ()) > 1:
        return ""
    paths = (path for path, _, _ in compared(name, before, after, reference.masks, derived=False))
    return next((path for path in paths if path.startswith(_CONTENTS)), "")


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
