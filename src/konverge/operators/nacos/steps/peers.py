"""Servers that have left are taken out of the raft groups, part of CheckNacos.

A group goes on counting a server after its pod is gone and no list names it any more: of four servers that became three
it takes all three to write anything. So nothing else is taken away before the groups have forgotten who left.
"""

from __future__ import annotations

from konverge.operators.nacos.pods import ordinal_of
from konverge.operators.nacos.server import NacosError, Verdict
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.round import MEMBERS_VERIFIED, Round
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.stop import NORMAL, Stop


async def forget_departed(round: Round, workload: Workload, verdict: Verdict) -> str:
    """Remove what left. The round ends when that was done; else the answer says why it was not, or is empty."""
    departed = [peer for peer in verdict.surplus if has_left(peer, round.wish.name, round.now.replicas, workload)]
    if not departed or not verdict.quorum:
        return ""  # without a majority the groups cannot change, and there are other things to mend first
    names = ", ".join(_pod(peer) for peer in departed)
    address = _spokesman(workload, verdict)
    identity = await identity_of(round)
    try:
        for peer in departed:
            await round.tools.servers.remove_peer(
                address, peer=peer, identity=identity, timeout=round.options.call_timeout
            )
    except NacosError as error:
        return f"{names} left and still counts for the majority: {error.message}"
    message = f"{names} left and is taken out of the raft groups"
    round.ctx.event("PeerRemoved", message)
    round.condition(MEMBERS_VERIFIED, None, "PeerRemoved", message)
    raise Stop(NORMAL, "PeerRemoved", message)


def has_left(peer: str, name: str, replicas: int, workload: Workload) -> bool:
    """Whether a raft address is that of a server beyond the last one, whose pod is gone.

    Only names tell that: where servers go by addresses, one that was replaced looks the same as one that left.
    """
    pod = _pod(peer)
    number = ordinal_of(pod)
    return pod == f"{name}-{number}" and number >= replicas and workload.pod(pod) is None


def _pod(peer: str) -> str:
    return peer.rpartition(":")[0].partition(".")[0]


def _spokesman(workload: Workload, verdict: Verdict) -> str:
    """The address to ask at: the leader's, or that of any server that is up."""
    up = [pod for pod in workload.ready if (one := verdict.of_pod(pod.metadata.name)) is not None and one.verified]
    chosen = max(up, key=lambda pod: pod.metadata.name == verdict.leader)
    return chosen.status.pod_ip or ""
