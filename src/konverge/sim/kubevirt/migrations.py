"""Live migration: a second launcher pod on another node, to which the instance moves.

The phases are those that people see; the target is placed by the cluster's scheduler, so a cluster with one node keeps
a migration in Scheduling, as a real one does. Deleting the object cancels what is not over yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from konverge.cache.record import Meta, Record
from konverge.cache.store import by_label
from konverge.client import MergePatch
from konverge.objects import times
from konverge.objects.kinds.core_v1 import Pod
from konverge.runtime import Context, Controller, Request, Result, Watch
from konverge.runtime.context import Caches
from konverge.sim.kubevirt import faults, launcher
from konverge.sim.kubevirt.kinds import (
    Instance,
    Migration,
    Obj,
    kept,
    save,
    set_condition,
    with_finalizers,
    without_finalizer,
)
from konverge.sim.kubevirt.timings import Pace, Timings

FINALIZER = "kubevirt.io/migrationJobFinalize"
OVER = ("Succeeded", "Failed")
_STEPS = ("", "Pending", "Scheduling", "Scheduled", "PreparingTarget", "TargetReady", "Running", "Succeeded")


class Migrations:
    """The controller of VirtualMachineInstanceMigrations."""

    def __init__(self, pace: Pace, timings: Timings) -> None:
        self._pace = pace
        self._timings = timings

    def controllers(self) -> list[Controller[Any]]:
        return [
            Controller(
                Migration,
                self.reconcile,
                name="virt-controller-migrations",
                component="virtualmachine-controller",
                watches=[
                    faults.switches(Migration),
                    Watch(kind=Pod, lookup=_migration_of, label_selector=launcher.TARGET),
                ],
                reads=[Instance],
                indexes={Pod: {"target": by_label(launcher.TARGET)}, Migration: {"uid": _uid}},
            )
        ]

    async def reconcile(self, ctx: Context[Migration]) -> Result | None:
        migration = ctx.obj
        before = kept(migration)
        instance = await ctx.get(Instance, str(migration.spec.get("vmiName", "")))
        pods = ctx.indexed(Pod, "target", migration.metadata.uid)
        if ctx.deleting:
            await self._cancel(ctx, pods)
            await without_finalizer(ctx.client, migration, FINALIZER)
            return None
        if migration.status.get("phase") in OVER:
            return None
        await with_finalizers(ctx.client, migration, [FINALIZER])
        left = await self._advance(ctx, instance, pods)
        await save(ctx.client, migration, before)
        return Result(requeue_after=left) if left < inf else None

    async def _advance(self, ctx: Context[Migration], instance: Instance | None, pods: Sequence[Pod]) -> float:
        migration = ctx.obj
        phase = str(migration.status.get("phase", ""))
        gone = instance is None or instance.metadata.deletion_timestamp is not None
        if instance is None or gone or instance.status.get("phase") in OVER:
            return await self._fail(ctx, pods, "the instance has gone")
        if instance.status.get("phase") != "Running":
            self._move(migration, "Pending")
            return self._timings.retry[0]
        left = self._pace.left(migration.metadata, f"phase {phase}", self._timings.migrate)
        if left:
            return left
        if phase == "TargetReady" and "fails" in await faults.of(ctx, "vmim"):
            return await self._fail(ctx, pods, "the target did not come up")
        if phase == "Pending" and not pods:
            await self._make_target(ctx, instance)
        if phase == "Scheduling" and not any(_runs(pod) for pod in pods):
            return inf
        following = _STEPS[_STEPS.index(phase) + 1]
        if following == "Succeeded":
            await self._switch(ctx, instance, pods[0])
        self._move(migration, following)
        await self._note(ctx, instance, pods, following)
        return (
            inf
            if following in OVER
            else self._pace.left(migration.metadata, f"phase {following}", self._timings.migrate)
        )

    def _move(self, migration: Migration, phase: str) -> None:
        status = migration.status
        if status.get("phase") != phase:
            status["phase"] = phase
            stamp = {"phase": phase, "phaseTransitionTimestamp": times.now()}
            status["phaseTransitionTimestamps"] = [*status.get("phaseTransitionTimestamps", []), stamp]

    async def _make_target(self, ctx: Context[Migration], instance: Instance) -> None:
        stop = self._pace.draw(instance.metadata, "stop", self._timings.stop)
        labels = {launcher.TARGET: ctx.obj.metadata.uid}
        here = str(instance.status.get("nodeName", ""))
        made = launcher.pod_for(instance, f"stop {stop:.3f}s", labels=labels, away_from=here)
        await ctx.client.create(made, resource=Pod.resource)

    async def _switch(self, ctx: Context[Migration], instance: Instance, target: Pod) -> None:
        """The guest is over there from now on; the pod that it was in ends."""
        node = target.spec.node_name or ""
        before = dict(instance.status.get("activePods") or {})
        active = {**dict.fromkeys(before), target.metadata.uid: node}
        await self._patch(ctx, instance, {"nodeName": node, "activePods": active})
        created = f"{launcher.CREATED_BY}={instance.metadata.uid}"
        for pod in await ctx.client.list(Pod, instance.metadata.namespace, label_selector=created):
            if pod.metadata.uid in before:
                await ctx.client.delete(Pod, pod.metadata.name, pod.metadata.namespace)

    async def _note(self, ctx: Context[Migration], instance: Instance, pods: Sequence[Pod], phase: str) -> None:
        """What the instance says about its migration."""
        if phase not in ("PreparingTarget", "Running", *OVER):
            return
        state: Obj = dict(instance.status.get("migrationState") or {})
        if state.get("migrationUid") != ctx.obj.metadata.uid:
            state = {"migrationUid": ctx.obj.metadata.uid, "sourceNode": instance.status.get("nodeName", "")}
            state |= {"startTimestamp": times.now(), "completed": False, "failed": False, "endTimestamp": None}
        state["targetNode"] = pods[0].spec.node_name if pods else ""
        if phase in OVER:
            state |= {"endTimestamp": times.now(), "completed": True, "failed": phase == "Failed"}
        await self._patch(ctx, instance, {"migrationState": state})

    async def _patch(self, ctx: Context[Migration], instance: Instance, status: Obj) -> None:
        meta = instance.metadata
        body = MergePatch({"metadata": {"uid": meta.uid}, "status": status})
        await ctx.client.patch(Instance, meta.name, body, meta.namespace)

    async def _fail(self, ctx: Context[Migration], pods: Sequence[Pod], why: str) -> float:
        self._move(ctx.obj, "Failed")
        set_condition(ctx.obj.status, "MigrationAbortRequested", False, "Failed", why)
        ctx.warning("FailedMigration", f"Migration failed: {why}")
        await self._cancel(ctx, pods)
        return inf

    async def _cancel(self, ctx: Context[Migration], pods: Sequence[Pod]) -> None:
        """Without a target there is nothing to move to; one that has been moved to stays."""
        if ctx.obj.status.get("phase") == "Succeeded":
            return
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                await ctx.delete(Pod, pod.metadata.name)


def _runs(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _uid(record: Record, meta: Meta) -> Iterable[str]:
    return (record.uid,)


def _migration_of(pod: Pod, caches: Caches) -> Iterable[Request]:
    lister = caches.lister(Migration)
    uid = pod.metadata.labels.get(launcher.TARGET, "")
    return [] if lister is None else sorted(lister.informer.keys_by_index("uid", uid))
