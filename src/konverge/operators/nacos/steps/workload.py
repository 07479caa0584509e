"""The StatefulSet through its changes: sizes that keep the quorum, volumes that grow, fields that cannot change.

What Kubernetes does not let change in a StatefulSet (size and class of the claims, selector, Service) is changed by
taking the set away from its pods and making it anew: the pods go on, and the new set adopts them.
"""

from __future__ import annotations

from konverge.client import MergePatch
from konverge.objects import Object
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.nacos import names
from konverge.operators.nacos.children.statefulset import storage_of
from konverge.operators.nacos.pods import is_going, is_ready, ordinal
from konverge.operators.nacos.steps.members import Workload, pods_of
from konverge.operators.nacos.steps.peers import retire
from konverge.operators.nacos.steps.round import MEMBERS_VERIFIED, Round
from konverge.operators.nacos.steps.stop import NORMAL, PARAMETER, Stop
from konverge.runtime import controller_of


async def next_size(round: Round) -> tuple[int, int]:
    """How many servers there should be at the moment, and how many of them in the servers' lists.

    Growing happens at once. Shrinking goes one server at a time: first the others forget it, one after the other, while
    it still serves; when all of them are well without it, it is taken out of the raft groups, and goes. Two majorities
    then always have a member in common, and there is none at any moment that the cluster cannot lose. From a cluster
    that has failed, a server that is of no use is taken away at once.
    """
    wish = round.wish
    live = await round.ctx.get(StatefulSet, wish.name)
    if live is None:
        size = max(wish.replicas, _without_a_set(round) if wish.cluster else 0)
        return size, size
    size = live.spec.replicas if live.spec.replicas is not None else wish.replicas
    if not wish.cluster or size <= wish.replicas:
        return wish.replicas, wish.replicas
    workload = Workload(live, pods_of(round))
    last = workload.pod(names.pod(wish.name, size - 1))
    if round.status.phase == "Failed" and (last is None or not is_ready(last)):
        return size - 1, size - 1
    if _listed(live, wish.name, size) == size:
        return (size, size - 1) if round.is_true(MEMBERS_VERIFIED) else (size, size)
    well = _well_without(round, workload, size - 1) and await retire(round, workload, size - 1)
    return (size - 1, size - 1) if well else (size, size - 1)


def _without_a_set(round: Round) -> int:
    """How many servers go on while their StatefulSet is made anew: the new one begins with all of them."""
    return 1 + max((ordinal(pod) for pod in pods_of(round) if not is_going(pod)), default=-1)


def _listed(live: StatefulSet, name: str, size: int) -> int:
    """How many servers the template's list has."""
    for container in live.spec.template.spec.containers:
        for variable in container.env:
            if container.name == name and variable.name == "NACOS_REPLICAS" and variable.value:
                return int(variable.value)
    return size


def _well_without(round: Round, workload: Workload, count: int) -> bool:
    """The first so many servers have the new list, and were up when last asked."""
    up = {node.pod_name for node in round.status.conditions if node.status == "true"}
    outdated = {pod.metadata.name for pod in workload.outdated}
    staying = [workload.pod(names.pod(round.wish.name, number)) for number in range(count)]
    return workload.acted_upon and all(
        pod is not None and is_ready(pod) and pod.metadata.name in up - outdated for pod in staying
    )


async def ensure_stateful_set(round: Round, wanted: Object) -> bool:
    assert isinstance(wanted, StatefulSet)
    live = await round.ctx.get(StatefulSet, wanted.metadata.name)
    if live is not None:
        if live.metadata.deletion_timestamp is not None:
            raise Stop(NORMAL, "Recreating", f"StatefulSet {live.metadata.name} is being made anew")
        _refuse_strangers(round, live)
        await _grow_volumes(round, live, wanted)
        if difference := _unchangeable(live, wanted):
            await _make_anew(round, live, difference)
    if not await round.ensure(wanted):
        return False
    change = f"StatefulSet of {wanted.spec.replicas} servers"
    round.begin_again("Changed" if live is not None else "Creating", change)
    return True


def _refuse_strangers(round: Round, live: StatefulSet) -> None:
    owner = controller_of(live)
    if owner is not None and owner.uid != round.ctx.obj.metadata.uid:
        message = f"StatefulSet {live.metadata.name} belongs to {owner.kind} {owner.name}: choose another name"
        raise Stop(PARAMETER, "NameTaken", message)


def _unchangeable(live: StatefulSet, wanted: StatefulSet) -> str:
    """The first field that differs and that the API server would not let change."""
    old, new = live.spec, wanted.spec
    if not any(entry.operation == "Apply" for entry in live.metadata.managed_fields):
        # Of an earlier operator's set an apply would leave whatever it does not name: commands, hooks that wipe data.
        return "what another operator has put into it"
    if (old.service_name or "") != (new.service_name or ""):
        return "serviceName"
    if old.selector.match_labels != new.selector.match_labels:
        return "selector"
    if (old.pod_management_policy or "OrderedReady") != new.pod_management_policy:
        return "podManagementPolicy"
    if [_shape(one) for one in old.volume_claim_templates] != [_shape(one) for one in new.volume_claim_templates]:
        return "volumeClaimTemplates"
    return ""


def _shape(claim: PersistentVolumeClaim) -> tuple[str, str, object]:
    return claim.metadata.name, claim.spec.storage_class_name or "", storage_of(claim)


async def _make_anew(round: Round, live: StatefulSet, difference: str) -> None:
    name = live.metadata.name
    await round.ctx.client.delete(
        StatefulSet, name, live.metadata.namespace, propagation="Orphan", uid=live.metadata.uid
    )
    round.note("DELETE", "StatefulSet", f"{name} (its pods stay)")
    round.ctx.event("Recreating", f"StatefulSet {name} is made anew around its pods: {difference} cannot be changed")
    round.begin_again("Recreating", f"{difference} changes")
    raise Stop(NORMAL, "Recreating", f"StatefulSet {name} is being made anew: {difference} changes", progress=True)


async def _grow_volumes(round: Round, live: StatefulSet, wanted: StatefulSet) -> None:
    """The claims first: a set that is made anew only knows about new ones."""
    old = {one.metadata.name: storage_of(one) for one in live.spec.volume_claim_templates}
    new = {one.metadata.name: storage_of(one) for one in wanted.spec.volume_claim_templates}
    size = new.get(names.DATA_VOLUME)
    if size is None or names.DATA_VOLUME not in old:
        return
    if size < old[names.DATA_VOLUME]:
        message = f"spec.volume: volumes cannot shrink from {old[names.DATA_VOLUME]} to {size}; ask for no less"
        raise Stop(PARAMETER, "VolumesCannotShrink", message)
    if size == old[names.DATA_VOLUME]:
        return
    prefix = f"{names.DATA_VOLUME}-{wanted.metadata.name}-"
    for claim in await round.ctx.list(PersistentVolumeClaim):
        name = claim.metadata.name
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit() and storage_of(claim) < size:
            patch = MergePatch({"spec": {"resources": {"requests": {"storage": str(size)}}}})
            await round.ctx.client.patch(PersistentVolumeClaim, name, patch, claim.metadata.namespace)
            round.note("UPDATE", "PersistentVolumeClaim", name)
            round.ctx.event("VolumeGrows", f"{name} grows to {size}")
