"""The loop of a WebApp. One reconcile reads from top to bottom: begin, sync or repair, look, say so, come back.

A new spec is synced. Without one, everything is compared all the same: a Deployment that another client changed or
deleted is repaired. What the API server refuses, and an object of another owner under our name, is a condition and one
event, and is tried again at the next look; it never ends the loop. A reconcile that finds all well makes no request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from konverge.client import (
    ApiStatusError,
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    MergePatch,
    MethodNotAllowed,
    NotFound,
)
from konverge.objects import Object, to_dict
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.objects.times import now
from konverge.operators.webapp.children import PARTS, Difference, Part
from konverge.operators.webapp.kind import Phase, WebApp, spec_changed
from konverge.runtime import (
    Context,
    Controller,
    NotOwned,
    Reconciler,
    Result,
    find_condition,
    set_condition,
    set_controller_reference,
)
from konverge.runtime.owners import controller_reference, is_controlled_by, require_ownership

K = TypeVar("K", bound=Object)

CHECK_EVERY = 30.0
READY, SYNCED = "Ready", "Synced"
ORPHAN = "orphan"
"""The finalizer by which a deletion leaves the children (upstream: metav1.FinalizerOrphanDependents)."""
REFUSALS = (Invalid, Forbidden, BadRequest, MethodNotAllowed, InternalError)
"""What another try will hardly change: the object is not accepted, or a webhook fails. All else passes by itself: the
runtime tries again."""


class NotKept(Exception):
    """The API server took a write, and the object is not as desired all the same: a webhook changes it back."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """What keeps one of the objects from being as desired."""

    reason: str
    message: str


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
        due = spec_changed(app) or _is_incomplete(app)
        refusals = await (self._sync(ctx) if due else self._repair(ctx))
        await self._look(ctx, refusals)
        await ctx.save_status()
        return Result(requeue_after=CHECK_EVERY)

    async def cleanup(self, ctx: Context[WebApp]) -> Result | None:
        if ORPHAN in ctx.obj.metadata.finalizers:
            return None  # the garbage collector takes our reference off the children: they stay
        left = [owned for part in PARTS for owned in await ctx.owned(part.kind)]
        for owned in left:
            await _delete(ctx, owned)
        return Result(requeue_after=CHECK_EVERY) if left else None  # sooner: the watch reports when they are gone

    async def _enter(self, ctx: Context[WebApp], phase: Phase, message: str) -> None:
        ctx.obj.status.phase, ctx.obj.status.message = phase, message
        await ctx.save_status()

    async def _sync(self, ctx: Context[WebApp]) -> list[Refusal]:
        """Act upon a new spec. One part that is refused does not keep the other from being made."""
        app, generation = ctx.obj, ctx.obj.metadata.generation
        ctx.log.info(
            "the spec has changed, syncing: generation %s, observedGeneration %s",
            generation,
            app.status.observed_generation,
        )
        refusals: list[Refusal] = []
        for part in PARTS:
            name = part.kind.__name__
            try:
                done = await self._bring(ctx, part)
            except (*REFUSALS, NotOwned, NotKept) as error:
                refusals.append(_refusal(f"{name} cannot be synced", error))
                continue
            if done == "made":
                ctx.event(f"{name}Created", f"{name} {app.metadata.name} made")
            elif done:
                ctx.event(f"{name}Synced", f"{name} synced: {done}")
        app.status.observed_generation = generation
        if refusals:
            _say(app, SYNCED, False, refusals[0].reason, refusals[0].message)
            return refusals
        _say(app, SYNCED, True, "ResourcesSynced", f"generation {generation}")
        self._note(ctx, "resources synced")
        ctx.log.info("resources synced")
        ctx.event("ResourcesSynced", f"resources synced to generation {generation}")
        return []

    async def _repair(self, ctx: Context[WebApp]) -> list[Refusal]:
        """Nothing new is asked for, so whatever differs has drifted."""
        refusals: list[Refusal] = []
        for part in PARTS:
            name = part.kind.__name__
            try:
                done = await self._bring(ctx, part)
            except (*REFUSALS, NotOwned, NotKept) as error:
                ctx.log.warning("health check failed: %s", error)
                refusals.append(_refusal(f"{name} cannot be repaired", error))
                continue
            except ClientError as error:
                ctx.log.warning("health check failed: %s", error)
                continue
            if done:
                what = f"{name} was deleted and is made again" if done == "made" else f"{name} was changed: {done}"
                ctx.log.warning("drift repaired: %s", what)
                ctx.event("DriftRepaired", what)
                self._note(ctx, f"drift repaired: {what}")
        return refusals

    async def _bring(self, ctx: Context[WebApp], part: Part) -> str:
        """Make one object as desired: nothing when it is, `made` when it was missing, else what had to change."""
        app, kind = ctx.obj, part.kind
        live = await ctx.get(kind, app.metadata.name)
        desired = part.desired(app)
        if live is None:
            set_controller_reference(app, desired)
            ctx.log.info("making %s %s", kind.__name__, app.metadata.name)
            await ctx.client.create(desired)
            return "made"
        require_ownership(app, desired, to_dict(live)["metadata"])
        if not is_controlled_by(live, app):
            live = await _adopt(ctx, live)
        differences = part.differences(app, live)
        for difference in differences:
            ctx.log.info("%s differs: %s", kind.__name__, difference)
        if differences:
            ctx.log.info("syncing %s %s", kind.__name__, app.metadata.name)
            await self._write(ctx, part, live, differences)
        return ", ".join(map(str, differences))

    async def _write(self, ctx: Context[WebApp], part: Part, live: Object, differences: list[Difference]) -> None:
        app, patch = ctx.obj, part.patch(ctx.obj, live, differences)
        try:
            written = await ctx.client.patch(part.kind, app.metadata.name, patch, app.metadata.namespace)
        except Invalid as error:
            if any(cause.field == "metadata.uid" for cause in error.causes):
                raise Conflict(error.status, request=error.request) from error  # another object has its name by now
            raise
        left = part.differences(app, written)
        if left:
            raise NotKept(f"the API server keeps it otherwise: {', '.join(map(str, left))}; look for a webhook")

    async def _look(self, ctx: Context[WebApp], refusals: list[Refusal]) -> None:
        """Report how the replicas are. Fewer than desired is a state, not an error."""
        app, status = ctx.obj, ctx.obj.status
        live = await ctx.get(Deployment, app.metadata.name)
        ours = live is not None and is_controlled_by(live, app)
        status.ready_replicas = (live.status.ready_replicas or 0) if live is not None and ours else 0
        ready = ours and status.ready_replicas >= app.spec.replicas
        if refusals:
            self._report(ctx, refusals)
            return
        count = f"{status.ready_replicas} of {app.spec.replicas} replicas are ready"
        _say(app, READY, ready, "ReplicasReady" if ready else "ReplicasNotReady", count)
        if ready and status.phase == "Creating":
            status.phase = "Running"

    def _report(self, ctx: Context[WebApp], refusals: list[Refusal]) -> None:
        """Once, as long as it is the same."""
        first, message = refusals[0], "; ".join(refusal.message for refusal in refusals)
        before = find_condition(ctx.obj.status.conditions, READY)
        if before is None or (before.reason, before.message) != (first.reason, message):
            ctx.warning(first.reason, message)
        if ctx.obj.status.message != message:
            self._note(ctx, message)
        _say(ctx.obj, READY, False, first.reason, message)

    def _note(self, ctx: Context[WebApp], message: str) -> None:
        """With the time: it moves when something was done, or every reconcile would be a write."""
        ctx.obj.status.message, ctx.obj.status.last_reconcile_time = message, now()


def _say(app: WebApp, type: str, value: bool, reason: str, message: str) -> None:
    generation = app.metadata.generation
    set_condition(app.status.conditions, type, value, reason, message, observed_generation=generation)


def _is_incomplete(app: WebApp) -> bool:
    """Whether something of the generation that was acted upon last is refused until now."""
    synced = find_condition(app.status.conditions, SYNCED)
    return synced is not None and synced.status == "False"


def _refusal(what: str, error: Exception) -> Refusal:
    if isinstance(error, Forbidden) and error.namespace_terminating:
        raise error
    if isinstance(error, ApiStatusError):
        return Refusal(error.reason, f"{what}: {error.message}")
    return Refusal(type(error).__name__, f"{what}: {error}")


async def _adopt(ctx: Context[WebApp], live: K) -> K:
    """Become the controller of an object that asks for it: guarded, so that nothing else has changed about it."""
    place = live.metadata
    owners = [to_dict(owner) for owner in (*place.owner_references, controller_reference(ctx.obj))]
    patch = {"uid": place.uid, "resourceVersion": place.resource_version, "ownerReferences": owners}
    return await ctx.client.patch(type(live), place.name, MergePatch({"metadata": patch}), place.namespace)


async def _delete(ctx: Context[WebApp], owned: Object) -> None:
    """As the cache has it, or not at all: a child that was orphaned just now is no longer ours."""
    place = owned.metadata
    if place.deletion_timestamp:
        return
    try:
        await ctx.client.delete(
            type(owned),
            place.name,
            place.namespace,
            propagation="Background",
            uid=place.uid,
            if_version=place.resource_version,
        )
    except NotFound:
        return


def controllers() -> list[Controller[WebApp]]:
    return [Controller(WebApp, WebAppReconciler(), owns=[Deployment, Service])]
