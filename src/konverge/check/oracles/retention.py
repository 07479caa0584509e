"""A policy that asks to keep data (`deletePolicy: Retain`) keeps them when the custom resource is deleted.

The undisturbed run is asked as well: an operator that ignores the policy does so every time. Which claims belong to a
custom resource is told by their owners, and of claims that no custom resource owns by their names; something of them
has to be left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from konverge.check.folding import folded
from konverge.check.inputs.asked_for import keeps_data
from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.oracles.history import deleted_in, identity, news, owned_by, resources_at, step_of
from konverge.check.oracles.status import WORKLOADS
from konverge.check.reference import Reference

_DATA = frozenset(("PersistentVolumeClaim", "DataVolume"))
_USES = _DATA | WORKLOADS | {"Pod"}


def retention(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Of runs in which nothing goes wrong: what a fault takes away is said by `deletions` and `state`."""
    if not run.plan.perturbations:
        yield from news(_lost, run, reference)


def _lost(run: Run) -> Iterator[Alarm]:
    for before, now in pairwise(run.checkpoints):
        step = step_of(run, now)
        if not now.rested or step >= len(run.steps):
            continue
        gone = deleted_in(run, step)
        for name, resource in resources_at(run, before):
            policy = keeps_data(resource)
            if not policy or identity(resource) not in gone or name in now.state:
                continue
            claims = _claims(run, before, name, resource)
            if claims and not any(_is_left(claim, before, now) for claim in claims):
                yield _alarm(name, policy, claims, now)


def _claims(run: Run, checkpoint: Checkpoint, name: str, resource: Obj) -> list[str]:
    """The claims of a custom resource: those that it owns, and those that no other one owns and that are called after
    it and after no other."""
    state = checkpoint.state
    owned = {key for key, _ in owned_by(resource, state)}
    others = [other for key, other in resources_at(run, checkpoint) if key != name]
    of_others = {key for other in others for key, _ in owned_by(other, state)}
    by_name = not _has_rival(resource, others, state)
    made = {change.uid for change in run.changes if change.moment.type == "ADDED" and change.writer != "user"}
    return [
        key
        for key, obj in state.items()
        if obj.get("kind") in _DATA
        and obj["metadata"].get("uid") in made
        and (key in owned or (by_name and key not in of_others and _is_called_after(obj, resource, others)))
    ]


def _has_rival(resource: Obj, others: Sequence[Obj], state: dict[str, Obj]) -> bool:
    """Whether what is called after a custom resource may be of one of another kind that is called as it is: that has
    something which uses claims, or neither has."""
    rivals = [other for other in others if identity(other)[1:] == identity(resource)[1:]]
    return any(_runs(rival, state) for rival in rivals) or (bool(rivals) and not _runs(resource, state))


def _runs(resource: Obj, state: dict[str, Obj]) -> bool:
    """Whether it owns something that uses claims, or claims."""
    return any(obj.get("kind") in _USES for _, obj in owned_by(resource, state))


def _is_called_after(obj: Obj, resource: Obj, others: Sequence[Obj]) -> bool:
    if obj["metadata"].get("namespace") != resource["metadata"].get("namespace"):
        return False
    called, name = f"-{obj['metadata']['name']}-", resource["metadata"]["name"]
    longer = [identity(other)[2] for other in others if len(identity(other)[2]) > len(name)]
    return f"-{name}-" in called and not any(f"-{other}-" in called for other in longer)


def _is_left(claim: str, before: Checkpoint, now: Checkpoint) -> bool:
    """A claim, or the volume that it had, where the policy is that of the volume."""
    if _uid(before.state[claim]) == _uid(now.state.get(claim)):
        return True
    bound = (before.state[claim].get("spec") or {}).get("volumeName")
    volume = f"persistentvolumes {bound}"
    return bool(bound) and volume in now.state and _uid(now.state[volume]) == _uid(before.state.get(volume))


def _uid(obj: Obj | None) -> str:
    return str(obj["metadata"].get("uid", "")) if obj is not None else "none"


def _alarm(name: str, policy: str, claims: list[str], now: Checkpoint) -> Alarm:
    return Alarm(
        oracle="retention",
        severity="high",
        object=folded(name),
        field=policy.partition(":")[0],
        sentence=f"{name} asks to keep its data ({policy}), and nothing is left of them: {', '.join(claims)}",
        step=now.step,
        expected=policy,
    )
