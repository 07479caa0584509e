"""The condition Ready of the kinds beside the machine: what is so, and what is in the way, with one event for each."""

from __future__ import annotations

from typing import Any

from konverge.operators.wukong.status import LONGEST_MESSAGE, READY
from konverge.runtime import Context, find_condition, set_condition


def say(ctx: Context[Any], value: bool, reason: str, message: str) -> None:
    conditions, generation = ctx.obj.status.conditions, ctx.obj.metadata.generation
    set_condition(conditions, READY, value, reason, message[:LONGEST_MESSAGE], observed_generation=generation)


def refuse(ctx: Context[Any], reason: str, message: str, again: float | None) -> float | None:
    """Say what is in the way; the result is `again`."""
    before = find_condition(ctx.obj.status.conditions, READY)
    if before is None or (before.reason, before.message) != (reason, message[:LONGEST_MESSAGE]):
        ctx.warning(reason, message)
    say(ctx, False, reason, message)
    return again
