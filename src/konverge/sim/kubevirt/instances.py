"""The life of a VirtualMachineInstance, phase by phase, around its launcher pod.

Each phase is a method: it answers with the seconds until it wants to be asked again (infinity: when something changes),
or with `_NEXT` after it has moved on. The status is written on the object itself: the kind has no status subresource.

Upstream: pkg/virt-controller/watch/vmi.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from math import inf
from typing import Any

import msgspec

from konverge.client import NotFound
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod, Secret
from konverge.runtime import Context, Controller, Request, Result, Use, Watches, controller_of
from konverge.runtime.context import Caches
from konverge.sim.kubelet.behaviour import ANNOTATION
from konverge.sim.kubevirt import faults, launcher
from konverge.sim.kubevirt.controller import KindController, Pace, Timings, again, seconds, under
from konverge.sim.kubevirt.guests import Guests
from konverge.sim.kubevirt.kinds import (
    OVER,
    DataVolume,
    Instance,
    NetworkAttachment,
    VirtualMachine,
    drop_condition,
    kept,
    patch,
    record_phase,
    save,
    set_condition,
    without_finalizer,
)
from konverge.sim.kubevirt.migrations import evacuate
from konverge.sim.kubevirt.templates import FINALIZER, FOREGROUND

GO_ON = ("Succeeded", "PendingPopulation")
"""The phases of a DataVolume with which KubeVirt makes the launcher pod."""


class Volumes(msgspec.Struct):
    """What was found out about the claims of an instance."""

    missing: list[str] = msgspec.field(default_factory=list)
    imports: bool = False
    """Whether any of them comes from a DataVolume."""
    failed: list[str] = msgspec.field(default_factory=list)
    filling: list[str] = msgspec.field(default_factory=list)
    to_bind: list[str] = msgspec.field(default_factory=list)
    """Claims whose DataVolume waits for any pod that uses them."""

    @property
    def ready(self) -> bool:
        return not (self.missing or self.filling or self.to_bind)


async def volumes_of(ctx: Context[Instance]) -> Volumes:
    volumes = Volumes()
    for name in launcher.claims_of(ctx.obj.spec).values():
        claim = await ctx.get(PersistentVolumeClaim, name)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            volumes.missing.append(f"{ctx.request.namespace}/{name}")
            continue
        owner = controller_of(claim)
        if owner is None or owner.kind != "DataVolume" or not ctx.serves(DataVolume):
            continue
        volume = await ctx.get(DataVolume, owner.name)
        volumes.imports |= volume is not None
        phase = volume.status.get("phase", "") if volume is not None else "Succeeded"
        if phase == "Failed":
            volumes.failed.append(name)
        elif phase == "WaitForFirstConsumer":
            volumes.to_bind.append(name)
        elif phase not in GO_ON:
            volumes.filling.append(name)
    return volumes


async def obstacles(ctx: Context[Instance]) -> list[tuple[str, str]]:
    """Why a placed pod does not start: events of the kubelet, as reason and message."""
    spec, meta = ctx.obj.spec, ctx.obj.metadata
    problems = []
    for place, name in launcher.attachments_of(spec, meta.namespace):
        attachment = await ctx.get(NetworkAttachment, name, place) if ctx.serves(NetworkAttachment) else None
        why = _unusable(attachment, place, name)
        if why:
            problems.append(("FailedCreatePodSandBox", f"Failed to create pod sandbox: plugin type=multus: {why}"))
    missing = [name for name in launcher.secrets_of(spec) if await ctx.get(Secret, name) is None]
    problems += [("FailedMount", f'MountVolume.SetUp failed: secret "{name}" not found') for name in missing]
    return problems


def _unusable(attachment: NetworkAttachment | None, place: str, name: str) -> str:
    """What Multus and the CNI plugins say when a pod is to be attached."""
    if attachment is None:
        return f"cannot find a network-attachment-definition ({name}) in namespace ({place})"
    try:
        config = json.loads(attachment.spec.get("config", ""))
    except ValueError as error:
        return f"the config of {place}/{name} is not JSON: {error}"
    if not isinstance(config, dict) or not (config.get("type") or config.get("plugins")):
        return f"the config of {place}/{name} has no type"
    if config.get("type") == "bridge" and config.get("disableContainerInterface") and config.get("ipam"):
        return "cannot use IPAM when DisableContainerInterface flag is set"
    return ""


_NEXT = -1.0
_ALL_READY = ("AllDVsReady", "All of the VMI's DVs are bound and ready")
_NOT_READY = ("NotAllDVsReady", "Not all of the VMI's DVs are ready")
_NO_POD = "virt-launcher pod has not yet been scheduled"
_PULLING = ("ErrImagePull", "ImagePullBackOff")
_PLACELESS = "0/{count} nodes are available: {count} Insufficient devices.kubevirt.io/kvm."


class Instances(KindController[Instance]):
    """The controller of VirtualMachineInstances."""

    kind, short = Instance, "vm"
    name, component = "virt-controller-instances", "virtualmachine-controller"

    def __init__(self, pace: Pace, timings: Timings) -> None:
        super().__init__(pace, timings)
        self._guests = Guests(pace, timings)

    def controllers(self) -> list[Controller[Any]]:
        watches: list[Watches[Any]] = [
            Watches(PersistentVolumeClaim, lookup=launcher.users),
            Watches(DataVolume, lookup=launcher.users, optional=True),
            Watches(NetworkAttachment, lookup=_attached, optional=True),
            Watches(VirtualMachine),
        ]
        return [
            self._declared(
                *watches,
                owns=[Pod],
                uses=[Use(Secret, cached=True)],
                indexes={Instance: {"claim": launcher.by_claim, "attachment": launcher.by_attachment}},
            )
        ]

    async def reconcile(self, ctx: Context[Instance]) -> Result | None:
        before = kept(ctx.obj)
        pods = await ctx.owned(Pod)
        wrong = await faults.of(ctx, "vm", await ctx.get(VirtualMachine, ctx.request.name))
        left = await (self._end(ctx, pods) if ctx.deleting else self._live(ctx, pods, wrong))
        await save(ctx.client, ctx.obj, before, main=True)
        if ctx.deleting and ctx.obj.status.get("phase") in OVER and not pods:
            ours = (FOREGROUND,) if controller_of(ctx.obj) is not None else (FOREGROUND, FINALIZER)
            with suppress(NotFound):
                present = await ctx.client.get(Instance, ctx.request.name, ctx.request.namespace)
                await without_finalizer(ctx.client, present, *ours)
        return again(left)

    async def _live(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        steps: dict[str, Callable[[Context[Instance], Sequence[Pod], faults.Faults], Awaitable[float]]] = {
            "": self._new,
            "Pending": self._pending,
            "Scheduling": self._scheduling,
            "Scheduled": self._scheduled,
            "Running": self._running,
            "Succeeded": self._over,
            "Failed": self._over,
        }
        left = _NEXT
        while left == _NEXT:
            left = await steps[ctx.obj.status.get("phase", "")](ctx, pods, wrong)
        return left

    # -------------------------------------------------------------- the phases

    async def _new(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        set_condition(ctx.obj.status, "Ready", False, "PodNotExists", _NO_POD)
        return move(ctx, "Pending")

    async def _pending(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        """Until there is something to boot from."""
        status = ctx.obj.status
        left = self._pace.left(ctx.obj.metadata, "pending", self._timings.begin)
        volumes = await volumes_of(ctx)
        if volumes.failed:
            return fail(ctx, f"DataVolume {volumes.failed[0]} failed")
        if volumes.missing:
            message = f"PVC {volumes.missing[0]} does not exist, waiting for it to appear"
            set_condition(status, "Synchronized", False, "FailedPvcNotFound", message)
            set_condition(status, "PodScheduled", False, "Unschedulable", message)
        else:
            drop_condition(status, "Synchronized")
        if volumes.imports:
            ready = not (volumes.filling or volumes.to_bind)
            set_condition(status, "DataVolumesReady", ready, *(_ALL_READY if ready else _NOT_READY))
        await self._bind(ctx, pods, volumes.to_bind)
        if not volumes.ready:
            return inf
        return left or move(ctx, "Scheduling")

    async def _bind(self, ctx: Context[Instance], pods: Sequence[Pod], claims: list[str]) -> None:
        """In the older way of CDI a pod is made just to have waiting claims bound."""
        binders = [pod for pod in pods if launcher.BINDS_ONLY in pod.metadata.labels]
        if claims and not binders:
            await ctx.client.create(launcher.binder_for(ctx.obj, claims), resource=Pod.resource)
        if not claims:
            await self._remove(ctx, binders)

    async def _scheduling(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        """Until its pod is on a node and ready."""
        status = ctx.obj.status
        left = self._unplaceable(ctx, wrong)
        if left:
            return left
        pod = current(ctx.obj, pods)
        problems = await obstacles(ctx)
        behaviour = self._behaviour(ctx.obj, wrong, waits=bool(problems))
        if pod is None:
            await ctx.client.create(launcher.pod_for(ctx.obj, behaviour), resource=Pod.resource)
            return self._timings.retry[0] if problems else inf
        if pod.status.phase in OVER or pod.metadata.deletion_timestamp is not None:
            return fail(ctx, "the launcher pod has ended before the guest started")
        set_condition(status, "Ready", False, "GuestNotRunning", "Guest VM is not reported as running")
        await self._direct(ctx, pod, behaviour)
        _copy_placing(status, pod)
        _copy_pulling(status, pod)
        if problems and pod.spec.node_name:
            for reason, message in problems:
                ctx.warning(reason, message, about=pod)
            return self._timings.retry[0]
        if not problems and pod.spec.node_name and launcher.is_ready(pod):
            left = self._pace.left(ctx.obj.metadata, "scheduled", self._timings.begin)
            if left:
                return left
            await patch(ctx.client, ctx.obj, {"metadata": {"labels": {launcher.NODE: pod.spec.node_name}}})
            status["nodeName"] = pod.spec.node_name
            status["activePods"] = {pod.metadata.uid: pod.spec.node_name}
            return move(ctx, "Scheduled")
        return inf

    async def _scheduled(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        """Until the guest runs."""
        left = self._pace.left(ctx.obj.metadata, "boot", self._timings.boot)
        if current(ctx.obj, pods) is None:
            return fail(ctx, "the launcher pod has gone")
        if left:
            return left
        why = self._guests.crashes_at_start(ctx.obj, wrong)
        if why:
            return fail(ctx, why)
        drop_condition(ctx.obj.status, "Synchronized")
        return move(ctx, "Running")

    async def _running(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        pod = current(ctx.obj, pods)
        if pod is None or pod.status.phase in OVER:
            return fail(ctx, "the launcher pod has gone")
        end, left = self._guests.ends(ctx.obj, wrong)
        if end:
            return fail(ctx, "the guest crashed") if end == "Failed" else move(ctx, "Succeeded")
        alive = pod.metadata.deletion_timestamp is None
        reason = "" if launcher.is_ready(pod) else "PodTerminating" if not alive else "PodConditionMissing"
        set_condition(ctx.obj.status, "Ready", not reason, reason)
        modes = {
            name: (claim.status.access_modes or claim.spec.access_modes)
            for name in launcher.claims_of(ctx.obj.spec).values()
            if (claim := await ctx.get(PersistentVolumeClaim, name)) is not None
        }
        await evacuate(ctx)
        return min(left, self._guests.report(ctx, pod, modes, wrong))

    async def _over(self, ctx: Context[Instance], pods: Sequence[Pod], wrong: faults.Faults) -> float:
        set_condition(ctx.obj.status, "Ready", False, "PodNotExists", _NO_POD)
        await self._remove(ctx, pods)
        return inf

    async def _end(self, ctx: Context[Instance], pods: Sequence[Pod]) -> float:
        """Deletion: the guest is shut down with its pod, and then it has succeeded."""
        status = ctx.obj.status
        if status.get("phase") not in OVER:
            set_condition(status, "Ready", False, "PodTerminating", "virt-launcher pod is terminating")
        await self._remove(ctx, pods)
        if not pods and status.get("phase") not in OVER:
            ran = any(stamp["phase"] == "Running" for stamp in status.get("phaseTransitionTimestamps", []))
            move(ctx, "Succeeded" if ran else "Failed")
        return inf

    # -------------------------------------------------------------- its pod

    def _unplaceable(self, ctx: Context[Instance], wrong: faults.Faults) -> float:
        """Seconds for which no node takes it, on purpose; none when one may."""
        if "unschedulable" not in wrong:
            return 0.0
        limit = seconds(wrong["unschedulable"], "seconds", inf)
        left = inf if limit == inf else self._pace.left(ctx.obj.metadata, "unschedulable", (limit, limit))
        if left:
            message = _PLACELESS.format(count=3)
            set_condition(ctx.obj.status, "PodScheduled", False, "Unschedulable", message)
        return left

    def _behaviour(self, instance: Instance, wrong: faults.Faults, *, waits: bool) -> str:
        grace = float(instance.spec.get("terminationGracePeriodSeconds", 180))
        stop = min(self._pace.draw(instance.metadata, "stop", self._timings.stop), grace)
        phrases = [launcher.stays(stop)]
        if "image-pull" in wrong:
            phrases.append("image-pull-error")
        elif waits:
            phrases.append("never-ready")
        return ", ".join(phrases)

    async def _direct(self, ctx: Context[Instance], pod: Pod, behaviour: str) -> None:
        """What is wrong now is not what was wrong when the pod was made."""
        if pod.metadata.annotations.get(ANNOTATION) != behaviour:
            await patch(ctx.client, pod, {"metadata": {"annotations": {ANNOTATION: behaviour}}})

    async def _remove(self, ctx: Context[Instance], pods: Iterable[Pod]) -> None:
        for pod in pods:
            if pod.metadata.deletion_timestamp is None:
                await ctx.delete(Pod, pod.metadata.name)


# ------------------------------------------------------------------ small things


def move(ctx: Context[Instance], phase: str) -> float:
    """Into the next phase."""
    record_phase(ctx.obj.status, phase)
    return _NEXT


def fail(ctx: Context[Instance], why: str) -> float:
    ctx.obj.status["reason"] = why
    ctx.warning("Stopped", f"The VirtualMachineInstance crashed: {why}.")
    return move(ctx, "Failed")


def current(instance: Instance, pods: Sequence[Pod]) -> Pod | None:
    """The pod that it is in, or is about to be in; neither where it moves to nor one that only binds claims."""
    active = instance.status.get("activePods") or {}
    mine = [pod for pod in pods if pod.metadata.uid in active]
    fresh = [pod for pod in pods if not {launcher.TARGET, launcher.BINDS_ONLY} & pod.metadata.labels.keys()]
    return next(iter(mine or ([] if active else fresh)), None)


def _copy_placing(status: dict[str, Any], pod: Pod) -> None:
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            set_condition(status, "PodScheduled", condition.status, condition.reason or "", condition.message or "")
            return
    drop_condition(status, "PodScheduled")


def _copy_pulling(status: dict[str, Any], pod: Pod) -> None:
    for container in pod.status.container_statuses:
        waiting = container.state.waiting if container.state is not None else None
        if waiting is not None and waiting.reason in _PULLING:
            set_condition(status, "Synchronized", False, waiting.reason or "", waiting.message or "")
            return
    drop_condition(status, "Synchronized")


def _attached(attachment: NetworkAttachment, caches: Caches) -> Iterable[Request]:
    meta = attachment.metadata
    return under(caches, Instance, "attachment", f"{meta.namespace}/{meta.name}")
