"""Servers that leave are taken out of the raft groups, and those that stay after all come back into them.

A group goes on counting a server after its pod is gone and no list names it any more: of four servers that became three
it takes all three to write anything, and of two that became one nothing can be written again. So a server is taken out
before it goes (`retire`), while there are enough to decide that. One that went otherwise is taken out afterwards
(`forget_departed`), before anything else is taken away.

Between the removal and the end of the pod somebody may take the shrinking back. Nothing has to be remembered of that:
the leaders say whom they count, and whoever is to stay and is not counted is restarted (`readmit`), for a server asks
for its place when it starts, and never again.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.pods import is_going, ordinal, ordinal_of, ready_for
from konverge.operators.nacos.server import RAFT_OFFSET, NacosError, Verdict
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.round import MEMBERS_VERIFIED, Round
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.stop import NORMAL, Stop

READMITTING = "Readmitting"


async def retire(round: Round, workload: Workload, number: int) -> bool:
    """The last server is taken out while it runs; done again, it does no harm. False: the round says why not."""
    wish = round.wish
    member = names.member(wish.name, number, wish.namespace, wish.domain)
    host, _, port = member.rpartition(":")
    staying = [pod for pod in workload.ready if ordinal(pod) < number]
    return await _remove(round, staying, [f"{host}:{int(port) + RAFT_OFFSET}"], "cannot leave yet")


async def forget_departed(round: Round, workload: Workload, verdict: Verdict) -> None:
    """What left without that is taken out, which ends the round; or the round says why it could not be."""
    departed = [peer for peer in verdict.surplus if has_left(peer, round.wish.name, round.now.replicas, workload)]
    if not departed or not verdict.quorum:
        return  # without a majority the groups cannot change, and there are other things to mend first
    up = [pod for pod in workload.ready if (one := verdict.of_pod(pod.metadata.name)) is not None and one.verified]
    if await _remove(round, up, departed, "left and still counts for the majority"):
        message = f"{_pods(departed)} left and is taken out of the raft groups"
        round.ctx.event("PeerRemoved", message)
        round.condition(MEMBERS_VERIFIED, None, "PeerRemoved", message)
        raise Stop(NORMAL, "PeerRemoved", message)


async def readmit(round: Round, workload: Workload, verdict: Verdict) -> None:
    """One server that the groups do not count begins anew, which ends the round. No majority needs it.

    When that did not help, the next attempt is later: whatever keeps it out, it may serve meanwhile.
    """
    if not verdict.quorum or any(is_going(pod) for pod in workload.pods):
        return
    again = round.reason("Progressing") == READMITTING
    patience = round.options.stuck_after if again else round.options.admission
    for pod in workload.ready:
        name = pod.metadata.name
        if name in verdict.outside and ordinal(pod) < round.now.listed and ready_for(pod) >= patience:
            message = f"{name} is restarted to come back into the raft groups, which it was taken out of"
            await round.restart(pod, READMITTING, message)
            round.begin_again(READMITTING, message)
            raise Stop(NORMAL, READMITTING, message, progress=True)


async def _remove(round: Round, pods: Sequence[Pod], peers: Sequence[str], otherwise: str) -> bool:
    """Asked for at the leader, or at any of these pods: they find their leaders."""
    asked = max(pods, key=lambda pod: pod.metadata.name == round.status.leader)
    identity = await identity_of(round)
    try:
        for peer in peers:
            await round.tools.servers.remove_peer(
                asked.status.pod_ip or "", peer=peer, identity=identity, timeout=round.options.call_timeout
            )
    except NacosError as error:
        round.cannot_leave = f"{_pods(peers)} {otherwise}: {error.message}"
        return False
    return True


def has_left(peer: str, name: str, replicas: int, workload: Workload) -> bool:
    """Whether a raft address is that of a server beyond the last one, whose pod is gone.

    Only names tell that: where servers go by addresses, one that was replaced looks the same as one that left.
    """
    pod = _pod(peer)
    number = ordinal_of(pod)
    return pod == f"{name}-{number}" and number >= replicas and workload.pod(pod) is None


def _pod(peer: str) -> str:
    return peer.rpartition(":")[0].partition(".")[0]


def _pods(peers: Sequence[str]) -> str:
    return ", ".join(_pod(peer) for peer in peers)
