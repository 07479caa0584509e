"""Membership in the raft groups: servers that leave are removed from them.

A group keeps counting a server after its pod is gone and no list names it any more: of four servers that became three,
all three are needed to write anything, and of two that became one nothing can be written again. So a server is removed
before its pod is deleted (`retire`), while there are enough servers to decide that. A server that left in another way
is removed afterwards (`remove_departed`), before any other pod is taken away.

Between the removal and the end of the pod, the user may scale up again. Nothing has to be remembered of that: the
leaders list the peers that they count, and a server that is to stay and is not counted is restarted (`readmit` in
`restarts.py`), because a server joins its groups only when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos import names
from konverge.operators.nacos.server import RAFT_OFFSET, NacosError, Verdict
from konverge.operators.nacos.steps.outcome import CONTINUE, Outcome, wait
from konverge.operators.nacos.steps.pods import Workload, ordinal, ordinal_of
from konverge.operators.nacos.steps.secrets import identity_of
from konverge.operators.nacos.steps.state import MEMBERS_VERIFIED, ReconcileState


async def retire(state: ReconcileState, workload: Workload, number: int) -> bool:
    """Remove the last server while it runs; repeating it does no harm. False: `state.cannot_leave` says why not."""
    desired = state.desired
    member = names.member(desired.name, number, desired.namespace, desired.domain)
    host, _, port = member.rpartition(":")
    staying = [pod for pod in workload.ready if ordinal(pod) < number]
    return await _remove(state, staying, [f"{host}:{int(port) + RAFT_OFFSET}"], "cannot leave yet")


async def remove_departed(state: ReconcileState, workload: Workload, verdict: Verdict) -> Outcome:
    """Servers that left without `retire` are removed, which ends the reconcile; `state.cannot_leave` says why not."""
    departed = [peer for peer in verdict.surplus if _has_left(peer, state.desired.name, state.now.replicas, workload)]
    if not departed or not verdict.quorum:
        return CONTINUE  # without a majority the groups cannot change, and other repairs come first
    members = ((pod, verdict.of_pod(pod.metadata.name)) for pod in workload.ready)
    up = [pod for pod, member in members if member is not None and member.verified]
    if not await _remove(state, up, departed, "left and still counts for the majority"):
        return CONTINUE
    message = f"{_pods(departed)} left and was removed from the raft groups"
    state.ctx.event("PeerRemoved", message)
    state.condition(MEMBERS_VERIFIED, None, "PeerRemoved", message)
    return wait("PeerRemoved", message)


async def _remove(state: ReconcileState, pods: Sequence[Pod], peers: Sequence[str], problem: str) -> bool:
    """Asks the leader, or any of these pods: they find their leaders."""
    asked = max(pods, key=lambda pod: pod.metadata.name == state.status.leader)
    identity = await identity_of(state)
    try:
        for peer in peers:
            await state.tools.servers.remove_peer(
                asked.status.pod_ip or "", peer=peer, identity=identity, timeout=state.options.call_timeout
            )
    except NacosError as error:
        state.cannot_leave = f"{_pods(peers)} {problem}: {error.message}"
        return False
    return True


def _has_left(peer: str, name: str, replicas: int, workload: Workload) -> bool:
    """Whether a raft address is that of a server beyond the last one, whose pod is gone.

    Only host names can tell: by its address, a server that was replaced looks the same as one that left.
    """
    pod = _pod(peer)
    number = ordinal_of(pod)
    return pod == f"{name}-{number}" and number >= replicas and workload.pod(pod) is None


def _pod(peer: str) -> str:
    return peer.rpartition(":")[0].partition(".")[0]


def _pods(peers: Sequence[str]) -> str:
    return ", ".join(_pod(peer) for peer in peers)
