"""What runs for a key: the functions of a reconciler, and what finalizers need around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from konverge.objects.meta import Object
from konverge.runtime.context import Context
from konverge.runtime.declare import Controller, Reconciler
from konverge.runtime.finalizers import with_cleanup, without_finalizers
from konverge.runtime.result import Request, Result

T = TypeVar("T", bound=Object)


def reconcile_function(
    controller: Controller[T], is_held: Callable[[Request], bool]
) -> Callable[[Context[T]], Awaitable[Result | None]]:
    """One function for all objects; `is_held` says whether a daemon still works for an object that is deleted."""
    reconciler = controller.reconciler
    if reconciler is None:
        reconcile: Callable[[Context[T]], Awaitable[Result | None]] = _nothing
    else:
        # With key=… it is a function of a KeyContext, which is what the KeyedEngine gives it.
        reconcile = reconciler.reconcile if isinstance(reconciler, Reconciler) else cast("Any", reconciler)
    if controller.holds_deletion:
        cleanup = reconciler.cleanup if isinstance(reconciler, Reconciler) else _nothing
        old = tuple(name for name in controller.finalizers if name != controller.finalizer)
        return with_cleanup(reconcile, cleanup, controller.finalizer, old, is_held)
    if controller.finalizers:
        return without_finalizers(reconcile, controller.finalizers)
    return reconcile


async def _nothing(ctx: Context[T]) -> None:
    """The reconcile, or the clean-up, of a controller that has none."""
