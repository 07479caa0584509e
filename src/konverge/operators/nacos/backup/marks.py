"""The annotation of a Nacos with which a restore keeps its servers away: the restore's name and uid.

One that broke off within a MySQL database (`status.touched`) leaves its mark: servers would start on half of the data.
Another restore that takes such a mark over takes over what it stands for, in its status before in the annotation. So
only a database that is whole again, or the deletion of a restore that has failed, brings the servers back.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.client import Conflict, MergePatch, NotFound
from konverge.operators.nacos import names
from konverge.operators.nacos.backup.kinds import COMPLETED, FAILED, NacosRestore
from konverge.operators.nacos.backup.runs import Hopeless, WorkError
from konverge.operators.nacos.resource import AnyNacos
from konverge.runtime import Context

ENDED = (COMPLETED, FAILED)


def mark_of(restore: NacosRestore) -> str:
    """The value of the annotation."""
    return f"{restore.metadata.name}/{restore.metadata.uid}"


def half_restored(others: Iterable[NacosRestore]) -> NacosRestore | None:
    """The restore that left the database in half, where none has been complete since then."""
    changed = [other for other in others if other.status.phase == COMPLETED or _broke_off(other)]
    last = max(changed, key=lambda other: other.status.completion_time, default=None)
    return last if last is not None and _broke_off(last) and last.metadata.deletion_timestamp is None else None


def _broke_off(restore: NacosRestore) -> bool:
    return restore.status.phase == FAILED and restore.status.touched


async def take_mark(ctx: Context[NacosRestore], nacos: AnyNacos) -> None:
    """That of a restore which is at work is not replaced. Raises WorkError."""
    present = nacos.metadata.annotations.get(names.RESTORE, "")
    if present == mark_of(ctx.obj):
        return
    other = await ctx.get(NacosRestore, present.partition("/")[0]) if present else None
    if other is not None and mark_of(other) == present:
        if other.status.phase not in ENDED:
            raise WorkError("AnotherRestore", f"NacosRestore {other.metadata.name} comes first")
        if other.status.touched:
            await _inherit(ctx, other)
    await _annotate(ctx, nacos, mark_of(ctx.obj))


async def _inherit(ctx: Context[NacosRestore], other: NacosRestore) -> None:
    """Raises Hopeless for a restore that would refuse what the other one has left."""
    if not ctx.obj.spec.overwrite:
        nacos, name = ctx.obj.spec.nacos_ref.name, other.metadata.name
        message = f"the database of Nacos {nacos} was half restored by NacosRestore {name}: restore it with"
        raise Hopeless("HalfRestored", f"{message} overwrite: true")
    ctx.obj.status.touched = True
    await ctx.save_status()


async def drop_mark(ctx: Context[NacosRestore]) -> None:
    """Takes the annotation away, if it is ours."""
    await _replace(ctx, mark_of(ctx.obj), None)


async def hand_back(ctx: Context[NacosRestore], other: NacosRestore) -> None:
    """The annotation becomes that of the restore which we took it from. If that is being deleted, it may have looked
    for its mark before."""
    await _replace(ctx, mark_of(ctx.obj), mark_of(other))
    meta = other.metadata
    try:
        live = await ctx.client.get(NacosRestore, meta.name, meta.namespace)
    except NotFound:
        live = None
    if live is None or live.metadata.uid != meta.uid or live.metadata.deletion_timestamp is not None:
        await _replace(ctx, mark_of(other), None)


async def _replace(ctx: Context[NacosRestore], present: str, value: str | None) -> None:
    """By the API server's word: an annotation that the cache does not have yet would stay for ever."""
    try:
        nacos = await ctx.client.get(AnyNacos, ctx.obj.spec.nacos_ref.name, ctx.request.namespace)
        if nacos.metadata.annotations.get(names.RESTORE) == present:
            await _annotate(ctx, nacos, value)
    except NotFound:
        return


async def _annotate(ctx: Context[NacosRestore], nacos: AnyNacos, value: str | None) -> None:
    """On the version that was read: another restore may have come first."""
    meta = nacos.metadata
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    patch = MergePatch({"metadata": {**guard, "annotations": {names.RESTORE: value}}})
    try:
        await ctx.client.patch(AnyNacos, meta.name, patch, meta.namespace)
    except Conflict:
        raise WorkError("Stopping", f"Nacos {meta.name} has changed meanwhile", fault=False) from None
