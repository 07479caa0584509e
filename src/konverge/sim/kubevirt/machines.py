"""VirtualMachines: an instance exists as the run strategy says, and the status reports how that goes.

An instance that fails before its guest ever ran counts as a failure to start: the next attempt waits, longer each time.
One that ran and failed, or was shut down from inside, is started again at once under `Always`.

Upstream: pkg/virt-controller/watch/vm.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from math import inf
from typing import Any

from konverge import clock
from konverge.client import AlreadyExists, NotFound
from konverge.objects import times
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.resource import Resource
from konverge.runtime import Context, Controller, Owns, Request, Result, Watches
from konverge.sim.kubevirt import faults, launcher
from konverge.sim.kubevirt.controller import KindController, every, seconds
from konverge.sim.kubevirt.kinds import (
    OVER,
    DataVolume,
    Instance,
    KubeVirt,
    Migration,
    Obj,
    VirtualMachine,
    drop_condition,
    is_true,
    kept,
    patch,
    reference,
    save,
    set_condition,
    with_finalizers,
    without_finalizer,
)
from konverge.sim.kubevirt.machine_status import FILLED, look_around, printable, take_conditions
from konverge.sim.kubevirt.templates import (
    FINALIZER,
    comparable,
    firmware_uuid,
    instance_for,
    propagated,
    spec_for,
    strategy,
)

_FIRST_DELAY = 10.0
_LONGEST_DELAY = 300.0
_STARTS_ITSELF = ("Always", "RerunOnFailure", "Once")
_TYPES = "instancetype.kubevirt.io"
_NO_SNAPSHOT = "Snapshot is not supported for this volumeSource type [{}]"


class Machines(KindController[VirtualMachine]):
    """The controller of VirtualMachines."""

    kind, short = VirtualMachine, "vm"
    name, component = "virt-controller-machines", "virtualmachine-controller"

    def controllers(self) -> list[Controller[Any]]:
        watches: list[Watches[Any]] = [
            Watches(KubeVirt, lookup=every(VirtualMachine)),
            Watches(Migration, requests=lambda moved: [Request(moved.metadata.namespace, moved.spec["vmiName"])]),
            Watches(PersistentVolumeClaim, lookup=launcher.users),
            Watches(DataVolume, lookup=launcher.users),
        ]
        indexes = {Instance: {"claim": launcher.by_claim}}
        return [self._declared(*watches, owns=[Instance, Owns(DataVolume, optional=True)], indexes=indexes)]

    async def reconcile(self, ctx: Context[VirtualMachine]) -> Result | None:
        machine = ctx.obj
        before = kept(machine)
        instance = await ctx.get(Instance, ctx.request.name)
        if instance is not None and not _is_of(instance, machine):
            instance = None
        wrong = await faults.of(ctx, "vm")
        left = await (self._end(ctx, instance, wrong) if ctx.deleting else self._keep(ctx, instance))
        await self._report(ctx, instance)
        with suppress(NotFound):
            await save(ctx.client, machine, before)
        if ctx.deleting and left == 0:
            with suppress(NotFound):
                present = await ctx.client.get(VirtualMachine, ctx.request.name, ctx.request.namespace)
                await without_finalizer(ctx.client, present, FINALIZER)
        return Result(requeue_after=left) if 0 < left < inf else None

    # -------------------------------------------------------------- the instance

    async def _keep(self, ctx: Context[VirtualMachine], instance: Instance | None) -> float:
        machine = ctx.obj
        await with_finalizers(ctx.client, machine, [FINALIZER])
        if not await self._make_volumes(ctx) and strategy(machine.spec) != "Halted":
            return inf
        await _identify(ctx)
        if instance is not None and instance.status.get("phase") in OVER:
            self._count(machine, instance)
        _settle_requests(machine, instance)
        action = _desired_action(machine, instance)
        if action == "stop" and instance is not None:
            _ask_again(machine, instance)
            await self._remove(ctx, instance)
        elif action == "start" and instance is None:
            return await self._start(ctx)
        elif instance is not None:
            await self._update(ctx, instance)
        return inf

    async def _start(self, ctx: Context[VirtualMachine]) -> float:
        machine = ctx.obj
        if machine.status.get("restoreInProgress"):
            return inf
        left = _backoff_left(machine)
        if left:
            return left
        try:
            size = await self._size(ctx)
        except NotFound as error:
            set_condition(machine.status, "Failure", True, "FailedFindInstancetype", str(error))
            return self._timings.retry[0]
        drop_condition(machine.status, "Failure")
        made = instance_for(machine, size, live=await _updates_live(ctx))
        with suppress(AlreadyExists):  # one of the same name that is not ours: its end wakes us
            await ctx.client.create(made, resource=Instance.resource)
            name = made["metadata"]["name"]
            ctx.event("SuccessfulCreate", f"Started the virtual machine by creating the new instance {name}")
        drop_condition(machine.status, "RestartRequired")
        return inf

    async def _remove(self, ctx: Context[VirtualMachine], instance: Instance) -> None:
        """Delete it; once it is over, nothing of ours holds it."""
        meta = instance.metadata
        if meta.deletion_timestamp is None:
            await ctx.delete(Instance, meta.name)
            ctx.event("SuccessfulDelete", f"Stopped the virtual machine by deleting the instance {meta.name}")
        elif instance.status.get("phase") in OVER:
            await without_finalizer(ctx.client, instance, FINALIZER)

    def _count(self, machine: VirtualMachine, instance: Instance) -> None:
        """Failures to start, each once, also of one that was deleted before it ran; an instance that ran clears them.
        Upstream adds up to half of the delay at random."""
        uid, known = instance.metadata.uid, machine.status.get("startFailure") or {}
        if _has_run(instance) or strategy(machine.spec) not in _STARTS_ITSELF:
            machine.status.pop("startFailure", None)
        elif known.get("lastFailedVMIUID") != uid:
            count = int(known.get("consecutiveFailCount", 0)) + 1
            delay = min(_FIRST_DELAY * count * count, _LONGEST_DELAY)
            again = times.format_time(clock.utc_now() + timedelta(seconds=delay))
            machine.status["startFailure"] = {
                "consecutiveFailCount": count,
                "lastFailedVMIUID": uid,
                "retryAfterTimestamp": again,
            }

    async def _update(self, ctx: Context[VirtualMachine], instance: Instance) -> None:
        """A changed template reaches a running guest, or waits for its restart."""
        machine, status = ctx.obj, ctx.obj.status
        if instance.status.get("phase") == "Running":
            machine.status.pop("startFailure", None)
        if instance.metadata.deletion_timestamp is not None or instance.status.get("phase") in OVER:
            return
        live = await _updates_live(ctx)
        wanted = spec_for(machine, await self._size(ctx), live=live)
        if comparable(instance.spec) == comparable(wanted):
            drop_condition(status, "RestartRequired")
            return
        made = propagated(instance.spec, wanted) if live and not is_true(status, "RestartRequired") else None
        if made is None:
            message = "a non-live-updatable field was changed in the template spec"
            set_condition(status, "RestartRequired", True, "RestartRequired", message)
            return
        await patch(ctx.client, instance, {"spec": made})

    async def _size(self, ctx: Context[VirtualMachine]) -> Obj | None:
        """The spec of its instance type."""
        matcher = ctx.obj.spec.get("instancetype")
        if not matcher:
            return None
        kind = str(matcher.get("kind") or "VirtualMachineClusterInstancetype")
        cluster = "cluster" in kind.lower()
        plural = "virtualmachineclusterinstancetypes" if cluster else "virtualmachineinstancetypes"
        resource = Resource(_TYPES, "v1beta1", kind, plural, namespaced=not cluster)
        instancetype = await ctx.client.get(resource, matcher["name"], "" if cluster else ctx.request.namespace)
        spec: Obj = instancetype["spec"]
        return spec

    async def _make_volumes(self, ctx: Context[VirtualMachine]) -> bool:
        """The DataVolumes of its templates; True once all of them are filled or wait for the machine."""
        ready = True
        for template in ctx.obj.spec.get("dataVolumeTemplates", []):
            name = template["metadata"]["name"]
            volume = await ctx.get(DataVolume, name) if ctx.serves(DataVolume) else None
            if volume is not None:
                ready = ready and volume.status.get("phase") in FILLED
                continue
            if not ctx.serves(DataVolume) or await ctx.get(PersistentVolumeClaim, name) is not None:
                continue  # it was filled once, and its DataVolume has been collected
            ready = False
            metadata = {**template["metadata"], "namespace": ctx.request.namespace}
            metadata["labels"] = {**(metadata.get("labels") or {}), launcher.CREATED_BY: ctx.obj.metadata.uid}
            metadata["ownerReferences"] = [reference(ctx.obj)]
            made = {"apiVersion": DataVolume.resource.api_version, "kind": "DataVolume", "metadata": metadata}
            with suppress(AlreadyExists):
                await ctx.client.create({**made, "spec": template["spec"]}, resource=DataVolume.resource)
        return ready

    # -------------------------------------------------------------- the end

    async def _end(self, ctx: Context[VirtualMachine], instance: Instance | None, wrong: faults.Faults) -> float:
        """0: nothing of it is left, and it may go."""
        if instance is not None:
            await self._remove(ctx, instance)
            return inf
        span = self._timings.gone
        if "slow-delete" in wrong:
            span = (seconds(wrong["slow-delete"], "seconds", 60.0),) * 2
        return self._pace.left(ctx.obj.metadata, "gone", span)

    # -------------------------------------------------------------- status

    async def _report(self, ctx: Context[VirtualMachine], instance: Instance | None) -> None:
        machine, status = ctx.obj, ctx.obj.status
        inner: Obj = instance.status if instance is not None else {}
        status["printableStatus"] = printable(machine, instance, await look_around(ctx))
        status["created"] = instance is not None
        status["ready"] = is_true(inner, "Ready")
        if instance is not None or status.get("runStrategy"):  # none yet: it has never been started
            status["runStrategy"] = strategy(machine.spec)
        status["observedGeneration"] = status["desiredGeneration"] = machine.metadata.generation
        take_conditions(status, instance)
        claims = launcher.claims_of(machine.spec["template"]["spec"])
        status["volumeSnapshotStatuses"] = [
            {"name": volume["name"], "enabled": True}
            if volume["name"] in claims
            else {"name": volume["name"], "enabled": False, "reason": _NO_SNAPSHOT.format(volume["name"])}
            for volume in machine.spec["template"]["spec"].get("volumes", [])
        ]


async def _identify(ctx: Context[VirtualMachine]) -> None:
    """A machine that no webhook has given the identity of a board gets one into its own spec."""
    template = ctx.obj.spec["template"]["spec"]
    firmware = template["domain"].get("firmware") or {}
    if not firmware.get("uuid"):
        firmware = {**firmware, "uuid": firmware_uuid(ctx.request.name)}
        template["domain"]["firmware"] = firmware
        made = await patch(ctx.client, ctx.obj, {"spec": {"template": {"spec": {"domain": {"firmware": firmware}}}}})
        ctx.obj.metadata.generation = made.metadata.generation


def _desired_action(machine: VirtualMachine, instance: Instance | None) -> str:
    """`start`, `stop`, or nothing: what the run strategy and the requests of people come to."""
    phase = instance.status.get("phase", "") if instance is not None else ""
    if instance is not None and instance.metadata.deletion_timestamp is not None:
        return "stop"
    asked = next((str(request["action"]) for request in machine.status.get("stateChangeRequests", [])), "")
    if asked == "Stop" or (asked == "Start" and phase in OVER):
        return "stop"
    match strategy(machine.spec):
        case "Halted":
            return "stop"
        case "Always":
            return "stop" if phase in OVER else "start"
        case "RerunOnFailure" if instance is not None:
            return "stop" if phase in OVER else ""
        case "RerunOnFailure":
            return "start" if asked == "Start" or machine.status.get("runStrategy") != "RerunOnFailure" else ""
        case "Once":
            return "start"
        case "Manual":
            return "start" if asked == "Start" else ""
    return ""


def _settle_requests(machine: VirtualMachine, instance: Instance | None) -> None:
    """What was asked for and has happened is forgotten; what has not stays, in order."""
    asked: list[Obj] = list(machine.status.get("stateChangeRequests", []))
    lives = (
        instance is not None
        and instance.metadata.deletion_timestamp is None
        and instance.status.get("phase") not in OVER
    )
    while asked:
        first = asked[0]
        other = instance is None or first.get("uid") not in (None, instance.metadata.uid)
        if not (first["action"] == "Stop" and other) and not (first["action"] == "Start" and lives):
            break
        del asked[0]
    if asked:
        machine.status["stateChangeRequests"] = asked
    else:
        machine.status.pop("stateChangeRequests", None)


def _ask_again(machine: VirtualMachine, instance: Instance) -> None:
    """What failed is to be started again; with RerunOnFailure that takes a request, as from a user."""
    failed = instance.status.get("phase") == "Failed" and instance.metadata.deletion_timestamp is None
    if failed and strategy(machine.spec) == "RerunOnFailure":
        machine.status["stateChangeRequests"] = [{"action": "Start"}]


def _backoff_left(machine: VirtualMachine) -> float:
    failure = machine.status.get("startFailure")
    if not failure:
        return 0.0
    due = times.parse_time(failure["retryAfterTimestamp"])
    return max((due - clock.utc_now()).total_seconds(), 0.0)


def _has_run(instance: Instance) -> bool:
    return any(stamp["phase"] == "Running" for stamp in instance.status.get("phaseTransitionTimestamps", []))


def _is_of(instance: Instance, machine: VirtualMachine) -> bool:
    return any(owner.uid == machine.metadata.uid for owner in instance.metadata.owner_references)


async def _updates_live(ctx: Context[Any]) -> bool:
    configurations = [kubevirt.spec.get("configuration") or {} for kubevirt in await ctx.list(KubeVirt, "")]
    return any(configuration.get("vmRolloutStrategy") == "LiveUpdate" for configuration in configurations)
