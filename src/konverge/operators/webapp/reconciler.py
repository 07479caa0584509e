"""The loop of a WebApp. One reconcile reads from top to bottom: begin, sync or repair, look, say so, come back.

A new spec is synced, and a failure of that is retried with backoff. Without one, everything is compared all the same: a
Deployment that another client changed or deleted is repaired. That is a check, so its failure is reported and never
ends the loop. A reconcile that finds all well makes no request.
"""

from __future__ import annotations

from konverge.client import ClientError
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.times import now
from konverge.operators.webapp.children import PARTS, Part
from konverge.operators.webapp.kind import Phase, WebApp, spec_changed
from konverge.runtime import (
    Context,
    Controller,
    Reconciler,
    Result,
    TransientError,
    controller_of,
    set_condition,
    set_controller_reference,
)

CHECK_EVERY = 30.0


class WebAppReconciler(Reconciler[WebApp]):
    """Because there is a `cleanup`, the runtime adds a finalizer before the first reconcile."""

    async def reconcile(self, ctx: Context[WebApp]) -> Result | None:
        app = ctx.obj
        ctx.log.debug("reconcile called: WebApp %s, phase %s", app.metadata.name, app.status.phase or "new")
        if app.status.phase == "":
            await self._enter(ctx, "Pending", "accepted")
        if app.status.phase == "Pending":
            await self._enter(ctx, "Creating", "making the Deployment and the Service")
        ctx.log.debug("handling phase %s of WebApp %s", app.status.phase, app.metadata.name)
        if spec_changed(app):
            await self._sync(ctx)
        else:
            await self._repair(ctx)
        await self._look(ctx)
        await ctx.save_status()
        return Result(requeue_after=CHECK_EVERY)

    async def cleanup(self, ctx: Context[WebApp]) -> Result | None:
        left = [owned for part in PARTS for owned in await ctx.owned(part.kind)]
        for owned in left:
            await ctx.delete(type(owned), owned.metadata.name)
        return Result(requeue_after=CHECK_EVERY) if left else None  # sooner: the watch reports when they are gone

    async def _enter(self, ctx: Context[WebApp], phase: Phase, message: str) -> None:
        ctx.obj.status.phase, ctx.obj.status.message = phase, message
        await ctx.save_status()

    async def _sync(self, ctx: Context[WebApp]) -> None:
        """Act upon a new spec."""
        app, generation = ctx.obj, ctx.obj.metadata.generation
        ctx.log.info(
            "the spec has changed, syncing: generation %s, observedGeneration %s",
            generation,
            app.status.observed_generation,
        )
        for part in PARTS:
            name = part.kind.__name__
            done = await self._bring(ctx, part)
            if done == "made":
                ctx.event(f"{name}Created", f"{name} {app.metadata.name} made")
            elif done:
                ctx.event(f"{name}Synced", f"{name} synced: {done}")
        app.status.observed_generation = generation
        self._note(ctx, "resources synced")
        ctx.log.info("resources synced")
        ctx.event("ResourcesSynced", f"resources synced to generation {generation}")

    async def _repair(self, ctx: Context[WebApp]) -> None:
        """Nothing new is asked for, so whatever differs has drifted."""
        for part in PARTS:
            name = part.kind.__name__
            try:
                done = await self._bring(ctx, part)
            except (ClientError, TransientError) as error:
                ctx.log.warning("health check failed: %s", error)
                self._note(ctx, f"{name} cannot be repaired: {error}")
                continue
            if done:
                what = f"{name} was deleted and is made again" if done == "made" else f"{name} was changed: {done}"
                ctx.log.warning("drift repaired: %s", what)
                ctx.event("DriftRepaired", what)
                self._note(ctx, f"drift repaired: {what}")

    async def _bring(self, ctx: Context[WebApp], part: Part) -> str:
        """Make one object as desired: nothing when it is, `made` when it was missing, else what had to change."""
        app, kind = ctx.obj, part.kind
        live = await ctx.get(kind, app.metadata.name)
        if live is None:
            desired = part.desired(app)
            set_controller_reference(app, desired)
            ctx.log.info("making %s %s", kind.__name__, app.metadata.name)
            await ctx.client.create(desired)
            return "made"
        owner = controller_of(live)
        if owner is None or owner.uid != app.metadata.uid:
            raise TransientError(f"{kind.__name__} {app.metadata.name} is not ours: delete it, or rename the WebApp")
        differences = part.differences(app, live)
        for difference in differences:
            ctx.log.info("%s differs: %s", kind.__name__, difference)
        if differences:
            ctx.log.info("syncing %s %s", kind.__name__, app.metadata.name)
            await ctx.client.patch(kind, app.metadata.name, part.patch(differences), app.metadata.namespace)
        return ", ".join(map(str, differences))

    async def _look(self, ctx: Context[WebApp]) -> None:
        """Report how the replicas are. Fewer than desired is a state, not an error."""
        app, status = ctx.obj, ctx.obj.status
        live = await ctx.get(Deployment, app.metadata.name)
        status.ready_replicas = (live.status.ready_replicas or 0) if live else 0
        ready = live is not None and status.ready_replicas >= app.spec.replicas
        count = f"{status.ready_replicas} of {app.spec.replicas} replicas are ready"
        set_condition(status.conditions, "Ready", ready, "ReplicasReady" if ready else "ReplicasNotReady", count)
        if ready and status.phase == "Creating":
            status.phase = "Running"

    def _note(self, ctx: Context[WebApp], message: str) -> None:
        """With the time: it moves when something was done, or every reconcile would be a write."""
        ctx.obj.status.message, ctx.obj.status.last_reconcile_time = message, now()


def controllers() -> list[Controller[WebApp]]:
    return [Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service])]
