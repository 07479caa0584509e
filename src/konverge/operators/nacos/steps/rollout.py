"""Pods of an older template are replaced: one at a time, followers before the leader, and never at the quorum's cost.

The StatefulSet only makes new pods (`OnDelete`); which one goes next is decided here, after every server was asked.
Nothing is remembered: which pods are of an older template is written on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.pods import is_going, is_ready, ordinal
from konverge.operators.nacos.server import LEADING_GROUP, Verdict, View
from konverge.operators.nacos.steps.members import Workload
from konverge.operators.nacos.steps.round import Round
from konverge.operators.nacos.steps.stop import NORMAL, Stop
from konverge.operators.nacos.wish import Wish


async def replace_useless(round: Round, workload: Workload) -> None:
    """Outdated pods that serve nobody go first: waiting for them to be well would be waiting for ever.

    All at once where the servers have never been up; else one by one, for what they may hold. Not one that is about to
    leave: the new template's list does not have it.
    """
    useless = [pod for pod in workload.outdated if not is_ready(pod) and ordinal(pod) < round.now.listed]
    if not useless or any(is_going(pod) for pod in workload.pods):
        return
    chosen = useless[-1:] if round.once_up else useless
    for pod in chosen:
        await round.restart(pod, "Replacing", f"{pod.metadata.name} is of an older template and not ready")
    names = ", ".join(pod.metadata.name for pod in chosen)
    round.begin_again("Replacing", f"{names} made anew")
    raise Stop(NORMAL, "Replacing", f"{names} replaced", progress=True)


async def replace_next(
    round: Round, workload: Workload, views: Sequence[View], verdict: Verdict, led_before: str
) -> None:
    """The next outdated pod, when all others can be trusted with the load."""
    strangers = {view.pod for view in views if view.forbidden} & workload.with_older_secrets
    if not may_go_on(workload, verdict, round.now, len(strangers), last_hope=round.status.phase == "Failed"):
        return
    chosen = next_to_replace(workload, round.now, verdict.leader or _named_leader(verdict) or led_before)
    if chosen is None:
        return
    left = len(workload.outdated) - 1
    name = chosen.metadata.name
    round.begin_again("RollingUpdate", f"{name} is being replaced, {left} after it")
    await round.restart(chosen, "RollingUpdate", f"{name} is replaced by one of the new template; {left} to go")
    raise Stop(NORMAL, "RollingUpdate", f"{name} is being replaced, {left} after it", progress=True)


def may_go_on(workload: Workload, verdict: Verdict, wish: Wish, strangers: int, *, last_hope: bool) -> bool:
    """Whether a pod may go now.

    Every pod must be ready and every server up by its own word; one that refuses to answer because it was started with
    an older identity (a stranger) is taken to be. Their lists of members need not agree: those of an older template do
    not know of a cluster that has grown since. When nothing else has helped (`last_hope`), the new template may be the
    remedy: then ready pods are enough.
    """
    if len(workload.ready) != wish.replicas:
        return False
    return last_hope or (verdict.verified + strangers >= wish.replicas and not verdict.split)


def next_to_replace(workload: Workload, wish: Wish, leader: str) -> Pod | None:
    """Which pod goes next, if any: followers from the last to the first, then the leader."""
    outdated = [pod for pod in workload.outdated if ordinal(pod) < wish.listed]  # the others are about to leave
    followers = [pod for pod in outdated if pod.metadata.name != leader]
    return max(followers or outdated, key=ordinal, default=None)


def _named_leader(verdict: Verdict) -> str:
    """Whom the servers that answer call their leader, though it does not answer itself."""
    found = verdict.leaders.get(LEADING_GROUP)
    return found.address.partition(".")[0] if found is not None else ""
