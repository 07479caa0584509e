"""Step 5, CheckAndMakeHeal: CheckKind and CheckNacos; then the rollout, and the repair of what a restart can repair.

CheckKind: the StatefulSet has the desired size, and enough of its pods are ready. CheckNacos: every server is asked for
the members of its cluster; each lists as many members as replicas, all report themselves UP, and they name one leader.
The status shows the result of both.

While a cluster comes up, each check that passes for the first time ends its reconcile, as in the document's tables;
UpdateStatus then acts on the verdict of the reconcile before, if that is fresh, without asking again.
"""

from __future__ import annotations

from konverge.objects import times
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.resource import NodeCondition, RaftGroupStatus
from konverge.operators.nacos.server import RaftGroup, Verdict, View, judge
from konverge.operators.nacos.steps.admin import ensure_admin
from konverge.operators.nacos.steps.asking import ask_servers
from konverge.operators.nacos.steps.outcome import CLUSTER, CONTINUE, UNKNOWN, Outcome, failed, wait
from konverge.operators.nacos.steps.peers import remove_departed
from konverge.operators.nacos.steps.pods import Workload, is_ready, read_workload, why_not_ready
from konverge.operators.nacos.steps.restarts import (
    heal_pods,
    heal_split,
    readmit,
    relist,
    replace_next,
    replace_useless,
)
from konverge.operators.nacos.steps.state import MEMBERS_VERIFIED, PODS_READY, ReconcileState
from konverge.operators.nacos.steps.upgrade.progress import observe

_MOST_PROBLEMS = 6
"""In one message."""
MOST_GROUPS = 100
"""In the status. Nacos has six, but they come from outside: a status must not grow too large for the API server."""
LONGEST_TEXT = 512
"""Characters of a name, a leader or a message of a raft group."""
LARGEST_TERM = 2**63 - 1
"""The API server keeps no larger number."""


async def check_and_make_heal(state: ReconcileState) -> Outcome:
    if not state.settled and _verdict_is_fresh(state):
        return CONTINUE
    workload = await read_workload(state)
    # Else a pod that is replaced now could be of the version that has to wait.
    may_roll = state.unapplied is None and state.may_roll
    if may_roll and (outcome := await replace_useless(state, workload)).ends:
        return outcome
    if (outcome := _check_kind(state, workload)).ends:
        await heal_pods(state, workload, None, outcome)
        return outcome
    last_leader = state.status.leader
    views, verdict = await _look_at_servers(state, workload)
    observe(state, workload, verdict)
    if (outcome := await remove_departed(state, workload, verdict)).ends:
        return outcome
    if (outcome := await readmit(state, workload, verdict)).ends:
        return outcome
    may_roll = may_roll and state.may_roll and not state.cannot_leave
    if may_roll and (outcome := await replace_next(state, workload, views, verdict, last_leader)).ends:
        return outcome
    if may_roll and (outcome := await relist(state, workload, views, verdict, last_leader)).ends:
        return outcome
    if (outcome := _check_nacos(state, verdict)).ends:
        await heal_split(state, workload, views, verdict)
        await heal_pods(state, workload, verdict, outcome)
        return outcome
    await ensure_admin(state, workload)
    return CONTINUE


def _verdict_is_fresh(state: ReconcileState) -> bool:
    since = state.true_since(MEMBERS_VERIFIED)
    return bool(since) and times.seconds_since(since) <= state.options.verdict_lasts


# ------------------------------------------------------------------ CheckKind


def _check_kind(state: ReconcileState, workload: Workload) -> Outcome:
    """Standalone: one ready pod. Cluster: (replicas+1)/2. While the workload changes, all pods have to exist."""
    stateful_set, desired = workload.stateful_set, state.now
    if stateful_set is None:
        return failed(UNKNOWN, "StatefulSetMissing", f"StatefulSet {desired.name} does not exist yet")
    if stateful_set.spec.replicas != desired.replicas:
        message = (
            f"StatefulSet {desired.name} has {stateful_set.spec.replicas} replicas, {desired.replicas} are desired"
        )
        return failed(UNKNOWN, "ReplicasDiffer", message)
    if not workload.observed:
        return wait("ChangeUnseen", f"StatefulSet {desired.name} was changed, and its controller has not seen it yet")
    if not state.settled and len(workload.pods) != desired.replicas:
        return _unavailable(state, "PodsMissing", f"{len(workload.pods)} pods exist, {desired.replicas} are desired")
    if len(workload.ready) < desired.needed_ready:
        message = f"too few pods are ready: {len(workload.ready)} of {desired.needed_ready} needed"
        reasons = filter(None, (why_not_ready(pod) for pod in workload.pods))
        return _unavailable(state, "PodsNotReady", "; ".join((message, *reasons)))
    was_ready = state.is_true(PODS_READY)
    message = f"{len(workload.ready)} of {desired.replicas} pods are ready"
    state.condition(PODS_READY, True, "EnoughReady", message)
    return CONTINUE if was_ready else wait("PodsReady", message)


def _unavailable(state: ReconcileState, reason: str, message: str) -> Outcome:
    state.condition(PODS_READY, False, reason, message)
    state.condition("Available", False, reason, message)
    return failed(UNKNOWN, reason, message)


# ------------------------------------------------------------------ CheckNacos


async def _look_at_servers(state: ReconcileState, workload: Workload) -> tuple[list[View], Verdict]:
    """The servers' answers and the verdict on them, which goes into the status."""
    views = state.views = await ask_servers(state, workload.pods)
    verdict = judge(views, state.now.replicas)
    status = state.status
    status.version = verdict.version or status.version
    status.leader = verdict.leader
    status.raft_groups = [_raft_group(group) for group in verdict.groups[:MOST_GROUPS]]
    status.conditions = [_node_condition(pod, verdict) for pod in workload.pods if is_ready(pod)]
    message = f"{verdict.verified} of {state.now.replicas} servers are up"
    state.condition("Available", verdict.quorum, "Quorum" if verdict.quorum else "NoQuorum", message)
    return views, verdict


def _check_nacos(state: ReconcileState, verdict: Verdict) -> Outcome:
    """401 unless all servers are up and agree, and no server that left is still counted."""
    problems = [*verdict.problems, state.cannot_leave] if state.cannot_leave else verdict.problems
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        more = f"; and {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
        message = "; ".join(shown) + more
        lost = not verdict.quorum and state.now.replicas > 1
        reason = "LeaderSplit" if verdict.split else "QuorumLost" if lost else "MembersNotUp"
        if verdict.healthy:
            reason = "PeersLeft"
        state.condition(MEMBERS_VERIFIED, False, reason, message)
        return failed(CLUSTER, reason, message)
    if state.is_true(MEMBERS_VERIFIED):
        return CONTINUE
    message = f"{verdict.verified} servers are up, the leader is {verdict.leader or 'unknown'}"
    state.condition(MEMBERS_VERIFIED, True, "AllUp", message)
    return wait("MembersVerified", message)


def _node_condition(pod: Pod, verdict: Verdict) -> NodeCondition:
    """The document's form: the type is the role."""
    member = verdict.of_pod(pod.metadata.name)
    role = member.role if member is not None else ""
    up = member is not None and member.verified
    return NodeCondition(
        type="leader" if role in ("leader", "standalone") else "follower",
        status="true" if up else "false",
        reason="" if up or member is None else member.state,
        message="" if up else "no answer of its own" if member is None else f"{member.state}, not verified",
        instance=pod.status.pod_ip or "",
        host_ip=pod.status.host_ip or "",
        pod_name=pod.metadata.name,
        node_name=pod.spec.node_name or "",
    )


def _raft_group(group: RaftGroup) -> RaftGroupStatus:
    return RaftGroupStatus(
        name=group.name[:LONGEST_TEXT],
        leader=group.leader[:LONGEST_TEXT],
        term=min(max(group.term, 0), LARGEST_TERM),
        peers=group.peers,
        agreed=not group.problem,
        message=group.problem[:LONGEST_TEXT],
    )
