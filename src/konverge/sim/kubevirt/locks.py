"""The marks on a machine that say what is being done to it: one snapshot or one restore at a time.

They are read from the server itself, and written only on what was read: two that begin at once must not both have it.
"""

from __future__ import annotations

from typing import Any

from konverge.client import MergePatch, NotFound
from konverge.runtime import Context
from konverge.sim.kubevirt.kinds import VirtualMachine

SNAPSHOT = "snapshotInProgress"
RESTORE = "restoreInProgress"


async def live(ctx: Context[Any], name: str) -> VirtualMachine | None:
    """The machine as it is now."""
    try:
        return await ctx.client.get(VirtualMachine, name, ctx.request.namespace)
    except NotFound:
        return None


async def put(ctx: Context[Any], machine: VirtualMachine, mark: str) -> bool:
    """Take the lock, or say who holds it. Raises Conflict when the machine has changed meanwhile."""
    holder = machine.status.get(mark)
    if holder is None:
        await _write(ctx, machine, mark, ctx.obj.metadata.name)
        return True
    return bool(holder == ctx.obj.metadata.name)


async def take_off(ctx: Context[Any], name: str, mark: str) -> None:
    """If it is ours."""
    machine = await live(ctx, name)
    if machine is not None and machine.status.get(mark) == ctx.obj.metadata.name:
        await _write(ctx, machine, mark, None)


async def _write(ctx: Context[Any], machine: VirtualMachine, mark: str, value: str | None) -> None:
    meta = machine.metadata
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    body = MergePatch({"metadata": guard, "status": {mark: value}})
    await ctx.client.patch(VirtualMachine, meta.name, body, meta.namespace, subresource="status")
