"""Changes of the StatefulSet: sizes that keep the quorum, volumes that grow, fields that Kubernetes keeps immutable.

The last (size and class of the claims, selector, Service) are changed by deleting the set without its pods and creating
it again: the pods keep running, and the new set adopts them.
"""

from __future__ import annotations

from konverge.client import Conflict, Forbidden, Invalid, MergePatch, NotFound
from konverge.objects import Quantity, times
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.nacos import names
from konverge.operators.nacos.children.stateful_set import storage_of
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.steps.asking import ask_servers
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, Outcome, failed, wait
from konverge.operators.nacos.steps.ownership import claims_of, type_of_data
from konverge.operators.nacos.steps.peers import retire
from konverge.operators.nacos.steps.pods import Workload, is_ready, is_terminating, ordinal, pods_of
from konverge.operators.nacos.steps.present import CLAIMS, EMBEDDED, read
from konverge.operators.nacos.steps.state import MEMBERS_VERIFIED, ReconcileState


async def next_size(state: ReconcileState) -> tuple[int, int]:
    """The number of servers for this moment, and how many of them the servers' lists contain.

    A cluster grows at once. It shrinks one server at a time: first the others get a list without it, while it still
    serves (by restarts, one by one, or in a file that they follow); when all of them are up with it, it is removed from
    the raft groups, and its pod is deleted.
    So two consecutive majorities always have a member in common, and at any moment the cluster can lose any one server.
    From a cluster that has failed, a useless server is taken away at once.

    One that wakes from hibernation has the size that it had: its raft groups count those servers.
    """
    desired = state.desired
    live = await state.reads.get(StatefulSet, desired.name)
    if live is None:
        size = _size_of_new(state) if desired.cluster else desired.replicas
        return size, size
    size, listed = size_of(live, desired)
    if state.grow_later:
        return size, listed
    if not desired.cluster or size <= desired.replicas:
        return desired.replicas, desired.replicas
    workload = Workload(live, pods_of(state))
    last = workload.pod(names.pod(desired.name, size - 1))
    if state.status.phase == "Failed" and (last is None or not is_ready(last)):
        return size - 1, size - 1
    if listed == size:
        return (size, size - 1) if state.is_true(MEMBERS_VERIFIED) else (size, size)
    ready = _up_without_last(state, workload, size - 1) and await _list_without_last(state, workload, size - 1)
    retired = ready and await retire(state, workload, size - 1)
    return (size - 1, size - 1) if retired else (size, size - 1)


def _size_of_new(state: ReconcileState) -> int:
    """Servers that run while their StatefulSet is recreated, or that slept: the new one starts with all of them."""
    slept, pods = slept_with(state, None), (pod for pod in pods_of(state) if not is_terminating(pod))
    least = slept if state.grow_later else state.desired.replicas
    return max([least, slept, *(ordinal(pod) + 1 for pod in pods)])


def size_of(live: StatefulSet, desired: Desired) -> tuple[int, int]:
    """The numbers of `next_size` for a StatefulSet that stays as it is; of one that hibernates, those it had."""
    size = live.spec.replicas if live.spec.replicas is not None else desired.replicas
    if is_hibernated(live):
        size = _hibernated_size(live, desired.name, desired.replicas)
    return size, _listed(live, desired.name, size)


def is_hibernated(live: StatefulSet | None) -> bool:
    """Whether a StatefulSet is kept without servers."""
    return live is not None and live.spec.replicas == 0


def slept_with(state: ReconcileState, live: StatefulSet | None) -> int:
    """The servers that a Nacos wakes with; 0 when it does not hibernate."""
    if live is None:
        return state.status.applied.replicas
    return size_of(live, state.desired)[0] if is_hibernated(live) else 0


def _hibernated_size(live: StatefulSet, name: str, default: int) -> int:
    noted = live.metadata.annotations.get(names.HIBERNATED_REPLICAS, "")
    return int(noted) if noted.isdecimal() and int(noted) else _listed(live, name, default)


def listed_since(live: StatefulSet | None, listed: int) -> str:
    """Since when the servers' file has so many members: now, where the StatefulSet says another number, or none."""
    annotations = live.metadata.annotations if live is not None else {}
    same = annotations.get(names.LISTED) == str(listed)
    return (annotations.get(names.LISTED_SINCE, "") if same else "") or times.now()


def _listed(live: StatefulSet, name: str, size: int) -> int:
    """The number of servers in the list of the template, else in that of the servers' file."""
    for container in live.spec.template.spec.containers:
        for variable in container.env:
            if container.name == name and variable.name == "NACOS_REPLICAS" and variable.value:
                return int(variable.value)
    noted = live.metadata.annotations.get(names.LISTED, "")
    return int(noted) if noted.isdecimal() and int(noted) else size


def _up_without_last(state: ReconcileState, workload: Workload, count: int) -> bool:
    """The first `count` servers have the new list, and were up when last asked."""
    up = {node.pod_name for node in state.status.servers if node.status == "true"}
    outdated = {pod.metadata.name for pod in workload.outdated}
    staying = [workload.pod(names.pod(state.desired.name, number)) for number in range(count)]
    return workload.observed and all(
        pod is not None and is_ready(pod) and pod.metadata.name in up - outdated for pod in staying
    )


async def _list_without_last(state: ReconcileState, workload: Workload, count: int) -> bool:
    """The first `count` servers have taken the list without the last one from their file; asked now."""
    if not state.desired.lists_by_file:
        return True  # it is in their template
    views = await ask_servers(state, [pod for pod in workload.pods if ordinal(pod) < count])
    return all(len(view.members) == count for view in views)


async def ensure_stateful_set(state: ReconcileState, desired: StatefulSet) -> Outcome:
    """Ends the reconcile while the set is being recreated."""
    live = await state.reads.get(StatefulSet, desired.metadata.name)
    if live is not None:
        if live.metadata.deletion_timestamp is not None:
            return wait("Recreating", f"StatefulSet {live.metadata.name} is being recreated")
        if (outcome := await _grow_volumes(state, live, desired)).ends:
            return outcome
        if difference := _immutable_difference(live, desired):
            return await _recreate(state, live, difference)
        await _note_whose_data(state, live, desired)
    if await state.ensure(desired):
        change = f"StatefulSet of {desired.spec.replicas} servers"
        state.begin_again("Changed" if live is not None else "Creating", change)
    return CONTINUE


def _immutable_difference(live: StatefulSet, desired: StatefulSet) -> str:
    """The first field that differs and that the API server does not let change."""
    old, new = live.spec, desired.spec
    if not any(entry.operation == "Apply" for entry in live.metadata.managed_fields):
        # An apply would leave the fields of an earlier operator that it does not name: commands, hooks that wipe data.
        return "what another operator wrote"
    if (old.service_name or "") != (new.service_name or ""):
        return "serviceName"
    if old.selector.match_labels != new.selector.match_labels:
        return "selector"
    if (old.pod_management_policy or "OrderedReady") != new.pod_management_policy:
        return "podManagementPolicy"
    if [*map(_shape, old.volume_claim_templates)] != [*map(_shape, new.volume_claim_templates)]:
        return "volumeClaimTemplates"
    return ""


def _shape(claim: PersistentVolumeClaim) -> tuple[str, str, object]:
    return claim.metadata.name, claim.spec.storage_class_name or "", storage_of(claim)


async def _recreate(state: ReconcileState, live: StatefulSet, difference: str) -> Outcome:
    name = live.metadata.name
    await state.ctx.client.delete(
        StatefulSet, name, live.metadata.namespace, propagation="Orphan", uid=live.metadata.uid
    )
    state.note("DELETE", "StatefulSet", f"{name} (its pods stay)")
    state.ctx.event("Recreating", f"StatefulSet {name} is recreated around its pods: {difference} cannot be changed")
    state.begin_again("Recreating", f"{difference} changes")
    return wait("Recreating", f"StatefulSet {name} is being recreated: {difference} changes", progress=True)


async def _grow_volumes(state: ReconcileState, live: StatefulSet, desired: StatefulSet) -> Outcome:
    """Existing claims first: a recreated set applies its template to new claims only."""
    old, size = _data_volume_size(live), _data_volume_size(desired)
    if old is None or size is None or size <= old:
        return CONTINUE
    for claim in claims_of(state):
        name = claim.metadata.name
        if storage_of(claim) < size:
            storage = {"resources": {"requests": {"storage": str(size)}}}
            patch = MergePatch({"metadata": {"uid": claim.metadata.uid}, "spec": storage})
            try:
                await state.ctx.client.patch(PersistentVolumeClaim, name, patch, claim.metadata.namespace)
            except (Forbidden, Invalid) as error:
                message = f"spec.volume: claim {name} does not grow to {size} ({error}); request {old} as before"
                return failed(PARAMETER, "VolumesCannotGrow", message)
            state.note("UPDATE", "PersistentVolumeClaim", name)
            state.ctx.event("VolumeGrows", f"{name} grows to {size}")
    return CONTINUE


async def _note_whose_data(state: ReconcileState, live: StatefulSet, desired: StatefulSet) -> None:
    """On the claims, which outlive the resource, where their number would mislead: somebody has scaled the set."""
    spec, claims = desired.spec, claims_of(state)
    wanted = read(desired.metadata.name, spec.template.spec, spec.volume_claim_templates)
    if not wanted.type or (wanted.database, wanted.volume) != (EMBEDDED, CLAIMS) or not claims:
        return
    if type_of_data(claims) == wanted.type:
        return
    for claim in claims[: min(live.spec.replicas or 0, spec.replicas or 0)]:
        if claim.metadata.annotations.get(names.DATA_OF) == wanted.type:
            continue
        metadata = {"uid": claim.metadata.uid, "annotations": {names.DATA_OF: wanted.type}}
        name = claim.metadata.name
        try:
            await state.ctx.client.patch(
                PersistentVolumeClaim, name, MergePatch({"metadata": metadata}), claim.metadata.namespace
            )
        except (NotFound, Conflict):
            continue  # another has taken its place
        except (Forbidden, Invalid) as error:  # nothing waits for a note
            state.ctx.warning("ClaimNotNoted", f"{name}: {names.DATA_OF} cannot be set: {error}")
            continue
        state.note("UPDATE", "PersistentVolumeClaim", name)


def _data_volume_size(stateful_set: StatefulSet) -> Quantity | None:
    templates = stateful_set.spec.volume_claim_templates
    return next((storage_of(claim) for claim in templates if claim.metadata.name == names.DATA_VOLUME), None)
