"""Which pods the operator restarts: those of an older template (the rollout), servers that are outside of their raft
groups (readmission), and servers that do not recover (healing).

Rollout: one pod at a time, followers before the leader, and never at the quorum's cost. The StatefulSet only creates
pods (`OnDelete`); which one goes next is decided here, after every server was asked. The revision on the pods tells
which are outdated, so nothing has to be remembered.

Readmission: a server that was removed from the raft groups and is to stay after all joins them when it starts.

Whatever the reason, a pod of an older template comes back with the current one. So while an upgrade is halted, none of
these restarts a server of the version before.

Healing: only when the phase is Failed, so that everything else had its chance; one pod at a time, each at most once in
five minutes, and never one that the quorum needs. Missing and changed objects are the work of MakeEnsure.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.times import seconds_since
from konverge.operators.nacos.desired import Desired
from konverge.operators.nacos.server import LEADING_GROUP, Verdict, View
from konverge.operators.nacos.steps.database import database_failed
from konverge.operators.nacos.steps.outcome import CONTINUE, Outcome, wait
from konverge.operators.nacos.steps.pods import Workload, is_ready, is_terminating, ordinal, ready_for, unready_for
from konverge.operators.nacos.steps.state import PROGRESSING, ReconcileState
from konverge.operators.nacos.steps.upgrade.preflight import database_problem
from konverge.operators.nacos.steps.upgrade.progress import check_database, choose, healable, keeps_unready

READMITTING = "Readmitting"

# ------------------------------------------------------------------ rollout


async def replace_useless(state: ReconcileState, workload: Workload) -> Outcome:
    """Outdated pods that are not ready go first: they may never become ready.

    All at once where the servers have never been up; else one by one, for the data that they may hold. Not a pod that
    is about to leave: it is not in the list of the new template.
    """
    useless = [pod for pod in workload.outdated if not is_ready(pod) and ordinal(pod) < state.now.listed]
    if not useless or any(is_terminating(pod) for pod in workload.pods) or keeps_unready(state, workload):
        return CONTINUE
    chosen = useless[-1:] if state.once_up else useless
    for pod in chosen:
        await state.restart(pod, "Replacing", f"{pod.metadata.name} has an older template and is not ready")
    names = ", ".join(pod.metadata.name for pod in chosen)
    state.begin_again("Replacing", f"{names} recreated")
    return wait("Replacing", f"{names} replaced", progress=True)


async def replace_next(
    state: ReconcileState, workload: Workload, views: Sequence[View], verdict: Verdict, last_leader: str
) -> Outcome:
    """The next outdated pod, when all others can be trusted with the load."""
    strangers = {view.pod for view in views if view.forbidden} & workload.with_older_secrets
    up = _all_up(workload, verdict, state.now, len(strangers))
    if not up and not (state.status.phase == "Failed" and len(workload.ready) == state.now.replicas):
        return CONTINUE
    outdated = [pod for pod in workload.outdated if ordinal(pod) < state.now.listed]  # the others are about to leave
    candidates = choose(state, workload, verdict, outdated, last_resort=not up)
    chosen = _next_to_replace(candidates, verdict.leader or _named_leader(verdict) or last_leader)
    if chosen is None:
        return CONTINUE
    if (outcome := await check_database(state)).ends:
        return outcome
    remaining = len(workload.outdated) - 1
    name = chosen.metadata.name
    message = f"{name} is being replaced, {remaining} after it"
    state.begin_again("RollingUpdate", message)
    await state.restart(chosen, "RollingUpdate", f"{name} is replaced for the new template; {remaining} to go")
    return wait("RollingUpdate", message, progress=True)


def _all_up(workload: Workload, verdict: Verdict, desired: Desired, strangers: int) -> bool:
    """Every pod is ready and every server reports itself up; a server that refuses to answer because it was started
    with an older identity (a stranger) counts as up. The lists of members need not agree: those of an older template
    do not know of a cluster that has grown since.

    As a last resort, when the phase is Failed, ready pods are enough: the new template may be the remedy.
    """
    ready = len(workload.ready) == desired.replicas
    return ready and verdict.verified + strangers >= desired.replicas and not verdict.split


def _next_to_replace(outdated: Sequence[Pod], leader: str) -> Pod | None:
    """Followers from the last to the first, then the leader."""
    followers = [pod for pod in outdated if pod.metadata.name != leader]
    return max(followers or outdated, key=ordinal, default=None)


def _named_leader(verdict: Verdict) -> str:
    """The pod that the servers name as their leader, though it does not answer itself."""
    leader = verdict.leaders.get(LEADING_GROUP)
    return leader.address.partition(".")[0] if leader is not None else ""


# ------------------------------------------------------------------ lists of members


async def relist(
    state: ReconcileState, workload: Workload, views: Sequence[View], verdict: Verdict, last_leader: str
) -> Outcome:
    """Where servers follow their list of members as a file: the next one that did not, though it had the time.

    It may be that its image has no shell, or that the user's PodSpec has another hook.
    """
    now, patience = state.now, state.options.list_patience
    if not now.lists_by_file or seconds_since(now.listed_since) < patience or not _all_up(workload, verdict, now, 0):
        return CONTINUE
    behind = {view.pod: len(view.members) for view in views if len(view.members) != now.listed}
    late = [pod for pod in workload.ready if pod.metadata.name in behind and ready_for(pod) >= patience]
    staying = [pod for pod in late if ordinal(pod) < now.listed]
    chosen = _next_to_replace(
        choose(state, workload, verdict, staying, last_resort=False), verdict.leader or last_leader
    )
    if chosen is None:
        return CONTINUE
    name = chosen.metadata.name
    message = f"{name} is restarted with its list of members: it has {behind[name]} of {now.listed}, and did not follow"
    await state.restart(chosen, "Relisting", message)
    state.begin_again("Relisting", message)
    return wait("Relisting", message, progress=True)


# ------------------------------------------------------------------ readmission


async def readmit(state: ReconcileState, workload: Workload, verdict: Verdict) -> Outcome:
    """Restart a server that the groups do not count, which ends the reconcile. No majority needs it.

    When that did not help, the next attempt is later: the server may be useful to clients meanwhile.
    """
    if not verdict.quorum or any(is_terminating(pod) for pod in workload.pods):
        return CONTINUE
    again = state.reason(PROGRESSING) == READMITTING
    patience = state.options.stuck_after if again else state.options.admission
    outside = [pod for pod in workload.ready if pod.metadata.name in verdict.outside and ready_for(pod) >= patience]
    for pod in _may_return(state, workload, verdict, outside):
        if (error := await database_problem(state)) is not None:  # without it the server would not come back
            return database_failed(state, error)
        message = f"{pod.metadata.name} is restarted to rejoin the raft groups, from which it was removed"
        await state.restart(pod, READMITTING, message)
        state.begin_again(READMITTING, message)
        return wait(READMITTING, message, progress=True)
    return CONTINUE


def _may_return(state: ReconcileState, workload: Workload, verdict: Verdict, outside: Sequence[Pod]) -> list[Pod]:
    """Those that stay in the cluster. One of an older template only where the rollout may replace it."""
    staying = [pod for pod in outside if ordinal(pod) < state.now.listed]
    older = {pod.metadata.name for pod in workload.outdated}
    replaceable = [pod for pod in staying if pod.metadata.name in older]
    if state.unapplied is not None:
        replaceable = []
    chosen = {pod.metadata.name for pod in choose(state, workload, verdict, replaceable, last_resort=False)}
    return [pod for pod in staying if pod.metadata.name not in older - chosen]


# ------------------------------------------------------------------ healing


async def heal_pods(state: ReconcileState, workload: Workload, verdict: Verdict | None, outcome: Outcome) -> None:
    """Restart a server that runs and is useless: not ready for long, or ready and without a usable answer."""
    if not _may_heal(state, workload):
        return
    pods = healable(state, workload)
    for pod in reversed(pods):
        if unready_for(pod) >= state.options.stuck_after and _old_enough(state, pod):
            await _heal(state, pod, f"not ready for {unready_for(pod):.0f} s")
            return
    if verdict is None:
        return
    for pod in reversed(pods):
        member = verdict.of_pod(pod.metadata.name)
        silent = is_ready(pod) and (member is None or not member.verified)
        # Where the others do not answer either, the fault may be on the operator's side of the network.
        if silent and verdict.verified >= state.now.quorum and _old_enough(state, pod):
            await _heal(state, pod, f"ready, but useless to its cluster ({outcome.reason})")
            return


async def heal_split(state: ReconcileState, workload: Workload, views: Sequence[View], verdict: Verdict) -> None:
    """Of members that name different leaders, restart one that names the wrong leader."""
    if not verdict.split or not _may_heal(state, workload) or verdict.verified - 1 < state.now.quorum:
        return
    wrong = {view.pod for view in views if _names_another_leader(view, verdict)} - {verdict.leader}
    for pod in reversed(healable(state, workload)):
        if pod.metadata.name in wrong and _old_enough(state, pod):
            await _heal(state, pod, "it names another leader than the others")
            return


def _names_another_leader(view: View, verdict: Verdict) -> bool:
    """Whether a server's own entry claims another leader than the one with the highest term."""
    for member in view.members:
        if member.host.partition(".")[0] == view.pod or member.host == view.address:
            claims = member.leaders or {}
            return any(group in verdict.leaders and claim != verdict.leaders[group] for group, claim in claims.items())
    return False


def _may_heal(state: ReconcileState, workload: Workload) -> bool:
    return state.status.phase == "Failed" and not any(is_terminating(pod) for pod in workload.pods)


def _old_enough(state: ReconcileState, pod: Pod) -> bool:
    return seconds_since(pod.metadata.creation_timestamp) >= state.options.stuck_after


async def _heal(state: ReconcileState, pod: Pod, reason: str) -> None:
    await state.restart(pod, "Healing", f"{pod.metadata.name} is restarted: {reason}", warning=True)
