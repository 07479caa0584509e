"""Mistakes in the WebApp operator."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from bench._mutants import Mutant, replaced
from konverge.client import ClientError
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.operators.webapp import reconciler as module
from konverge.operators.webapp.children import PARTS
from konverge.operators.webapp.reconciler import CHECK_EVERY, WebAppReconciler
from konverge.runtime import Result, set_controller_reference

Patch = AbstractContextManager[None]
_bring, _sync, _look, _reconcile = (
    WebAppReconciler._bring,
    WebAppReconciler._sync,
    WebAppReconciler._look,
    WebAppReconciler.reconcile,
)


def generation_first() -> Patch:
    async def sync(self: Any, ctx: Any) -> Any:
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return await _sync(self, ctx)

    async def repair(self: Any, ctx: Any) -> Any:
        return []

    return replaced(WebAppReconciler, _sync=sync, _repair=repair)


def only_with_its_sibling() -> Patch:
    async def sync(self: Any, ctx: Any) -> Any:
        new = await ctx.get(Deployment, ctx.obj.metadata.name) is None
        with replaced(module, PARTS=PARTS if new else PARTS[:1]):
            return await _sync(self, ctx)

    async def repair(self: Any, ctx: Any) -> Any:
        return []

    return replaced(WebAppReconciler, _sync=sync, _repair=repair)


def no_owner() -> Patch:
    def nothing(owner: Any, child: Any) -> None:
        if type(child) is not Deployment:
            set_controller_reference(owner, child)

    def anything(*arguments: Any) -> Any:
        return None

    async def adopted(ctx: Any, live: Any) -> Any:
        return live

    return replaced(module, set_controller_reference=nothing, require_ownership=anything, _adopt=adopted)


def cleanup_skipped() -> Patch:
    async def cleanup(self: Any, ctx: Any) -> Result | None:
        left = [owned for part in PARTS for owned in await ctx.owned(part.kind)]
        return Result(requeue_after=CHECK_EVERY) if left else None

    return replaced(WebAppReconciler, cleanup=cleanup)


def ready_without_looking() -> Patch:
    async def look(self: Any, ctx: Any, refusals: Any) -> None:
        await _look(self, ctx, refusals)
        module._say(ctx.obj, "Ready", True, "Synced", "all is written")
        ctx.obj.status.phase = "Running"

    return replaced(WebAppReconciler, _look=look)


def taken_by_name() -> Patch:
    def anything(*arguments: Any) -> Any:
        return None

    return replaced(module, require_ownership=anything)


def error_swallowed() -> Patch:
    async def bring(self: Any, ctx: Any, part: Any) -> str:
        try:
            return await _bring(self, ctx, part)
        except ClientError:
            return ""

    async def repair(self: Any, ctx: Any) -> Any:
        return []

    return replaced(WebAppReconciler, _bring=bring, _repair=repair)


MUTANTS = [
    Mutant("generation-first", "observedGeneration is saved before the work, nothing is repaired", generation_first),
    Mutant("only-with-its-sibling", "the Service is only made together with a new Deployment", only_with_its_sibling),
    Mutant("no-owner", "the Deployment has no ownerReference", no_owner),
    Mutant("cleanup-skipped", "the children are waited for at the deletion, and never deleted", cleanup_skipped),
    Mutant("ready-without-looking", "Ready is said as soon as everything is written", ready_without_looking),
    Mutant("taken-by-name", "an object of others with the right name is taken", taken_by_name),
    Mutant("error-swallowed", "an error of a write counts as success, and nothing is repaired", error_swallowed),
]
