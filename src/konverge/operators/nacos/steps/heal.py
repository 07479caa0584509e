"""What the operator does about a cluster that does not get well by itself: it restarts one server, and looks again.

Only when the phase is Failed, so that everything else had its chance; only one pod at a time, and each at most once in
five minutes; and never one that the quorum needs. Missing and changed objects need no healing: MakeEnsure makes them.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.pods import is_going, is_ready, seconds_since, useless_for
from konverge.operators.nacos.server import Verdict, View
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import Stop


async def heal_pods(round: Round, workload: Workload, verdict: Verdict | None, stop: Stop) -> None:
    """A server that runs and is of no use: not ready for long, or ready and not to be talked to."""
    if not _may_restart(round, workload):
        return
    for pod in reversed(workload.pods):
        if useless_for(pod) >= round.options.stuck_after and _old_enough(round, pod):
            await _restart(round, pod, f"not ready for {useless_for(pod):.0f} s")
            return
    if verdict is None:
        return
    for pod in reversed(workload.pods):
        found = verdict.of_pod(pod.metadata.name)
        mute = is_ready(pod) and (found is None or not found.verified)
        # Where the others do not answer either, it may be us who cannot hear.
        if mute and verdict.verified >= round.now.quorum and _old_enough(round, pod):
            await _restart(round, pod, f"ready, but of no use to its cluster ({stop.reason})")
            return


async def heal_split(round: Round, workload: Workload, views: Sequence[View], verdict: Verdict, stop: Stop) -> None:
    """Of members that name different leaders, one that names the wrong one begins anew."""
    if not verdict.split or not _may_restart(round, workload) or verdict.verified - 1 < round.now.quorum:
        return
    wrong = {view.pod for view in views if names_another(view, verdict)} - {verdict.leader}
    for pod in reversed(workload.pods):
        if pod.metadata.name in wrong and _old_enough(round, pod):
            await _restart(round, pod, "it names another leader than the others")
            return


def names_another(view: View, verdict: Verdict) -> bool:
    """Whether a server's own entry claims another leader than the one with the highest term."""
    own = next(
        (one for one in view.members if one.host.partition(".")[0] == view.pod or one.host == view.address), None
    )
    claims = own.leaders or {} if own is not None else {}
    return any(group in verdict.leaders and claim != verdict.leaders[group] for group, claim in claims.items())


def _may_restart(round: Round, workload: Workload) -> bool:
    return round.status.phase == "Failed" and not any(is_going(pod) for pod in workload.pods)


def _old_enough(round: Round, pod: Pod) -> bool:
    return seconds_since(pod.metadata.creation_timestamp) >= round.options.stuck_after


async def _restart(round: Round, pod: Pod, why: str) -> None:
    await round.restart(pod, "Healing", f"{pod.metadata.name} is restarted: {why}", warning=True)
