"""Finalizers: added before anything external is created, removed only when the clean-up has succeeded.

The name is written with the version that was read, so that two writers of the list never lose each other's entries.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from konverge.objects.meta import Object
from konverge.runtime.context import Context
from konverge.runtime.result import DONE, Result

if TYPE_CHECKING:
    from konverge.runtime.declare import Reconciler

T = TypeVar("T", bound=Object)


def with_finalizer(reconciler: Reconciler[T], name: str) -> Callable[[Context[T]], Awaitable[Result | None]]:
    """The reconciler's two functions as one: `cleanup` for objects being deleted, `reconcile` for all others."""

    async def reconcile(ctx: Context[T]) -> Result | None:
        if ctx.deleting:
            return await _clean_up(reconciler, ctx, name)
        await add_finalizer(ctx, name)
        return await reconciler.reconcile(ctx)

    return reconcile


async def _clean_up(reconciler: Reconciler[T], ctx: Context[T], name: str) -> Result | None:
    if name not in ctx.obj.metadata.finalizers:
        return None  # our clean-up is done; other finalizers hold the object
    result = await reconciler.cleanup(ctx) or DONE
    if result.requeue or result.requeue_after:
        return result
    await remove_finalizer(ctx, name)
    return None


async def add_finalizer(ctx: Context[T], name: str) -> bool:
    """Put a finalizer on the object; False when it is there already."""
    if name in ctx.obj.metadata.finalizers:
        return False
    ctx.obj.metadata.finalizers.append(name)
    return await ctx.save_metadata()


async def remove_finalizer(ctx: Context[T], name: str) -> bool:
    """Take a finalizer off the object; False when it is not there."""
    if name not in ctx.obj.metadata.finalizers:
        return False
    ctx.obj.metadata.finalizers.remove(name)
    return await ctx.save_metadata()
