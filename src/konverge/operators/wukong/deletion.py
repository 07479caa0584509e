"""Step 2: deletion, in order: the machine and its instance → disks → networks → the finalizer.

A stage begins when the former is gone, not when its deletion was asked for: a claim that goes before its machine would
be taken from under a running guest. Every stage looks at what is there, so it does not matter when the operator was
last killed. What holds a stage up is named in the status. Disks that are to be kept lose their owner and stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from konverge.client import Conflict, MergePatch, NotFound
from konverge.objects import Object, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong import names, wish
from konverge.operators.wukong.children.networks import removed_policy_for
from konverge.operators.wukong.conditions import DELETING, READY, say
from konverge.operators.wukong.kinds import (
    DataVolume,
    NetworkAttachmentDefinition,
    NodeNetworkConfigurationPolicy,
    VirtualMachine,
    VirtualMachineInstance,
)
from konverge.operators.wukong.resource import FINALIZER, AnyWukong
from konverge.operators.wukong.spec_networks import Network
from konverge.operators.wukong.steps.nodes import BRIDGES, is_on_nodes
from konverge.operators.wukong.steps.round import REFUSALS, Round
from konverge.operators.wukong.steps.validate import validate
from konverge.runtime import Result, controller_of, is_true
from konverge.runtime.finalizers import remove_finalizer

K = TypeVar("K", bound=Object)
_decode = msgspec.json.Decoder().decode


async def delete(round: Round) -> Result | None:
    """One look at what is left; None when nothing is."""
    if FINALIZER not in round.ctx.obj.metadata.finalizers:
        return None  # ours is done; others have theirs
    await validate(round)
    round.trouble.clear()  # what is wrong with the spec is no reason to stay
    if round.ctx.obj.spec.get("deletionProtection") is True:
        text = "spec.deletionProtection is true: set it to false, and the machine goes"
        return await _hold(round, "DeletionProtected", text)
    for stage in (_machine, _disks, _networks):
        try:
            left = await stage(round)
        except REFUSALS as error:
            return await _hold(round, "Refused", f"the API server refuses: {error}")
        if left:
            return await _hold(round, f"Deleting{stage.__name__.strip('_').capitalize()}", ", ".join(left))
    await remove_finalizer(round.ctx, FINALIZER)
    return None


async def _hold(round: Round, reason: str, message: str) -> Result:
    status, generation = round.status, round.generation
    say(status, DELETING, True, reason, message, generation=generation)
    if reason != "DeletionProtected":
        say(status, READY, False, "Deleting", message, generation=generation)
        status.message = message
    await round.ctx.save_status()
    return Result(requeue_after=round.options.wait)


# ------------------------------------------------------------------ the machine


async def _machine(round: Round) -> list[str]:
    name, left = names.machine(round.name), []
    vm = await _find(round, VirtualMachine, name)
    if vm is not None and _is_ours(round, vm):
        if _has_our_protection(round, vm) and not vm.metadata.deletion_timestamp:
            await _patch(round, vm, {"labels": {names.DELETE_PROTECTION: None}})
        left.append(await _end(round, vm))
        vmi = await _find(round, VirtualMachineInstance, name)
        if vmi is not None:
            left.append(_waits_for(vmi))
        return left
    vmi = await _find(round, VirtualMachineInstance, name)
    return [_waits_for(vmi)] if vmi is not None and vmi.metadata.labels.get(names.LABEL) == round.name else []


def _has_our_protection(round: Round, vm: VirtualMachine) -> bool:
    """KubeVirt refuses a deletion while it is there. Ours is off by now; one that somebody else has set is to hold."""
    lister = round.ctx.caches.lister(VirtualMachine)
    record = lister.raw(vm.metadata.name, vm.metadata.namespace) if lister is not None else None
    # A cache keeps our own part of managedFields, and nobody else's.
    written = _decode(record.raw)["metadata"].get("managedFields", []) if record is not None else []
    labels = [entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:labels", {}) for entry in written]
    return any(f"f:{names.DELETE_PROTECTION}" in one for one in labels)


# ------------------------------------------------------------------ disks


async def _disks(round: Round) -> list[str]:
    """Those of the spec, and those that were in it once. A claim has the same fate as its DataVolume."""
    left: list[str] = []
    kept: dict[str, bool] = {}
    for kind in (DataVolume, PersistentVolumeClaim):
        for one in await _children(round, kind):
            if kept.setdefault(one.metadata.name, _is_kept(round, one)):
                await _release(round, one)
            else:
                left.append(await _end(round, one))
    return left


def _is_kept(round: Round, one: Object) -> bool:
    """As the spec says, be it valid or not; of a disk that was taken out of it, whether it had us as its owner."""
    policy = wish.policy_of(round.ctx.obj.spec, one.metadata.name.removeprefix(names.claim(round.name, "")))
    if policy is not None:
        return policy == "Retain"
    owner = controller_of(one)
    return owner is None or owner.uid != round.ctx.obj.metadata.uid


async def _children(round: Round, kind: type[K]) -> Sequence[K]:
    """Objects of a kind that carry our label or have us as their controller, and nobody else."""
    if not round.ctx.serves(kind):
        return []
    return [one for one in await round.ctx.list(kind) if _is_ours(round, one) or _is_of_volume(round, one)]


def _is_ours(round: Round, one: Object) -> bool:
    owner = controller_of(one)
    if owner is not None:
        return owner.uid == round.ctx.obj.metadata.uid
    recorded = {volume.pvc_name for volume in round.status.volumes if volume.phase and volume.type != "Existing"}
    return one.metadata.labels.get(names.LABEL) == round.name or (
        isinstance(one, PersistentVolumeClaim) and one.metadata.name in recorded
    )


def _is_of_volume(round: Round, one: Object) -> bool:
    """A claim that CDI made for one of our DataVolumes: it goes with it, and is waited for."""
    owner = controller_of(one)
    recorded = {volume.pvc_name for volume in round.status.volumes if volume.type == "DataVolume"}
    return owner is not None and owner.kind == "DataVolume" and one.metadata.name in recorded


async def _release(round: Round, one: Object) -> None:
    """Kept data must not go by the garbage collector when its owner does."""
    uid = round.ctx.obj.metadata.uid
    others = [to_dict(owner) for owner in one.metadata.owner_references if owner.uid != uid]
    if len(others) < len(one.metadata.owner_references):
        await _patch(round, one, {"ownerReferences": others})


# ------------------------------------------------------------------ networks


async def _networks(round: Round) -> list[str]:
    left = [await _end(round, one) for one in await _children(round, NetworkAttachmentDefinition)]
    if round.wukong is None or not round.options.node_networks:
        return left
    for network in round.wukong.spec.networks:
        if wish.wants_policy(network) and round.ctx.serves(NodeNetworkConfigurationPolicy):
            left += await _bridge(round, network)
    return left


async def _bridge(round: Round, network: Network) -> list[str]:
    """A bridge goes with the last machine on it: first from the nodes, since NMState undoes nothing by itself."""
    bridge = wish.bridge_of(network)
    policy = await round.ctx.get(NodeNetworkConfigurationPolicy, names.policy(bridge))
    if policy is None or policy.metadata.labels.get(names.MANAGED_BY) != names.OPERATOR or _is_shared(round, bridge):
        return []
    interface, kind = network.physical_interface or "", network.type
    removal = removed_policy_for(bridge, interface, "ovs" if kind == "ovs" else "bridge")
    written = await round.ctx.apply(removal, own=False)
    if written or (await is_on_nodes(round, bridge) and not is_true(policy.status.conditions, "Degraded")):
        return [f"bridge {bridge} is taken off the nodes"]
    await round.ctx.delete(NodeNetworkConfigurationPolicy, policy.metadata.name)
    return []


def _is_shared(round: Round, bridge: str) -> bool:
    users = round.ctx.indexed(AnyWukong, BRIDGES, names.policy(bridge))
    own = round.ctx.obj.metadata.uid
    return any(one.metadata.uid != own and not one.metadata.deletion_timestamp for one in users)


# ------------------------------------------------------------------ one object


async def _find(round: Round, kind: type[K], name: str) -> K | None:
    return await round.ctx.get(kind, name) if round.ctx.serves(kind) else None


async def _end(round: Round, one: Object) -> str:
    """Have it deleted, and say what it still waits for."""
    if not one.metadata.deletion_timestamp:
        await round.ctx.delete(type(one), one.metadata.name)
    return _waits_for(one)


def _waits_for(one: Object) -> str:
    named = f"{type(one).resource.kind} {one.metadata.name}"
    if not one.metadata.deletion_timestamp:
        return f"{named} is deleted"
    if one.metadata.finalizers:
        return f"{named} waits for its finalizers {', '.join(one.metadata.finalizers)}"
    return f"{named} is on its way out"


async def _patch(round: Round, one: Object, metadata: dict[str, object]) -> None:
    place = one.metadata
    guarded = {"metadata": {**metadata, "resourceVersion": place.resource_version}}
    try:
        await round.ctx.client.patch(type(one), place.name, MergePatch(guarded), place.namespace)
    except (NotFound, Conflict):
        round.again = True  # somebody else was faster: the next look sees what is there
