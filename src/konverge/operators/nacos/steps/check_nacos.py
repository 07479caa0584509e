"""Step 5.2, CheckNacos: every server is asked for the members of its cluster, and all have to say the same.

As many members as replicas, all UP by their own word, one leader. What was found is in the status, good or bad.
"""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.pods import is_ready
from konverge.operators.nacos.server import Verdict, View, judge
from konverge.operators.nacos.status import NodeCondition
from konverge.operators.nacos.steps.members import Workload, ask
from konverge.operators.nacos.steps.round import MEMBERS_VERIFIED, Round
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.stop import CLUSTER, NORMAL, Stop

_MOST_PROBLEMS = 6


async def question(round: Round, workload: Workload) -> tuple[list[View], Verdict]:
    """What the servers say, and what it amounts to; into the status with it."""
    round.step = "CheckNacos"
    views = await ask(round, workload, await identity_of(round))
    verdict = judge(views, round.now.replicas)
    status = round.status
    status.version = verdict.version or status.version
    status.leader = verdict.leader
    status.conditions = [_node(pod, verdict) for pod in workload.pods if is_ready(pod)]
    message = f"{verdict.verified} of {round.now.replicas} servers are up"
    round.condition("Available", verdict.quorum, "Quorum" if verdict.quorum else "NoQuorum", message)
    return views, verdict


def check_nacos(round: Round, verdict: Verdict) -> None:
    """401 unless all is well, and nobody who left still counts."""
    problems = [*verdict.problems, round.cannot_leave] if round.cannot_leave else verdict.problems
    if problems:
        shown = problems[:_MOST_PROBLEMS]
        more = f"; and {len(problems) - len(shown)} more" if len(problems) > len(shown) else ""
        message = "; ".join(shown) + more
        lost = not verdict.quorum and round.now.replicas > 1
        reason = "LeaderSplit" if verdict.split else "QuorumLost" if lost else "MembersNotUp"
        if verdict.healthy:
            reason = "PeersLeft"
        round.condition(MEMBERS_VERIFIED, False, reason, message)
        raise Stop(CLUSTER, reason, message)
    if not round.is_true(MEMBERS_VERIFIED):
        message = f"{verdict.verified} servers are up, {verdict.leader or 'nobody'} leads"
        round.condition(MEMBERS_VERIFIED, True, "AllUp", message)
        raise Stop(NORMAL, "MembersVerified", message)


def _node(pod: Pod, verdict: Verdict) -> NodeCondition:
    """The document's form: the type is the role."""
    found = verdict.of_pod(pod.metadata.name)
    role = found.role if found is not None else ""
    up = found is not None and found.verified
    return NodeCondition(
        type="leader" if role in ("leader", "standalone") else "follower",
        status="true" if up else "false",
        reason="" if up or found is None else found.state,
        message="" if up else "no answer of its own" if found is None else f"{found.state}, not verified",
        instance=pod.status.pod_ip or "",
        host_ip=pod.status.host_ip or "",
        pod_name=pod.metadata.name,
        node_name=pod.spec.node_name or "",
    )
