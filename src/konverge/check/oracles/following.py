"""A number of replicas that a workload takes from the custom resource is taken whatever it is.

In the undisturbed run it is seen which workload has as many replicas as a field says, each time that the field changed.
That one has as many after other changes of the field as well; or the custom resource says why not.
"""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.inputs.paths import get, parsed
from konverge.check.model import Alarm, Obj, Run, Step
from konverge.check.oracles.desired import Rested, is_not_carried_out, is_own, rests
from konverge.check.reference import Reference

_WORKLOADS = ("apps/statefulsets ", "apps/deployments ")


def following(run: Run, reference: Reference) -> Iterator[Alarm]:
    """One alarm per workload and field."""
    if run is reference.run or run.plan.perturbations:
        return
    said: set[tuple[str, str]] = set()
    for now in rests(run):
        step = now.step
        if step.core != "Replicas" or step.expect or now.checkpoint.refused or not now.checkpoint.rested:
            continue
        wanted = _asked_for(now, step)
        if wanted is None or is_not_carried_out(now, step):
            continue
        for key in _followers(reference, step):
            present = _replicas(now.checkpoint.state.get(key))
            if present not in (None, wanted) and (key, step.about) not in said:
                said.add((key, step.about))
                yield _alarm(now, key, wanted, present)


def _followers(reference: Reference, step: Step) -> list[str]:
    """The workloads that had as many replicas as the field said, whenever that was another number."""
    seen: dict[str, set[int]] = {}
    others: set[str] = set()
    for rested in rests(reference.run):
        wanted = _asked_for(rested, step) if rested.checkpoint.rested else None
        if wanted is None:
            continue
        for key, obj in rested.checkpoint.state.items():
            if key.startswith(_WORKLOADS):
                if _replicas(obj) == wanted:
                    seen.setdefault(key, set()).add(wanted)
                else:
                    others.add(key)
    return sorted(key for key, numbers in seen.items() if len(numbers) > 1 and key not in others)


def _asked_for(rested: Rested, step: Step) -> int | None:
    """What the custom resource says, whose field it is."""
    mine = (obj for key, obj in rested.checkpoint.state.items() if is_own(key, step))
    value = next((get(obj, parsed(step.about)) for obj in mine), None)
    return value if type(value) is int else None


def _replicas(obj: Obj | None) -> int | None:
    value = (obj or {}).get("spec", {}).get("replicas")
    return value if type(value) is int else None


def _alarm(now: Rested, key: str, wanted: int, present: int | None) -> Alarm:
    return Alarm(
        oracle="following",
        severity="medium",
        object=key,
        field="spec.replicas",
        sentence=f"{now.step.about} is {wanted}, and {key} has {present} replicas, which follows it otherwise",
        step=now.step.name,
        expected=wanted,
        actual=present,
    )
