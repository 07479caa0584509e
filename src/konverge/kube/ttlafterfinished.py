"""Deletes Jobs `ttlSecondsAfterFinished` after they finished, with everything they own.

Upstream: pkg/controller/ttlafterfinished/ttlafterfinished_controller.go.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

from konverge import clock
from konverge.client import NotFound
from konverge.kube.job.verdict import is_true
from konverge.objects.kinds.batch_v1 import Job
from konverge.objects.times import parse_time
from konverge.runtime import Context, Controller, Result


def expires_in(job: Job) -> float | None:
    """Seconds until a Job is to be deleted; None when it is not to be, or has not finished. Upstream: timeLeft."""
    if job.spec.ttl_seconds_after_finished is None or job.metadata.deletion_timestamp is not None:
        return None
    for condition in job.status.conditions:
        if condition.type in ("Complete", "Failed") and is_true(job, condition.type) and condition.last_transition_time:
            due = parse_time(condition.last_transition_time) + timedelta(seconds=job.spec.ttl_seconds_after_finished)
            return (due - clock.utc_now()).total_seconds()
    return None


# upstream: processJob
async def expire(ctx: Context[Job]) -> Result | None:
    left = expires_in(ctx.obj)
    if left is None:
        return None
    if left > 0:
        return Result(requeue_after=left)
    name, where = ctx.request.name, ctx.request.namespace
    with contextlib.suppress(NotFound):
        live = await ctx.client.get(Job, name, where)
        left = expires_in(live)  # the user may have changed the time since the cache saw it
        if left is None or left > 0:
            return None if left is None else Result(requeue_after=left)
        await ctx.client.delete(Job, name, where, uid=live.metadata.uid, propagation="Foreground")
    return None


def controllers() -> list[Controller[Any]]:
    return [Controller(Job, expire, name="ttl-after-finished")]
