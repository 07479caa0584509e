"""Finalizers: added before anything external is created, removed only when the clean-up has succeeded.

The list is written with the version that was read, so that two writers of it never lose each other's entries. A
controller that was renamed still has objects with the finalizer of its earlier name: it takes the new one and gives up
the old one in one write, so there is no moment at which an object could go without its clean-up.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from konverge.objects.meta import Object
from konverge.objects.names import qualified_name_errors
from konverge.runtime.context import Context
from konverge.runtime.result import DONE, Request, Result

T = TypeVar("T", bound=Object)
Step = Callable[[Context[T]], Awaitable["Result | None"]]

HELD_DELAY = 30.0
"""Seconds until a deletion that a daemon holds up is looked at again; the end of the daemon leads to it earlier."""


def check_finalizers(names: Iterable[str]) -> None:
    """Refuse what the API server would refuse at the first write. Upstream: ValidateFinalizerName."""
    for name in names:
        problems = qualified_name_errors(name) or (() if "/" in name else ("it has no domain",))
        if problems:
            raise ValueError(
                f"{name!r} cannot be a finalizer: {'; '.join(problems)}; give one such as "
                'finalizer="example.com/clean-up"'
            )


def with_cleanup(
    reconcile: Step[T], cleanup: Step[T], name: str, old: tuple[str, ...], is_held: Callable[[Request], bool]
) -> Step[T]:
    """Both functions as one: `cleanup` for objects being deleted, `reconcile` for all others.

    `is_held` says whether something still works for the object, so that its clean-up has to wait.
    """
    ours = (name, *old)

    async def step(ctx: Context[T]) -> Result | None:
        if not ctx.deleting:
            await _take_over(ctx, name, old)
            return await reconcile(ctx)
        if not _has_any(ctx, ours):
            return None  # our clean-up is done; other finalizers hold the object
        if is_held(ctx.request):
            return Result(requeue_after=HELD_DELAY)
        result = await cleanup(ctx) or DONE
        if result.requeue or result.requeue_after:
            return result
        await _take_off(ctx, ours)
        return None

    return step


def without_finalizers(reconcile: Step[T], given_up: tuple[str, ...]) -> Step[T]:
    """For a controller that has nothing to clean up any more: objects from earlier are let go."""

    async def step(ctx: Context[T]) -> Result | None:
        await _take_off(ctx, given_up)
        return await reconcile(ctx)

    return step


async def _take_over(ctx: Context[T], name: str, old: tuple[str, ...]) -> None:
    finalizers = ctx.obj.metadata.finalizers
    if name in finalizers and not _has_any(ctx, old):
        return
    ctx.obj.metadata.finalizers = [entry for entry in finalizers if entry != name and entry not in old] + [name]
    await ctx.save_metadata()


async def _take_off(ctx: Context[T], names: tuple[str, ...]) -> None:
    if _has_any(ctx, names):
        ctx.obj.metadata.finalizers = [entry for entry in ctx.obj.metadata.finalizers if entry not in names]
        await ctx.save_metadata()


def _has_any(ctx: Context[T], names: tuple[str, ...]) -> bool:
    return any(name in ctx.obj.metadata.finalizers for name in names)


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
