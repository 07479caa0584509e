"""Timers: return when to come back. A change comes at once all the same. `konverge run examples/05_timers.py`"""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Manager, Model, Result


class MeterSpec(Model):
    interval_seconds: float = 60.0


class MeterStatus(Model):
    readings: int = 0


class Meter(CustomResource[MeterSpec, MeterStatus], group="examples.konverge.dev", version="v1"):
    """Something to read again and again."""


async def read(ctx: Context[Meter]) -> Result:
    ctx.obj.status.readings += 1
    await ctx.save_status()
    return Result(requeue_after=ctx.obj.spec.interval_seconds)


manager = Manager(name="meters").add(Controller(Meter, read))
