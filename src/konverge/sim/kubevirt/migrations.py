"""Live migration: a second launcher pod on another node, to which the instance moves.

The phases are those that people see; the target is placed by the cluster's scheduler, so a cluster with one node keeps
a migration in Scheduling, as a real one does. Deleting the object cancels what is not over yet: it has failed then, for
a moment, with a condition that says why.

Draining a node: a launcher pod is not evicted, its guest moves first, as its eviction strategy says. The eviction is
refused with 429, which `kubectl drain` takes as "try again", and the instance remembers the node that it is to leave. A
guest that cannot move, and must, stays: so does the drain.

Upstream: pkg/virt-controller/watch/migration, watch/drain, and the pod eviction admitter of virt-api.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from konverge.apiserver import status
from konverge.apiserver.request.admission import AdmissionRequest
from konverge.cache.store import by_label
from konverge.client import Client, NotFound
from konverge.objects import times
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context, Controller, Request, Use, Watches
from konverge.runtime.context import Caches
from konverge.sim.kubevirt import faults, launcher
from konverge.sim.kubevirt.controller import PhaseController, under
from konverge.sim.kubevirt.kinds import (
    KUBEVIRT,
    OVER,
    Instance,
    Migration,
    Obj,
    is_true,
    kept,
    live,
    patch,
    record_phase,
    save,
    set_condition,
    without_finalizer,
)

LEAVES = "evacuationNodeName"
INSTANCE = "kubevirt.io/vmi-name"
"""The label of a migration: the instance that it moves."""
_MOVES = ("LiveMigrate", "LiveMigrateIfPossible")
_RETRY = 5
_STEPS = ("", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded")


class Migrations(PhaseController[Migration]):
    """The controller of VirtualMachineInstanceMigrations."""

    kind, short = Migration, "vmim"
    name, component = "virt-controller-migrations", "virtualmachine-controller"
    finalizer = "kubevirt.io/migrationJobFinalize"

    def controllers(self) -> list[Controller[Any]]:
        targets = Watches(Pod, lookup=_migration_of, label_selector=launcher.TARGET)
        instances = Watches(Instance, lookup=_migrations_of)
        named = {"uid": lambda record, meta: (record.uid,), "instance": by_label(INSTANCE)}
        indexes = {Pod: {"target": by_label(launcher.TARGET)}, Migration: named}
        return [self._declared(targets, instances, uses=[Use(Migration, "delete")], indexes=indexes)]

    def _is_over(self, obj: Migration) -> bool:
        return obj.status.get("phase") in OVER

    async def _release(self, ctx: Context[Migration]) -> None:
        if ctx.deleting:
            if not self._is_over(ctx.obj):
                await self._abort(ctx)
        elif self.finalizer in ctx.obj.metadata.finalizers:
            written = await live(ctx.client, Migration, ctx.request.name, ctx.request.namespace)
            if written is not None:
                await without_finalizer(ctx.client, written, self.finalizer)
        elif await ctx.get(Instance, str(ctx.obj.spec.get("vmiName", ""))) is None:
            await ctx.delete(Migration, ctx.request.name)  # they go with their guest

    def _targets(self, ctx: Context[Migration]) -> Sequence[Pod]:
        return ctx.indexed(Pod, "target", ctx.obj.metadata.uid)

    async def _advance(self, ctx: Context[Migration], wrong: faults.Faults) -> float:
        migration, pods = ctx.obj, self._targets(ctx)
        instance = await ctx.get(Instance, str(migration.spec.get("vmiName", "")))
        phase = str(migration.status.get("phase", ""))
        gone = instance is None or instance.metadata.deletion_timestamp is not None
        if instance is None or gone or instance.status.get("phase") in OVER:
            return await self._fail(ctx, pods, "Migration failed vmi shutdown during migration.")
        if instance.status.get("phase") != "Running":
            self._move(migration, "Pending")
            return self._timings.retry[0]
        left = self._pace.left(migration.metadata, f"phase {phase}", self._timings.migrate)
        if left:
            return left
        if phase == "TargetReady" and "fails" in wrong:
            await self._close(ctx, instance, pods, failureReason="the target does not come up")
            return await self._fail(ctx, pods, "source node reported migration failed")
        if phase == "Running" and "stuck" in wrong:
            return inf
        if not phase:
            await patch(ctx.client, migration, {"metadata": {"labels": {INSTANCE: instance.metadata.name}}})
            migration.status["migrationState"] = {"sourcePod": await self._source_of(ctx, instance)}
        if phase == "Pending" and not pods:
            await self._make_target(ctx, instance)
        if phase == "Scheduling" and not any(launcher.is_ready(pod) for pod in pods):
            return inf
        following = _STEPS[_STEPS.index(phase) + 1]
        if following == "Succeeded":
            await self._switch(ctx, instance, pods[0])
        self._move(migration, following)
        await self._note(ctx, instance, pods, following)
        if following in OVER:
            return inf
        return self._pace.left(migration.metadata, f"phase {following}", self._timings.migrate)

    def _move(self, migration: Migration, phase: str) -> None:
        if migration.status.get("phase") != phase:
            record_phase(migration.status, phase)

    async def _make_target(self, ctx: Context[Migration], instance: Instance) -> None:
        stop = self._pace.draw(instance.metadata, "stop", self._timings.stop)
        labels = {launcher.TARGET: ctx.obj.metadata.uid}
        here = str(instance.status.get("nodeName", ""))
        made = launcher.pod_for(instance, launcher.stays(stop), labels=labels, away_from=here)
        await ctx.client.create(made, resource=Pod.resource)

    async def _switch(self, ctx: Context[Migration], instance: Instance, target: Pod) -> None:
        """The guest is over there from now on; the pod that it was in ends."""
        node = target.spec.node_name or ""
        before = dict(instance.status.get("activePods") or {})
        active = {**dict.fromkeys(before), target.metadata.uid: node}
        label = {"metadata": {"labels": {launcher.NODE: node}}}
        await patch(ctx.client, instance, {**label, "status": {"nodeName": node, "activePods": active}})
        created = f"{launcher.CREATED_BY}={instance.metadata.uid}"
        for pod in await ctx.client.list(Pod, instance.metadata.namespace, label_selector=created):
            if pod.metadata.uid in before:
                await ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace)

    async def _note(self, ctx: Context[Migration], instance: Instance, pods: Sequence[Pod], phase: str) -> None:
        """What the instance says about its migration."""
        if phase == "Succeeded":
            await self._close(ctx, instance, pods)
        elif phase in ("PreparingTarget", "Running"):
            await patch(ctx.client, instance, {"status": {"migrationState": await self._state(ctx, instance, pods)}})

    async def _close(self, ctx: Context[Migration], instance: Instance, pods: Sequence[Pod], **why: Any) -> None:
        """It is over: as it should be, or for this reason. The migration keeps what the instance says."""
        state = await self._state(ctx, instance, pods)
        state |= {"endTimestamp": times.now(), "completed": True, "failed": bool(why), **why}
        ctx.obj.status["migrationState"] = {key: state[key] for key in state if state[key] is not None}
        await patch(ctx.client, instance, {"status": {"migrationState": state}})

    async def _state(self, ctx: Context[Migration], instance: Instance, pods: Sequence[Pod]) -> Obj:
        state: Obj = dict(instance.status.get("migrationState") or {})
        if state.get("migrationUid") != ctx.obj.metadata.uid:
            state = {**dict.fromkeys(state), "migrationUid": ctx.obj.metadata.uid}
            state |= {"sourceNode": instance.status.get("nodeName", ""), "startTimestamp": times.now()}
            state |= {"completed": False, "failed": False, "sourcePod": await self._source_of(ctx, instance)}
        state["targetNode"] = pods[0].spec.node_name if pods else ""
        state["targetPod"] = pods[0].metadata.name if pods else ""
        return state

    async def _source_of(self, ctx: Context[Migration], instance: Instance) -> str:
        """The pod that the guest is in."""
        active = instance.status.get("activePods") or {}
        created = f"{launcher.CREATED_BY}={instance.metadata.uid}"
        pods = await ctx.client.list(Pod, instance.metadata.namespace, label_selector=created)
        return next((pod.metadata.name for pod in pods if active.get(pod.metadata.uid)), "")

    async def _fail(self, ctx: Context[Migration], pods: Sequence[Pod], why: str) -> float:
        self._move(ctx.obj, "Failed")
        ctx.warning("FailedMigration", why)
        await self._cancel(ctx, pods)
        return inf

    async def _abort(self, ctx: Context[Migration]) -> None:
        """It was deleted. What the guest's node has been told of is called off there."""
        migration, before, pods = ctx.obj, kept(ctx.obj), self._targets(ctx)
        set_condition(migration.status, "migrationAbortRequested", True)
        instance = await ctx.get(Instance, str(migration.spec.get("vmiName", "")))
        reported = (instance.status.get("migrationState") or {}) if instance is not None else {}
        if instance is not None and reported.get("migrationUid") == migration.metadata.uid:
            called_off = {"abortRequested": True, "abortStatus": "Succeeded"}
            await self._close(ctx, instance, pods, failureReason="Live migration aborted ", **called_off)
        await self._fail(ctx, pods, "Migration failed due to being canceled")
        await save(ctx.client, migration, before)

    async def _cancel(self, ctx: Context[Migration], pods: Sequence[Pod]) -> None:
        """Without a target there is nothing to move to."""
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                await ctx.delete(Pod, pod.metadata.name)


def _migration_of(pod: Pod, caches: Caches) -> Iterable[Request]:
    return under(caches, Migration, "uid", pod.metadata.labels.get(launcher.TARGET, ""))


def _migrations_of(instance: Instance, caches: Caches) -> Iterable[Request]:
    place, name = instance.metadata.namespace, instance.metadata.name
    return [found for found in under(caches, Migration, "instance", name) if found.namespace == place]


# ------------------------------------------------------------------ draining a node


def check_eviction(request: AdmissionRequest) -> None:
    """For an eviction of any pod. Raises 429 where the guest in it goes first."""
    pod = request.call.lookup("", "pods", request.namespace, request.name)
    owners = ((pod or {}).get("metadata") or {}).get("ownerReferences") or []
    name = next((str(owner["name"]) for owner in owners if owner.get("kind") == Instance.resource.kind), "")
    if pod is None or not name:
        return
    instance = request.call.lookup(KUBEVIRT, "virtualmachineinstances", request.namespace, name)
    if instance is None or (instance.get("status") or {}).get("phase") != "Running":
        return
    strategy = instance["spec"].get("evictionStrategy", "None")
    movable = is_true(instance["status"], "LiveMigratable")
    if strategy == "None" or (strategy == "LiveMigrateIfPossible" and not movable):
        return
    if strategy == "LiveMigrate" and not movable:
        message = f"VMI {name} is configured with an eviction strategy but is not live-migratable"
        raise status.too_many_requests(f"admission webhook denied the request: {message}", _RETRY)
    if not request.dry_run:
        _mark(request, name, str(pod["spec"].get("nodeName", "")))
    place = f"{request.namespace}/{name}"
    raise status.too_many_requests(f"Eviction triggered evacuation of VMI {place!r}", _RETRY)


def _mark(request: AdmissionRequest, name: str, node: str) -> None:
    def leave(obj: Obj) -> None:
        if obj["status"].get("nodeName") == node:
            obj["status"][LEAVES] = node

    request.call.server.objects.update(KUBEVIRT, "virtualmachineinstances", request.namespace, name, leave)


async def evacuate(ctx: Context[Instance]) -> None:
    """For a running instance: a migration where it is to leave its node, once; forget it where it has left."""
    instance, node = ctx.obj, ctx.obj.status.get(LEAVES)
    if not node:
        return
    if node != instance.status.get("nodeName"):
        del instance.status[LEAVES]
        return
    if instance.spec.get("evictionStrategy") not in _MOVES:
        return
    pods = "-".join(uid[:8] for uid in instance.status.get("activePods") or {})
    name, namespace = f"kubevirt-evacuation-{pods}", instance.metadata.namespace
    try:
        await ctx.client.get(Migration.resource, name, namespace)
    except NotFound:
        await migrate(ctx.client, namespace, instance.metadata.name, name=name)


async def migrate(client: Client, namespace: str, instance: str, **name: str) -> None:
    """Ask for a migration; `name` is its name or its generateName."""
    migration: Obj = {"apiVersion": "kubevirt.io/v1", "kind": Migration.resource.kind}
    migration |= {"metadata": {**name, "namespace": namespace}, "spec": {"vmiName": instance}}
    await client.create(migration, resource=Migration.resource)
