"""Conditions: the one place that sets lastTransitionTime, and only when the status changes.

Upstream: meta.SetStatusCondition (k8s.io/apimachinery/pkg/api/meta/conditions.go).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeVar

from konverge import clock
from konverge.objects.meta import Condition
from konverge.objects.times import format_time

C = TypeVar("C", bound=Any)

ConditionStatus = Literal["True", "False", "Unknown"]


def set_condition(
    conditions: list[Condition],
    type: str,
    status: ConditionStatus | bool,
    reason: str,
    message: str = "",
    *,
    observed_generation: int | None = None,
) -> bool:
    """Set one condition in place; True when anything changed.

        set_condition(webapp.status.conditions, "Ready", True, "AllReplicasReady", observed_generation=generation)

    `lastTransitionTime` moves only with the status; reason and message may change without it.
    """
    value = status if isinstance(status, str) else str(status)
    present = find_condition(conditions, type)
    if present is None:
        now = format_time(clock.utc_now())
        condition = Condition(type=type, status=value, reason=reason, message=message, last_transition_time=now)
        condition.observed_generation = observed_generation
        conditions.append(condition)
        return True
    before = (present.status, present.reason, present.message, present.observed_generation)
    if present.status != value:
        present.status = value
        present.last_transition_time = format_time(clock.utc_now())
    present.reason, present.message = reason, message
    if observed_generation is not None:
        present.observed_generation = observed_generation
    return before != (present.status, present.reason, present.message, present.observed_generation)


def find_condition(conditions: Iterable[C], type: str) -> C | None:
    """The condition of a type, of any kind's conditions; None when there is none."""
    return next((condition for condition in conditions if condition.type == type), None)


def is_true(conditions: list[Condition], type: str) -> bool:
    """
    >>> is_true([], "Ready")
    False
    """
    condition = find_condition(conditions, type)
    return condition is not None and condition.status == "True"
