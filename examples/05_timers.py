"""Timers: a function for each object, every so often, at its own pace. `konverge run examples/05_timers.py`"""

from __future__ import annotations

from konverge import Context, Controller, CustomResource, Every, Manager, Model


class MeterSpec(Model):
    interval_seconds: float = 60.0


class MeterStatus(Model):
    readings: int = 0


class Meter(CustomResource[MeterSpec, MeterStatus], group="examples.konverge.dev", version="v1"):
    """Something to read again and again."""


async def read(ctx: Context[Meter]) -> None:
    ctx.obj.status.readings += 1
    await ctx.save_status()


timer = Every(lambda meter: meter.spec.interval_seconds, read)
manager = Manager(name="meters").add(Controller(Meter, timers=[timer]))
