"""Many changes by others in one run: one after the other, each at the rest after the one before it.

Most of what others do is put right, and a run for each says no more than that. On virtual time a rest costs little, and
a run much of what it costs by itself: a tour of ten takes as long as two or three runs. Where it ends in an alarm, each
change that may have led to it has a run of its own (`apart`), and what that shows is the finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from konverge.check.folding import folded
from konverge.check.model import Alarm, Edit, Plan, Ref
from konverge.check.plans.order import ranked

LENGTH = 10
"""Changes of one tour: an alarm costs a run for each of them, at worst."""


def tours(plans: Iterable[Plan], owners: Mapping[Ref, str]) -> Iterator[Plan]:
    """Plans of one change each, put together: the most telling of every kind first."""
    items = [item for _, plan in ranked(plans, owners) for item in plan.perturbations]
    for start in range(0, len(items), LENGTH):
        yield Plan("edits", tuple(items[start : start + LENGTH]))


def is_tour(plan: Plan) -> bool:
    return len(plan.perturbations) > 1 and all(isinstance(item, Edit) for item in plan.perturbations)


def apart(plan: Plan, alarms: Sequence[Alarm]) -> list[Plan]:
    """The changes that alarms are about, each by itself; all, where one is about none of them."""
    objects = {alarm.object for alarm in alarms}
    edits = [item for item in plan.perturbations if isinstance(item, Edit)]
    known = {folded(str(item.ref)) for item in edits}
    chosen = [item for item in edits if folded(str(item.ref)) in objects or not objects <= known]
    return [msgspec.structs.replace(plan, perturbations=(item,), seconds=0.0) for item in chosen]
