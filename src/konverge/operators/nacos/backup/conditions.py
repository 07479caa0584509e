"""What the resources say whose work a Job does: phase, conditions, events.

`Ready` and `Complete` become true when the work is done, `Failed` when it never will be: kstatus knows the first, who
knows Jobs the others.
"""

from __future__ import annotations

from typing import Any

from konverge.objects import times
from konverge.operators.nacos.backup.kinds import COMPLETED, FAILED, JobStatus
from konverge.runtime import Context, find_condition, set_condition

READY, COMPLETE = "Ready", "Complete"
_LONGEST = 1024


def pending(ctx: Context[Any], reason: str, message: str, *, fault: bool = True) -> None:
    """Not done yet, and why; with one event for each reason."""
    before = find_condition(_status(ctx).conditions, READY)
    if fault and (before is None or before.reason != reason):
        ctx.warning(reason, message)
    _set(ctx, READY, False, reason, message)
    _set(ctx, COMPLETE, False, reason, message)


def completed(ctx: Context[Any], reason: str, message: str) -> None:
    status = _status(ctx)
    status.phase, status.completion_time = COMPLETED, times.now()
    for type in (READY, COMPLETE):
        _set(ctx, type, True, reason, message)
    ctx.event(reason, message)


def failed(ctx: Context[Any], reason: str, message: str) -> None:
    status = _status(ctx)
    status.phase, status.completion_time = FAILED, times.now()
    for type in (READY, COMPLETE):
        _set(ctx, type, False, reason, message)
    _set(ctx, FAILED, True, reason, message)
    ctx.warning(reason, message)


def _set(ctx: Context[Any], type: str, value: bool, reason: str, message: str) -> None:
    generation = ctx.obj.metadata.generation
    set_condition(_status(ctx).conditions, type, value, reason, message[:_LONGEST], observed_generation=generation)


def _status(ctx: Context[Any]) -> JobStatus:
    status: JobStatus = ctx.obj.status
    return status
