"""Others are beside the operator: another custom resource of its kind, the same in another namespace, and people who
put notes on what it made."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec

from konverge.check.inputs.references import texts
from konverge.check.model import Action, Apply, Delete, Obj, Plan, Ref, Step
from konverge.check.oracles.company import ANOTHER, ELSEWHERE, NOTES
from konverge.check.oracles.history import Identity, identity, is_clusters, owned_by
from konverge.check.reference import Reference

NOTE = "of-others.example/note"
"""An annotation that no operator knows."""
NAMESPACE = "of-others"

_HISTORY = frozenset(("Pod", "Job"))


def another_instance(reference: Reference) -> Iterator[Plan]:
    """A second custom resource is there first; then the first is created, changed and deleted beside it.

    One of each kind that owns something: each has a controller of its own. A second one of what refers to another
    custom resource would be its rival there. What samples refer to (a Secret) is there for both, and stays: an operator
    does with each of them what it rightly does when that comes, changes or goes.
    """
    steps = reference.run.steps
    objects = _created(steps)
    samples = [obj for obj in objects if not is_clusters(obj["apiVersion"])]
    shared = [obj for obj in objects if is_clusters(obj["apiVersion"])]
    names = {obj["metadata"]["name"] for obj in samples}
    owners = _owners(reference)
    alone = [obj for obj in samples if not names & set(texts(obj.get("spec")))] or samples[:1]
    kinds: set[str] = set()
    for sample in alone:
        if sample["kind"] not in kinds and (sample is alone[0] or identity(sample) in owners):
            kinds.add(sample["kind"])
            name = f"{sample['metadata']['name']}-other"  # begins with the first one's: names are compared as a whole
            other = {**sample, "metadata": {**sample["metadata"], "name": name}}
            first = Step(ANOTHER.format(kind=sample["kind"]), tuple(map(Apply, (*shared, other))))
            yield Plan("edits", steps=(first, *beside(_without(steps, shared))))


def elsewhere(reference: Reference) -> Iterator[Plan]:
    """The same custom resources are there first, in another namespace; then the first are created, changed and deleted.

    What is called after the name alone, and is of the cluster or in the operator's own namespace, is one for both. What
    samples are of the whole cluster (a class) is there for both, and stays.
    """
    steps = reference.run.steps
    objects = _created(steps)
    known = set(map(identity, reference.run.checkpoints[0].state.values()))
    shared = [obj for obj in objects if _is_of_cluster(obj, known)]
    moved = [_moved(obj) for obj in objects if obj not in shared]
    custom = next((obj for obj in moved if not is_clusters(obj["apiVersion"])), None)
    if custom is not None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        first = Step(ELSEWHERE.format(kind=custom["kind"]), tuple(map(Apply, (namespace, *shared, *moved))))
        yield Plan("edits", steps=(first, *beside(_without(steps, shared))))


def _created(steps: Sequence[Step]) -> list[Obj]:
    """What the user makes in the first step."""
    return [item.object for item in steps[0].actions if isinstance(item, Apply)]


def _without(steps: Sequence[Step], shared: Collection[Obj]) -> list[Step]:
    """The steps, without what is done in them to what is there for both; one in which nothing else is done is left
    out."""
    there = set(map(identity, shared))
    kept = [
        msgspec.structs.replace(step, actions=tuple(item for item in step.actions if _target(item) not in there))
        for step in steps
    ]
    return [step for step in kept if step.actions]


def _target(action: Action) -> Identity:
    return identity(action.object) if isinstance(action, Apply) else (action.kind, action.namespace, action.name)


def _is_of_cluster(obj: Obj, known: Collection[Identity]) -> bool:
    """Samples of built-in kinds are given a namespace whatever they are: the API server takes it from them again."""
    metadata = obj["metadata"]
    return not metadata.get("namespace") or (obj["kind"], "", metadata["name"]) in known


def _moved(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}}


def _owners(reference: Reference) -> frozenset[Identity]:
    """What owns something after the first step."""
    state = reference.run.checkpoints[0].state if reference.run.checkpoints else {}
    return frozenset(identity(obj) for obj in state.values() if next(owned_by(obj, state), None) is not None)


def beside(steps: Sequence[Step]) -> tuple[Step, ...]:
    """What the user does while something of others is there: the custom resource is created, changed and deleted."""
    chosen = sorted({0, 1, _deletion(steps)} & set(range(len(steps))))
    return tuple(steps[number] for number in chosen)


def _deletion(steps: Sequence[Step]) -> int:
    """The number of the step that deletes something; behind the last, if none does."""
    deletes = (any(isinstance(action, Delete) for action in step.actions) for step in steps)
    return next((number for number, does in enumerate(deletes) if does), len(steps))


def notes(reference: Reference, targets: Sequence[tuple[Ref, Obj]]) -> Iterator[Plan]:
    """An annotation on everything at once, after the first step; then the workload goes on until the deletion."""
    noted = tuple(Apply(_noted(obj)) for _, obj in targets if obj.get("kind") not in _HISTORY)
    steps = reference.run.steps
    if noted:
        yield Plan("edits", steps=(steps[0], Step(NOTES, noted), *steps[1 : _deletion(steps)]))


def _noted(obj: Obj) -> Obj:
    place = {key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {**place, "annotations": {NOTE: "kept"}}}
