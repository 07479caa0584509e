"""The children of one call: checked before anything is written, and in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, Generic, TypeVar

from konverge.objects.meta import Object
from konverge.runtime.apply_set.members import AFTER, PART_OF, Ref, after_text, ref_of
from konverge.runtime.owners import set_controller_reference

K = TypeVar("K", bound=Object)


@dataclass(frozen=True, slots=True)
class Child(Generic[K]):
    """A child of a set with more to say than its desired state.

        db, web = stateful_set_for(app), deployment_for(app)
        await ctx.apply_set([db, Child(web, after=[db])])

    It is written only while all of `after`, children of the same set, are ready; and what it comes after is deleted
    only when it is gone itself.
    """

    desired: K
    after: Sequence[Object] = ()
    ready: Callable[[K], bool] | None = None
    """Whether it is ready for those that come after it, in place of what is usual for its kind."""
    optional: bool = False
    """Leave it out where the cluster does not serve its kind. Declare the kind as optional too."""
    adopt: bool = False
    """As for `ctx.apply`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One child, and what it comes after."""

    child: Child[Any]
    ref: Ref
    after: frozenset[Ref]


def plan(
    owner: Object,
    children: Iterable[Object | Child[Any]],
    stages: Iterable[Iterable[Object | Child[Any]]],
    label: str,
) -> list[Step]:
    """The children in the order of their dependencies, marked as members. Raises ValueError or OwnershipError."""
    alone, staged = list(children), [list(stage) for stage in stages]
    if alone and staged:
        raise ValueError("apply_set takes a list of children or stages=…, not both")
    steps: dict[Ref, Step] = {}
    before: frozenset[Ref] = frozenset()
    for stage in staged or [alone]:
        added = [_step(owner, entry, before) for entry in stage]
        for step in added:
            if step.ref in steps:
                raise ValueError(f"{step.ref} is in the set twice: a child is named once")
            steps[step.ref] = step
        before = frozenset(step.ref for step in added) or before
    ordered = _ordered(steps)
    for step in ordered:
        _mark(owner, step, label)
    return ordered


def _step(owner: Object, entry: Object | Child[Any], before: frozenset[Ref]) -> Step:
    child: Child[Any] = entry if isinstance(entry, Child) else Child(entry)
    after = frozenset(_ref(owner, other) for other in child.after) | before
    return Step(child, _ref(owner, child.desired), after)


def _ref(owner: Object, desired: Object) -> Ref:
    resource, meta = type(desired).resource, desired.metadata
    if not meta.name:
        raise ValueError(f"a {resource.kind} of the set has no name: a set finds its members again by their names")
    if resource.namespaced and not meta.namespace:
        meta.namespace = owner.metadata.namespace
    return ref_of(resource, meta.namespace, meta.name)


def _ordered(steps: dict[Ref, Step]) -> list[Step]:
    for step in steps.values():
        for other in sorted(step.after - steps.keys()):
            raise ValueError(f"{step.ref} comes after {other}, which is not in the set: add it to the list")
    order = TopologicalSorter({ref: sorted(step.after) for ref, step in steps.items()})
    try:
        return [steps[ref] for ref in order.static_order()]
    except CycleError as error:
        circle = " after ".join(map(str, error.args[1][::-1]))
        raise ValueError(f"the children depend on each other in a circle: {circle}") from None


def _mark(owner: Object, step: Step, label: str) -> None:
    desired = step.child.desired
    set_controller_reference(owner, desired)
    meta = desired.metadata
    if meta.labels.get(PART_OF, label) != label:
        raise ValueError(f"{step.ref} carries the label {PART_OF}, which apply_set sets: leave it out")
    # New dicts: the same one may be the selector of the child, or the labels of another child.
    meta.labels = {**meta.labels, PART_OF: label}
    annotations = {key: value for key, value in meta.annotations.items() if key != AFTER}
    meta.annotations = {**annotations, AFTER: after_text(step.after)} if step.after else annotations
