"""Claims that lose their volume on purpose: the volume is deleted behind the controllers' back."""

from __future__ import annotations

from typing import Any

from konverge.client import MergePatch, NotFound
from konverge.objects.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from konverge.runtime import Context, Controller, Result
from konverge.sim.kubevirt import faults


async def lose(ctx: Context[PersistentVolumeClaim]) -> Result | None:
    name = ctx.obj.spec.volume_name
    if ctx.deleting or not name or ctx.obj.status.phase != "Bound" or "lost" not in await faults.of(ctx, "pvc"):
        return None
    try:
        await ctx.client.delete(PersistentVolume, name)
        await ctx.client.patch(PersistentVolume, name, MergePatch({"metadata": {"finalizers": None}}))
    except NotFound:
        return None
    return None


def controllers() -> list[Controller[Any]]:
    watches = [faults.switches(PersistentVolumeClaim)]
    return [Controller(PersistentVolumeClaim, lose, name="volume-losses", watches=watches)]
