"""The order of plans: those first that find most. A budget may end at any of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from konverge.check.model import (
    Crash,
    Edit,
    Gap,
    Lag,
    LateOwnWrites,
    LeaderLost,
    OperatorAway,
    Perturbation,
    Place,
    Plan,
    Ref,
    Refuse,
    Stale,
)
from konverge.check.oracles.company import ANOTHER, NOTES
from konverge.check.oracles.foreign import FOREIGN
from konverge.check.reference import Reference

_PATTERNS = {
    "stale": 60, "gap": 55, "crash": 50, "edits": 45, "application": 40, "own-writes": 35, "input": 35, "recovery": 35,
    "errors": 30, "time": 25, "leader": 20,
}  # fmt: skip
_LASTING = frozenset(
    ("/persistentvolumeclaims", "/persistentvolumes", "/secrets", "apps/statefulsets", "batch/jobs", "/services")
)
"""Deleted or written wrongly, something is lost that does not come back by itself."""


def ranked(plans: Iterable[Plan], owners: Mapping[Ref, str] | None = None) -> list[tuple[int, Plan]]:
    """First the best plan of every kind (pattern, resource, verb), then the second best of every kind, and so on.

    Each with its rank in its kind, from 1. `owners` are the kinds of custom resources to which objects belong.
    """
    best = sorted(plans, key=lambda plan: -value(plan))  # stable: plans of the same value stay in their order
    seen: Counter[tuple[str, ...]] = Counter()
    made = []
    for plan in best:
        alike = (*kind(plan), *_owners(plan, owners or {}))
        seen[alike] += 1
        made.append((seen[alike], plan))
    return sorted(made, key=lambda item: (item[0], -value(item[1])))


def owners_of(reference: Reference) -> dict[Ref, str]:
    """The kind of the controller of what there is after the first step."""
    state = reference.run.checkpoints[0].state if reference.run.checkpoints else {}
    kinds = {
        name: owner["kind"]
        for name, obj in state.items()
        for owner in obj["metadata"].get("ownerReferences") or ()
        if owner.get("controller")
    }
    return {change.ref: kinds.get(str(change.ref), "") for change in reference.run.changes}


def kind(plan: Plan) -> tuple[str, ...]:
    """What a plan is a case of; with steps of its own and nothing that goes wrong in them, of these."""
    if plan.steps is not None and not plan.perturbations:
        return (plan.pattern, *(step.name for step in plan.steps[:2]))
    return (plan.pattern, *(part for item in plan.perturbations for part in _kind(item)))


def _owners(plan: Plan, owners: Mapping[Ref, str]) -> Iterable[str]:
    """Of what others edit: a Service of one kind of custom resource is the work of another controller than that of
    another kind."""
    return [owners.get(item.ref, "") for item in plan.perturbations if isinstance(item, Edit)]


def _kind(item: Perturbation) -> tuple[str, ...]:
    match item:
        case Crash():
            return (item.when, item.place.verb, item.place.resource)
        case Refuse():
            return (item.answer, item.place.verb, item.place.resource)
        case LeaderLost():
            return (item.place.verb, item.place.resource)
        case Stale():
            return (item.resource, item.since.type, item.since.change, item.until.type, item.until.resource)
        case Gap() | Lag():
            return (item.resource, item.since.type, item.since.change)
        case LateOwnWrites():
            return (item.resource,)
        case Edit():
            return (item.ref.resource, item.subresource, "delete" if item.patch is None else ",".join(item.patch))
        case OperatorAway():
            return ("away", "one step" if item.last == item.step else "several")
    return (type(item).__name__,)


def value(plan: Plan) -> int:
    """How likely it is that a plan finds something bad, roughly."""
    base = _PATTERNS.get(plan.pattern, 0)
    if not plan.perturbations:
        return base + 25 if has_others(plan) else base  # whoever takes what is not its own loses others' data
    best = base + max(_value(item) for item in plan.perturbations)
    if all(isinstance(item, Edit) for item in plan.perturbations):  # one after the other: as many as there are
        return best + len(plan.perturbations) - 1
    return best - 40 * (len(plan.perturbations) - 1)


_DELETED = 12
"""What is gone shows whether the operator looks after it at all, of whatever kind it is."""
_BEGINNINGS = tuple(name.partition("{")[0] for name in (FOREIGN, ANOTHER, NOTES))


def has_others(plan: Plan) -> bool:
    """Others have an object with a name that the operator will use, a custom resource of the same kind, or notes on
    what the operator made (in the second step)."""
    return any(step.name.startswith(_BEGINNINGS) for step in (plan.steps or ())[:2])


def _value(item: Perturbation) -> int:
    match item:
        case Crash() | Refuse() | LeaderLost():
            return _place_value(item.place)
        case Stale():
            return 20 if item.until.resource in _LASTING else 10
        case Lag():
            return -25
        case Gap():
            return 0 if item.since.resource in ("/pods", "/events") else 15
        case Edit():
            lasting = 10 if item.ref.resource in _LASTING else 0
            return lasting + (_DELETED if item.patch is None else 0)
        case OperatorAway():
            return 10
    return 0


def _place_value(place: Place) -> int:
    points = 20 if place.verb in ("delete", "deletecollection") else 5 if place.verb == "create" else 0
    if "/".join(place.resource.split("/")[:2]) in _LASTING:
        points += 10
    if "finalizers" in place.change or "replicas" in place.change:
        points += 10
    if place.resource.endswith("/status"):
        points -= 15
    return points
