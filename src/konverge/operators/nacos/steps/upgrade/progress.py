"""An upgrade while servers are replaced: who has arrived, whether the next one may go, and what the status says."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.objects import times
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.resource import UpgradeStatus, UpgradeStep
from konverge.operators.nacos.server import Verdict
from konverge.operators.nacos.steps.database import database_failed
from konverge.operators.nacos.steps.outcome import CONTINUE, PARAMETER, SYSTEM, Outcome, held
from konverge.operators.nacos.steps.pods import Workload, is_ready, is_terminating, ordinal
from konverge.operators.nacos.steps.state import UPGRADING, ReconcileState
from konverge.operators.nacos.steps.upgrade.plan import active
from konverge.operators.nacos.steps.upgrade.preflight import database_problem
from konverge.operators.nacos.versions import read_version

_STEPS = ("Preflight", "Migrating", "Rolling", "Verifying")
_LONGEST_MESSAGE = 1024


def enter(state: ReconcileState, step: UpgradeStep) -> None:
    record = state.status.upgrade
    if record is not None and record.step != step:
        record.step, record.since = step, times.now()


def rolling(state: ReconcileState) -> UpgradeStatus | None:
    """The upgrade whose image the StatefulSet has."""
    record = active(state.status.upgrade)
    return record if record is not None and record.image == state.image_in_force else None


# ------------------------------------------------------------------ who has arrived


def observe(state: ReconcileState, workload: Workload, verdict: Verdict) -> None:
    """After every server was asked. A server that answers with another version than its image promises halts the
    upgrade: the schema, ports and probes were chosen for the promised one.
    """
    record = rolling(state)
    if record is None:
        return
    new, line = _with_current_template(state, workload), read_version(record.to).line
    reported = {pod.metadata.name: _reported(verdict, pod) for pod in new}
    right = {name: read_version(version).line == line for name, version in reported.items() if version}
    record.members_done = [name for name in right if right[name]]
    if wrong := [f"{name} reports {reported[name]}" for name in right if not right[name]]:
        message = (
            f"{', '.join(wrong)}, and {record.image} should be Nacos {record.to}: correct the image, or set "
            "spec.version to the version that it has"
        )
        state.halted, state.may_roll = held("VersionDiffers", message), False
        return
    left = [pod for pod in workload.outdated if ordinal(pod) < state.now.listed]
    enter(state, "Rolling" if left or len(new) < state.now.listed else "Verifying")


def _with_current_template(state: ReconcileState, workload: Workload) -> list[Pod]:
    outdated = {pod.metadata.name for pod in workload.outdated}
    return [
        pod
        for pod in workload.pods
        if pod.metadata.name not in outdated and not is_terminating(pod) and ordinal(pod) < state.now.listed
    ]


def _reported(verdict: Verdict, pod: Pod) -> str:
    """The version that a server answered with, as a member that is up; empty: it did not."""
    member = verdict.of_pod(pod.metadata.name)
    return member.version if member is not None and member.verified else ""


# ------------------------------------------------------------------ whether the next one may go


def keeps_unready(state: ReconcileState, workload: Workload) -> bool:
    """Whether old servers that are not ready are left alone: no server of the new version has become ready yet, and
    others that are ready could be next to stumble.
    """
    if rolling(state) is None or not workload.observed:
        return False
    new = _with_current_template(state, workload)
    return bool(new) and not any(map(is_ready, new)) and any(map(is_ready, workload.outdated))


def healable(state: ReconcileState, workload: Workload) -> list[Pod]:
    """The pods that healing may restart. One of the old version would come back with the new one: not before that has
    proved itself and not while the upgrade is halted, unless there is no majority to lose.
    """
    record = rolling(state)
    new = _with_current_template(state, workload)
    if record is None or len(workload.ready) < state.now.quorum:
        return workload.pods
    return workload.pods if state.may_roll and len(record.members_done) == len(new) else new


def choose(
    state: ReconcileState, workload: Workload, verdict: Verdict, candidates: Sequence[Pod], *, last_resort: bool
) -> list[Pod]:
    """Those of the outdated pods that an upgrade may replace now; all of them where there is none.

    All servers with the new version must have answered with it, however long that takes: the next one would fail in the
    same way. As a last resort a server that is ready and of no use goes, and no other.
    """
    record = rolling(state)
    if record is None:
        return list(candidates)
    arrived = len(record.members_done) == len(_with_current_template(state, workload))
    if not arrived or not state.may_roll:
        return []
    if not last_resort:
        return list(candidates)
    return [pod for pod in candidates if not _reported(verdict, pod)]


async def check_database(state: ReconcileState) -> Outcome:
    """Right before a server is replaced: without its database it would not come back."""
    if rolling(state) is None or (error := await database_problem(state)) is None:
        return CONTINUE
    return database_failed(state, error)


# ------------------------------------------------------------------ the status


def finish(state: ReconcileState) -> None:
    """All checks have passed: the upgrade is done when every server has answered with the new version."""
    record = rolling(state)
    if record is None or record.step != "Verifying" or state.halted is not None:
        return
    if len(record.members_done) < state.now.listed:
        return
    enter(state, "Done")
    record.halted, record.message = "", f"{len(record.members_done)} servers run Nacos {record.to}"
    state.condition(UPGRADING, False, "Done", record.message)
    state.ctx.event("Upgraded", f"from Nacos {record.from_version} to {record.to}: {record.message}")


def record_upgrade(state: ReconcileState, outcome: Outcome) -> None:
    """What is to be said at the end of a reconcile, in the status and in the condition."""
    record = active(state.status.upgrade)
    before = state.reason(UPGRADING) if state.is_true(UPGRADING) else ""
    if record is None:
        if before:
            state.condition(UPGRADING, False, "Ended", "no upgrade is under way")
        return
    halt = _halt(state, outcome)
    record.halted = halt.reason if halt is not None else ""
    text = halt.message if halt is not None else _how_far(state, record)
    record.message = text[:_LONGEST_MESSAGE]
    state.condition(UPGRADING, True, record.halted or record.step, record.message)
    if record.halted and record.halted != before:
        state.ctx.warning("UpgradeHalted", f"to Nacos {record.to}, {record.step}: {record.halted}: {record.message}")
    elif not record.halted and before and before not in _STEPS:
        state.ctx.event("UpgradeResumed", f"to Nacos {record.to}, {record.step}")


def _halt(state: ReconcileState, outcome: Outcome) -> Outcome | None:
    """Servers may take their time to start; anything else that fails halts at once."""
    if state.halted is not None:
        return state.halted
    if outcome.kind == "hibernated" or outcome.reason == "Hibernating":
        return outcome
    if outcome.kind != "failed":
        return None
    since = state.status.failing_since
    slow = bool(since) and times.seconds_since(since) > state.options.patience
    return outcome if slow or outcome.code in (PARAMETER, SYSTEM) else None


def _how_far(state: ReconcileState, record: UpgradeStatus) -> str:
    way = f"from Nacos {record.from_version} to {record.to}"
    if record.step in ("Rolling", "Verifying"):
        return f"{way}: {len(record.members_done)} of {state.desired.replicas} servers have it"
    return way
