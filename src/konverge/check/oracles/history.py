"""What several oracles ask of a run: its custom resources, who made what, which steps it shares with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from konverge.check.folding import folded
from konverge.check.model import Alarm, Apply, Change, Checkpoint, Delete, Edit, Obj, Ref, Run
from konverge.check.reference import Reference

Identity = tuple[str, str, str]
"""Kind, namespace and name."""


def news(say: Callable[[Run], Iterable[Alarm]], run: Run, reference: Reference) -> Iterator[Alarm]:
    """What is said of a run and not of the reference as well, each group once. Of the reference itself: all."""
    known = set() if run is reference.run else {alarm.group for alarm in say(reference.run)}
    for alarm in say(run):
        if alarm.group not in known:
            known.add(alarm.group)
            yield alarm


def is_clusters(api_version: str) -> bool:
    """Whether a kind of this version is one of Kubernetes' own."""
    group = api_version.partition("/")[0] if "/" in api_version else ""
    return "." not in group or group.endswith(".k8s.io")


def identity(obj: Obj) -> Identity:
    metadata = obj["metadata"]
    return obj.get("kind", ""), metadata.get("namespace", ""), metadata["name"]


def custom_resources(run: Run) -> frozenset[Identity]:
    """What the user asks the operator for, in any step."""
    return frozenset(map(identity, _asked_for(run)))


def groups_of_custom_resources(run: Run) -> frozenset[str]:
    """Of what API groups that is."""
    return frozenset(obj["apiVersion"].partition("/")[0] for obj in _asked_for(run))


def _asked_for(run: Run) -> Iterator[Obj]:
    for step in run.steps:
        for action in step.actions:
            if isinstance(action, Apply) and not is_clusters(action.object.get("apiVersion", "v1")):
                yield action.object


def resources_at(run: Run, checkpoint: Checkpoint) -> Iterator[tuple[str, Obj]]:
    """The custom resources of the user that are there."""
    mine = custom_resources(run)
    return ((name, obj) for name, obj in checkpoint.state.items() if identity(obj) in mine)


def deleted_in(run: Run, step: int) -> frozenset[Identity]:
    """What the user deletes in a step."""
    return frozenset(
        (action.kind, action.namespace, action.name) for action in run.steps[step].actions if isinstance(action, Delete)
    )


def deletions_begun(run: Run) -> dict[str, Change]:
    """By the uid of an object that did not go at once: the change by which its deletion began.

    A pod has its grace period, and others have finalizers. Whoever takes it away in the end has not deleted it.
    """
    begun: dict[str, Change] = {}
    for change in run.changes:
        if change.uid and any(path == _DELETION for path, _, _ in change.differences):
            begun.setdefault(change.uid, change)
    return begun


_DELETION = "metadata.deletionTimestamp"


def made_too_late(run: Run) -> frozenset[str]:
    """The uids of what the cluster made in a step in which the user deletes a custom resource.

    An operator that goes on with what it has read before makes a workload once more, and the cluster makes its claims
    before it takes it away: which are left over is chance, and a run without them is no worse.
    """
    mine = custom_resources(run)
    steps = {number for number in range(len(run.steps)) if deleted_in(run, number) & mine}
    return frozenset(
        change.uid
        for change in run.changes
        if change.moment.type == "ADDED" and change.writer == "cluster" and change.step in steps and change.uid
    )


def shared_steps(run: Run, reference: Run) -> int:
    """So many first steps are those of the reference."""
    same = 0
    for one, other in zip(run.steps, reference.steps, strict=False):
        if one != other:
            break
        same += 1
    return same


def step_of(run: Run, checkpoint: Checkpoint) -> int:
    """The number of the step after which a checkpoint was taken."""
    base = checkpoint.step.removesuffix(", then")
    return next((number for number, step in enumerate(run.steps) if step.name == base), len(run.steps))


def key(change: Change) -> str:
    return folded(str(change.ref))


def edited(run: Run) -> frozenset[Ref]:
    """What others change or delete in a run, on purpose."""
    return frozenset(item.ref for item in run.plan.perturbations if isinstance(item, Edit))


def first_request(run: Run) -> int:
    """The revision of the first change that the user made."""
    return next((change.revision for change in run.changes if change.writer == "user"), 0)


def owned_by(owner: Obj, state: dict[str, Obj]) -> Iterator[tuple[str, Obj]]:
    """What names an object as its owner, directly or through another object."""
    owners = {owner["metadata"].get("uid", "")}
    left = dict(state)
    while True:
        mine = [
            item
            for item in left
            if any(ref.get("uid") in owners for ref in left[item]["metadata"].get("ownerReferences") or ())
        ]
        if not mine:
            return
        for item in mine:
            obj = left.pop(item)
            owners.add(obj["metadata"].get("uid", ""))
            yield item, obj
