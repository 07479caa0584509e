"""Mistakes in the WebApp operator."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from bench._mutants import Mutant, Patch, answering, replaced, returning
from konverge.client import ClientError, Conflict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.operators.webapp import reconciler as module
from konverge.operators.webapp.children import PARTS, deployment_differences, service_differences
from konverge.operators.webapp.reconciler import CHECK_EVERY, WebAppReconciler
from konverge.runtime import Controller, Result, Use, is_true, set_controller_reference

_bring, _sync, _look, _reconcile, _write = (
    WebAppReconciler._bring,
    WebAppReconciler._sync,
    WebAppReconciler._look,
    WebAppReconciler.reconcile,
    WebAppReconciler._write,
)


def of_reconciler(**methods: Any) -> Patch:
    """With other methods, and without repairs: the next look would hide most mistakes."""
    return replaced(WebAppReconciler, **{"_repair": answering([]), **methods})


def generation_first() -> Patch:
    async def sync(self: Any, ctx: Any) -> Any:
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return await _sync(self, ctx)

    return of_reconciler(_sync=sync)


def only_with_its_sibling() -> Patch:
    async def sync(self: Any, ctx: Any) -> Any:
        new = await ctx.get(Deployment, ctx.obj.metadata.name) is None
        with replaced(module, PARTS=PARTS if new else PARTS[:1]):
            return await _sync(self, ctx)

    return of_reconciler(_sync=sync)


def no_owner() -> Patch:
    def nothing(owner: Any, child: Any) -> None:
        if type(child) is not Deployment:
            set_controller_reference(owner, child)

    async def adopted(ctx: Any, live: Any) -> Any:
        return live

    return replaced(module, set_controller_reference=nothing, require_ownership=returning(None), _adopt=adopted)


def cleanup_skipped() -> Patch:
    async def cleanup(self: Any, ctx: Any) -> Result | None:
        left = [owned for part in PARTS for owned in await ctx.owned(part.kind)]
        return Result(requeue_after=CHECK_EVERY) if left else None

    return replaced(WebAppReconciler, cleanup=cleanup)


def all_of_the_kind() -> Patch:
    """As if nobody else had a Deployment in the namespace."""

    async def cleanup(self: Any, ctx: Any) -> Result | None:
        for part in PARTS:
            for item in await ctx.list(part.kind):
                await module._delete(ctx, item)
        left = [owned for part in PARTS for owned in await ctx.owned(part.kind)]
        return Result(requeue_after=CHECK_EVERY) if left else None

    return replaced(WebAppReconciler, cleanup=cleanup)


def ready_without_looking() -> Patch:
    async def look(self: Any, ctx: Any, refusals: Any) -> None:
        await _look(self, ctx, refusals)
        module._say(ctx.obj, "Ready", True, "Synced", "all is written")
        ctx.obj.status.phase = "Running"

    return replaced(WebAppReconciler, _look=look)


def ready_for_ever() -> Patch:
    async def look(self: Any, ctx: Any, refusals: Any) -> None:
        was = is_true(ctx.obj.status.conditions, "Ready")
        await _look(self, ctx, refusals)
        if was:
            module._say(ctx.obj, "Ready", True, "ReplicasReady", "they were ready once")

    return replaced(WebAppReconciler, _look=look)


def taken_by_name() -> Patch:
    return replaced(module, require_ownership=returning(None))


def swallowed(*errors: type[Exception]) -> Patch:
    async def bring(self: Any, ctx: Any, part: Any) -> str:
        with suppress(*errors):
            return await _bring(self, ctx, part)
        return ""

    return of_reconciler(_bring=bring)


def removal_ignored() -> Patch:
    def differences(app: Any, live: Any) -> Any:
        wanted = set(app.spec.env)
        present = {entry.name for entry in live.spec.template.spec.containers[0].env}
        every = deployment_differences(app, live)
        return [item for item in every if not (item.field == "env" and wanted < present)]

    return replaced(module, PARTS=(replace(PARTS[0], differences=differences), PARTS[1]))


def selector_ignored() -> Patch:
    def differences(app: Any, live: Any) -> Any:
        return [item for item in service_differences(app, live) if item.field != "selector"]

    return replaced(module, PARTS=(PARTS[0], replace(PARTS[1], differences=differences)))


def whole_object() -> Patch:
    async def write(self: Any, ctx: Any, part: Any, live: Any, differences: Any) -> None:
        desired = part.desired(ctx.obj)
        set_controller_reference(ctx.obj, desired)
        desired.metadata.resource_version = live.metadata.resource_version
        if isinstance(live, Service):
            desired.spec.cluster_ip = live.spec.cluster_ip
        await ctx.client.replace(desired)

    return replaced(WebAppReconciler, _write=write)


def waits_for_health() -> Patch:
    """A change is only taken up when the last one has come to a good end."""

    async def reconcile(self: Any, ctx: Any) -> Any:
        status = ctx.obj.status
        if status.observed_generation and not is_true(status.conditions, "Ready"):
            await _look(self, ctx, [])
            await ctx.save_status()
            return Result(requeue_after=CHECK_EVERY)
        return await _reconcile(self, ctx)

    return replaced(WebAppReconciler, reconcile=reconcile)


def known_by_name() -> Patch:
    """Which Services are made is remembered by their names, also when they went with their owner."""

    async def bring(self: Any, ctx: Any, part: Any) -> str:
        known = self.__dict__.setdefault("known", set())
        if part.kind is Service:
            if ctx.obj.metadata.name in known:
                return ""
            known.add(ctx.obj.metadata.name)
        return await _bring(self, ctx, part)

    return replaced(WebAppReconciler, _bring=bring)


def service_unwatched() -> Patch:
    def controller(kind: Any, reconciler: Any, owns: Any) -> Any:
        return Controller(kind, reconciler, owns=[Deployment], uses=[Use(Service, "create", "patch", "delete")])

    async def reconcile(self: Any, ctx: Any) -> None:
        await _reconcile(self, ctx)

    return replaced(module, Controller=controller), replaced(WebAppReconciler, reconcile=reconcile)


MUTANTS = [
    Mutant("generation-first", "observedGeneration is saved before the work, nothing is repaired", generation_first),
    Mutant("only-with-its-sibling", "the Service is only made together with a new Deployment", only_with_its_sibling),
    Mutant("no-owner", "the Deployment has no ownerReference", no_owner),
    Mutant("cleanup-skipped", "the children are waited for at the deletion, and never deleted", cleanup_skipped),
    Mutant("all-of-the-kind", "the deletion takes the children of all in the namespace", all_of_the_kind),
    Mutant("ready-without-looking", "Ready is said as soon as everything is written", ready_without_looking),
    Mutant("ready-for-ever", "what was ready once is ready", ready_for_ever),
    Mutant("taken-by-name", "an object of others with the right name is taken", taken_by_name),
    Mutant("error-swallowed", "an error of a write counts as success", lambda: swallowed(ClientError)),
    Mutant("conflict-swallowed", "a conflict counts as success", lambda: swallowed(Conflict)),
    Mutant("removal-ignored", "a variable that is taken out of the spec stays in the pods", removal_ignored),
    Mutant("selector-ignored", "a selector of the Service that others change is not looked at", selector_ignored),
    Mutant("whole-object", "a child is replaced as a whole, with what others wrote in it", whole_object),
    Mutant("waits-for-health", "no change is taken up while the pods are not ready", waits_for_health),
    Mutant("known-by-name", "what was made is remembered by its name", known_by_name),
    Mutant("service-unwatched", "Services are not watched, and nothing is looked at again", service_unwatched),
]
