"""Conditions as KubeVirt, CDI and NMState write them: with times of their own beside the usual ones."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.objects import Model


class ForeignCondition(Model):
    """One aspect of an object of somebody else."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


def condition(conditions: Iterable[ForeignCondition] | None, type: str) -> ForeignCondition | None:
    """The condition of that type, if there is one."""
    return next((one for one in conditions or () if one.type == type), None)


def holds(conditions: Iterable[ForeignCondition] | None, type: str) -> bool:
    """Whether the condition of that type is there and true."""
    found = condition(conditions, type)
    return found is not None and found.status == "True"
