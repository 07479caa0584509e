"""Hibernation: `spec.hibernate: true` ends the servers and leaves everything else. Part of PreCheck.

The StatefulSet is scaled to zero and not changed otherwise. That needs neither a database nor a ConfigMap, so a Nacos
in trouble can be put to sleep too; edits of the spec wait until it wakes. With how many servers that will be is noted
in the same request, so it is known whenever a process is killed: raft groups count the members that they had, and
`spec.replicas` may be another number by then. What follows is the usual way up, and the usual scaling after it.

Nothing is asked for meanwhile, no server and no database: what could wake it is watched.
"""

from __future__ import annotations

from konverge.client import MergePatch
from konverge.objects import OwnerReference, to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos import names
from konverge.operators.nacos.children.stateful_set import retention
from konverge.operators.nacos.steps.monitoring import excuse_servers
from konverge.operators.nacos.steps.outcome import ASLEEP, CONTINUE, Outcome, wait
from konverge.operators.nacos.steps.ownership import claims_of
from konverge.operators.nacos.steps.pods import is_terminating, read_workload
from konverge.operators.nacos.steps.state import HIBERNATED, ReconcileState
from konverge.operators.nacos.steps.stateful_set import is_hibernated, size_of

HIBERNATING = "Hibernating"


async def sleep_or_wake(state: ReconcileState) -> Outcome:
    """CONTINUE for a Nacos that is awake, or has to wake."""
    live = await state.reads.get(StatefulSet, state.desired.name)
    if state.desired.spec.hibernate:
        return await _sleep(state, live)
    await _wake(state, live)
    return CONTINUE


async def _sleep(state: ReconcileState, live: StatefulSet | None) -> Outcome:
    workload = await read_workload(state)
    if live is None and not all(map(is_terminating, workload.pods)):
        return CONTINUE  # the StatefulSet is being recreated around its pods: only that can end them for good
    if live is not None and not is_hibernated(live):
        await _end_servers(state, live)
    await _remove_budget(state)
    await excuse_servers(state)
    if workload.pods:
        _report_going(state)
        return wait(HIBERNATING, "the servers end", progress=True)
    if live is not None and state.held is None:
        await _follow_deletion_policy(state, live)
    return state.held or ASLEEP


async def _end_servers(state: ReconcileState, live: StatefulSet) -> None:
    """In one request: the size that it wakes with cannot be lost. Others may have changed the size before, but then not
    the servers' lists.
    """
    meta, size = live.metadata, max(size_of(live, state.desired))
    annotations = {names.HIBERNATED_REPLICAS: str(size)}
    patch = MergePatch({"metadata": {"uid": meta.uid, "annotations": annotations}, "spec": {"replicas": 0}})
    await state.ctx.client.patch(StatefulSet, meta.name, patch, meta.namespace)
    state.note("UPDATE", "StatefulSet", meta.name)
    state.ctx.event(HIBERNATING, f"{size} servers end; volumes, Secrets, Services and content stay")
    _report_going(state)


def _report_going(state: ReconcileState) -> None:
    state.begin_again(HIBERNATING, "the servers end")
    state.condition(HIBERNATED, False, HIBERNATING, "the servers end")


async def _remove_budget(state: ReconcileState) -> None:
    """It comes back when the cluster runs: servers that start must not block the drain of a node."""
    for budget in await state.ctx.owned(PodDisruptionBudget):
        if budget.metadata.deletion_timestamp is None:
            await state.delete(budget)


async def _wake(state: ReconcileState, live: StatefulSet | None) -> None:
    if state.reason(HIBERNATED) in (HIBERNATING, ASLEEP.reason):
        state.status.phase = "Creating"
        state.begin_again("Waking", "the servers start again")
        state.condition(HIBERNATED, False, "Awake", "")
        state.ctx.event("Waking", "the servers start again")
    if live is not None and not is_hibernated(live) and names.HIBERNATED_REPLICAS in live.metadata.annotations:
        meta = live.metadata
        patch = MergePatch({"metadata": {"uid": meta.uid, "annotations": {names.HIBERNATED_REPLICAS: None}}})
        await state.ctx.client.patch(StatefulSet, meta.name, patch, meta.namespace)


# ------------------------------------------------------------------ deletion while it hibernates


async def _follow_deletion_policy(state: ReconcileState, live: StatefulSet) -> None:
    """The one edit that does not wait: a Nacos that is deleted in its sleep keeps or loses its claims by it.

    The StatefulSet's controller only looks at claims of servers that run, so their owner is set here.
    """
    policy = retention(state.desired)
    if policy is None:
        return
    meta = live.metadata
    before = live.spec.persistent_volume_claim_retention_policy
    if before is None or before.when_deleted != policy.when_deleted:
        body = {"metadata": {"uid": meta.uid}, "spec": {"persistentVolumeClaimRetentionPolicy": to_dict(policy)}}
        await state.ctx.client.patch(StatefulSet, meta.name, MergePatch(body), meta.namespace)
    for claim in claims_of(state):
        owned = any(owner.uid == meta.uid for owner in claim.metadata.owner_references)
        if owned != (policy.when_deleted == "Delete"):
            await _set_owner(state, claim, live, owned=not owned)


async def _set_owner(state: ReconcileState, claim: PersistentVolumeClaim, live: StatefulSet, *, owned: bool) -> None:
    """For the version that was read: others may own a claim too."""
    meta, kind = claim.metadata, StatefulSet.resource
    owners = [owner for owner in meta.owner_references if owner.uid != live.metadata.uid]
    if owned:
        name, uid = live.metadata.name, live.metadata.uid
        owners.append(OwnerReference(api_version=kind.api_version, kind=kind.kind, name=name, uid=uid))
    guard = {"uid": meta.uid, "resourceVersion": meta.resource_version}
    patch = MergePatch({"metadata": {**guard, "ownerReferences": [to_dict(owner) for owner in owners]}})
    await state.ctx.client.patch(PersistentVolumeClaim, meta.name, patch, meta.namespace)
    state.note("UPDATE", "PersistentVolumeClaim", meta.name)
