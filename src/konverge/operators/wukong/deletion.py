"""Step 2: deletion, in order: the machine and its instance → disks → networks → the finalizer.

A stage begins when the former is gone, not when its deletion was asked for: a claim that goes before its machine would
be taken from under a running guest. Every stage looks at what is there, so it does not matter when the operator was
last killed. What holds a stage up is named in the status. A restore of disks to keep ends before its machine does.
Disks that are to be kept lose their owner and stay. What our own uid does not control is neither changed nor deleted,
but for that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from konverge.client import Conflict, MergePatch, NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import effective_spec, names
from konverge.operators.wukong.children.networks import removed_policy_for
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    VirtualMachine,
    VirtualMachineRestore,
    VirtualMachineSnapshot,
)
from konverge.operators.wukong.ownership import ORPHAN, is_marked
from konverge.operators.wukong.resource import FINALIZER, AnyWukong
from konverge.operators.wukong.spec_disks import DeletePolicy
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.status import DELETING, READY, say
from konverge.operators.wukong.steps.begin import validate
from konverge.operators.wukong.steps.machine import look
from konverge.operators.wukong.steps.nodes import BRIDGES, is_on_nodes
from konverge.operators.wukong.steps.state import REFUSALS, ReconcileState
from konverge.operators.wukong.templates import resolved_spec
from konverge.runtime import Result, controller_of, is_true
from konverge.runtime.finalizers import remove_finalizer
from konverge.runtime.owners import is_controlled_by

K = TypeVar("K", bound=Object)
_decode = msgspec.json.Decoder().decode


async def delete(state: ReconcileState) -> Result | None:
    """One look at what is left; None when nothing is."""
    if FINALIZER not in state.ctx.obj.metadata.finalizers:
        return None  # ours is done; others have theirs
    await validate(state)
    state.trouble.clear()  # what is wrong with the spec is no reason to stay
    if state.ctx.obj.spec.get("deletionProtection") is True:
        text = "spec.deletionProtection is true: set it to false, and the machine goes"
        return await _hold(state, "DeletionProtected", text)
    if ORPHAN in state.ctx.obj.metadata.finalizers:
        await remove_finalizer(state.ctx, FINALIZER)  # the garbage collector takes our reference off what stays
        return None
    for stage in (_machine, _disks, _networks):
        try:
            left = await stage(state)
        except REFUSALS as error:
            return await _hold(state, "Refused", f"the API server refuses: {error}")
        if left:
            return await _hold(state, f"Deleting{stage.__name__.strip('_').capitalize()}", ", ".join(left))
    await remove_finalizer(state.ctx, FINALIZER)
    return None


async def _hold(state: ReconcileState, reason: str, message: str) -> Result:
    status, generation = state.status, state.generation
    say(status, DELETING, True, reason, message, generation=generation)
    if reason != "DeletionProtected":
        say(status, READY, False, "Deleting", message, generation=generation)
        status.message = message
    await state.ctx.save_status()
    return Result(requeue_after=state.options.wait)


# ------------------------------------------------------------------ the machine


async def _machine(state: ReconcileState) -> list[str]:
    await look(state)
    vm, vmi = state.vm, state.vmi
    if vm is not None and is_controlled_by(vm, state.ctx.obj):
        restores = [] if vm.metadata.deletion_timestamp else await _restores(state, vm)
        if waits := [_puts_back(restore) for restore in restores if await _is_awaited(state, restore)]:
            return waits
        if stale := await _reclaim(state, vm, live=bool(restores)):
            return stale
        if _has_our_protection(state, vm) and not vm.metadata.deletion_timestamp:
            await _patch(state, vm, {"labels": {names.DELETE_PROTECTION: None}})
        machine = await _end(state, vm)
        return [machine, _waits_for(vmi)] if vmi is not None else [machine]
    return [_waits_for(vmi)] if vmi is not None and vmi.metadata.labels.get(names.LABEL) == state.name else []


async def _restores(state: ReconcileState, vm: VirtualMachine) -> list[VirtualMachineRestore]:
    """Those of ours, and the one that has locked the machine: the cache may not have that yet."""
    ctx, locked = state.ctx, vm.status.restore_in_progress
    cached = await ctx.list(VirtualMachineRestore) if ctx.serves(VirtualMachineRestore) else []
    places = [item.metadata for item in cached]
    ours = {place.name for place in places if place.labels.get(names.LABEL) == state.name}
    found = [item for item in cached if item.metadata.name in {locked, *ours}]
    if locked and locked not in {place.name for place in places}:
        with suppress(NotFound):
            found.append(await ctx.client.get(VirtualMachineRestore, locked, vm.metadata.namespace))
    return found


async def _is_awaited(state: ReconcileState, restore: VirtualMachineRestore) -> bool:
    """Whether it goes on, and puts back disks that do not go with us.

    KubeVirt deletes a claim before it makes it again, and a restore ends with its machine: between the two, data that
    are to be kept would be lost. One that failed, is being deleted or has no snapshot any more puts nothing back.
    """
    status = restore.status
    if restore.metadata.deletion_timestamp or status.complete or is_true(status.conditions, "Failure"):
        return False
    taken = await state.ctx.get(VirtualMachineSnapshot, restore.spec.virtual_machine_snapshot_name)
    if taken is None:
        return False
    spec, inside = resolved_spec(state.ctx.obj), taken.status.snapshot_volumes
    disks = (inside.included_volumes if inside is not None else []) or [
        entry.get("name", "") for entry in effective_spec.disk_entries(spec)
    ]
    claims = [names.claim(state.name, disk) for disk in disks]
    return any(effective_spec.policy_of(spec, state.name, claim) != "Delete" for claim in claims)


def _puts_back(restore: VirtualMachineRestore) -> str:
    name = restore.metadata.name
    return f"VirtualMachineRestore {name} puts back disks to keep, and is waited for: delete it to give them up"


def _has_our_protection(state: ReconcileState, vm: VirtualMachine) -> bool:
    """KubeVirt refuses a deletion while it is there. Ours is off by now; one that another user has set must hold."""
    lister = state.ctx.caches.lister(VirtualMachine)
    record = lister.raw(vm.metadata.name, vm.metadata.namespace) if lister is not None else None
    # A cache keeps our own part of managedFields, and no other manager's.
    written = _decode(record.raw)["metadata"].get("managedFields", []) if record is not None else []
    labels = [entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {}) for entry in written]
    return any(f"f:{names.DELETE_PROTECTION}" in owned for owned in labels)


# ------------------------------------------------------------------ disks


async def _disks(state: ReconcileState) -> list[str]:
    """Those of the spec, and those that were in it once. A claim has the same fate as its DataVolume."""
    named = (*_naming_us(state, DataVolume), *_naming_us(state, PersistentVolumeClaim))
    kept = [child for child in named if _is_kept(state, child)]
    left = [_is_stale(child) for child in kept if not await _release(state, child)]
    volumes = await _children(state, DataVolume)
    claims = await _children(state, PersistentVolumeClaim)
    going = (*volumes, *claims, *await _claims_of(state, volumes))
    return left + [await _end(state, child) for child in going if not _is_kept(state, child)]


def _is_kept(state: ReconcileState, child: Object) -> bool:
    """As the spec says, be it valid or not. One that was taken out of it and was to be kept has not us as its owner."""
    return _policy(state, child) == "Retain"


def _policy(state: ReconcileState, child: Object) -> DeletePolicy | None:
    return effective_spec.policy_of(resolved_spec(state.ctx.obj), state.name, child.metadata.name)


async def _children(state: ReconcileState, kind: type[K]) -> Sequence[K]:
    """Objects of a kind that have us as their controller: a name or a label is not enough to delete anything."""
    return await state.ctx.owned(kind) if state.ctx.serves(kind) else []


def _naming_us(state: ReconcileState, kind: type[K]) -> Sequence[K]:
    """Objects of a kind that have us as an owner, be it not their controller: what is to be kept must have neither."""
    return state.ctx.indexed(kind, "owner", state.ctx.obj.metadata.uid) if state.ctx.serves(kind) else []


async def _claims_of(state: ReconcileState, volumes: Iterable[DataVolume]) -> list[PersistentVolumeClaim]:
    """Claims that CDI made for DataVolumes of ours; also of one that is gone, where the claim has our mark; and those
    that no controller looks after any more, where we are an owner."""
    ours = {volume.metadata.uid for volume in volumes}
    claims: list[PersistentVolumeClaim] = []
    for entry in state.status.volumes:
        claim = await state.ctx.get(PersistentVolumeClaim, entry.pvc_name) if entry.type == "DataVolume" else None
        if claim is not None and await _goes_with(state, claim, ours):
            claims.append(claim)
    return claims


async def _goes_with(state: ReconcileState, claim: PersistentVolumeClaim, ours: Collection[str]) -> bool:
    """`ours` are the uids of our DataVolumes."""
    owner = controller_of(claim)
    if owner is None:
        return any(entry.uid == state.ctx.obj.metadata.uid for entry in claim.metadata.owner_references)
    if owner.kind != "DataVolume":
        return False
    return owner.uid in ours or (await state.ctx.get(DataVolume, owner.name) is None and is_marked(state.name, claim))


async def _reclaim(state: ReconcileState, vm: VirtualMachine, *, live: bool) -> list[str]:
    """A restore makes the machine the owner of the claims that it puts back: those to keep must not go with it.

    Nor those that the spec does not know: it may have said that they stay, when it had them. What could not be taken
    from the machine holds up its deletion. `live`: a restore may have made some that the cache does not show yet.
    """
    stale: list[str] = []
    ctx = state.ctx
    listed = (await ctx.client.list(PersistentVolumeClaim, vm.metadata.namespace)).items if live else None
    for claim in await ctx.list(PersistentVolumeClaim) if listed is None else listed:
        owner = controller_of(claim)
        if owner is not None and owner.uid == vm.metadata.uid and _policy(state, claim) != "Delete":
            others = [to_dict(entry) for entry in claim.metadata.owner_references if entry.uid != owner.uid]
            if not await _patch(state, claim, {"ownerReferences": others}):
                stale.append(_is_stale(claim))
    return stale


async def _release(state: ReconcileState, child: Object) -> bool:
    """Kept data must not go by the garbage collector when its owner does. False: it still would."""
    uid = state.ctx.obj.metadata.uid
    others = [to_dict(owner) for owner in child.metadata.owner_references if owner.uid != uid]
    return await _patch(state, child, {"ownerReferences": others})


# ------------------------------------------------------------------ networks


async def _networks(state: ReconcileState) -> list[str]:
    left = [await _end(state, child) for child in await _children(state, NetworkAttachmentDefinition)]
    if state.wukong is None or not state.options.node_networks:
        return left
    for network in state.wukong.spec.networks:
        if effective_spec.wants_policy(network) and state.ctx.serves(NodeNetworkConfigurationPolicy):
            left += await _bridge(state, network)
    return left


async def _bridge(state: ReconcileState, network: Network) -> list[str]:
    """A bridge goes with the last machine on it: first from the nodes, since NMState undoes nothing by itself."""
    bridge = effective_spec.bridge_of(network)
    policy = await state.ctx.get(NodeNetworkConfigurationPolicy, names.policy(bridge))
    if policy is None or policy.metadata.labels.get(names.MANAGED_BY) != names.OPERATOR or _is_shared(state, bridge):
        return []
    interface, kind = network.physical_interface or "", network.type
    removal = removed_policy_for(bridge, interface, "ovs" if kind == "ovs" else "bridge")
    written = await state.ctx.apply(removal, own=False)
    if written or (await is_on_nodes(state, bridge) and not is_true(policy.status.conditions, "Degraded")):
        return [f"bridge {bridge} is taken off the nodes"]
    await state.ctx.delete(NodeNetworkConfigurationPolicy, policy.metadata.name)
    return []


def _is_shared(state: ReconcileState, bridge: str) -> bool:
    users = state.ctx.indexed(AnyWukong, BRIDGES, names.policy(bridge))
    return any(not user.metadata.deletion_timestamp for user in users)  # we are being deleted ourselves


# ------------------------------------------------------------------ one object


async def _end(state: ReconcileState, child: Object) -> str:
    """Have it deleted, and say what it still waits for."""
    place = child.metadata
    if not place.deletion_timestamp:
        # As it was seen, or not at all: one that was orphaned just now is no longer ours.
        with suppress(NotFound):
            await state.ctx.client.delete(
                type(child),
                place.name,
                place.namespace,
                propagation="Background",
                uid=place.uid,
                if_version=place.resource_version,
            )
    return _waits_for(child)


def _waits_for(child: Object) -> str:
    named = f"{type(child).resource.kind} {child.metadata.name}"
    if not child.metadata.deletion_timestamp:
        return f"{named} is deleted"
    if child.metadata.finalizers:
        return f"{named} waits for its finalizers {', '.join(child.metadata.finalizers)}"
    return f"{named} is on its way out"


def _is_stale(child: Object) -> str:
    return (
        f"{type(child).resource.kind} {child.metadata.name} is to be kept, and has just been changed: it is let go next"
    )


async def _patch(state: ReconcileState, child: Object, metadata: dict[str, object]) -> bool:
    """False where another writer was faster: the next look sees what is there."""
    place = child.metadata
    guarded = {"metadata": {**metadata, "resourceVersion": place.resource_version}}
    try:
        await state.ctx.client.patch(type(child), place.name, MergePatch(guarded), place.namespace)
    except NotFound:
        return True  # nothing is left to change
    except Conflict:
        return False
    return True
