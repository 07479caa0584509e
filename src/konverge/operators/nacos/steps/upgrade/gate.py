"""The gate of an upgrade, part of PreCheck: until its preflight has passed, nothing of the edit is applied.

As with an edit that is held (`hold.py`), the reconcile goes on with what is in force: servers are looked after. Unlike
there, time or others may solve it, so it is looked at again.
"""

from __future__ import annotations

from msgspec.structs import replace

from konverge.objects import times
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos.desired import declared_version
from konverge.operators.nacos.resource import UpgradeStatus
from konverge.operators.nacos.steps.database import database_failed
from konverge.operators.nacos.steps.hold import UPGRADE, allowed_changes, as_in_force
from konverge.operators.nacos.steps.outcome import held
from konverge.operators.nacos.steps.pods import Workload, pods_of
from konverge.operators.nacos.steps.present import read_present
from konverge.operators.nacos.steps.state import PROGRESSING, READY, UPGRADING, ReconcileState
from konverge.operators.nacos.steps.stateful_set import is_hibernated, size_of
from konverge.operators.nacos.steps.upgrade.plan import Situation, active, goes_back, next_move, path_problem
from konverge.operators.nacos.steps.upgrade.preflight import PAUSED, Problem, database_problem, find_problem
from konverge.operators.nacos.steps.upgrade.progress import enter
from konverge.operators.nacos.versions import NacosVersion, read_version, version_of_image


async def gate_upgrade(state: ReconcileState) -> None:
    """Where an upgrade has to wait, `state.desired` becomes what is in force, and `state.halted` says why."""
    if not state.once_up or not state.image_in_force or not state.image_wanted or state.unapplied is not None:
        return
    record = active(state.status.upgrade)
    if state.held is not None:
        if record is not None and record.image != state.image_wanted:
            state.halted, state.may_roll = state.held, record.image != state.image_in_force
        return
    if state.desired.spec.hibernate:
        return
    now = _situation(state)
    move = next_move(now)
    if move == "none" and state.settled:
        return
    live = await state.reads.get(StatefulSet, state.desired.name)
    match move:
        case "none":
            _take_over(state, live, now)
        case "cancel":
            _cancel(state)
        case "roll":
            _roll(state, now)
            _shrink_later(state, live)
        case "begin":
            _begin(state, now.running, now)
            await _preflight(state, live, now)
        case "resume":
            await _preflight(state, live, now)
        case "redirect":
            await _redirect(state, live, now)
        case "later":
            await _put_off(state, live, now)
    if active(state.status.upgrade) is not None and state.is_true(READY):
        state.condition(READY, False, UPGRADING, "another version is wanted")
        state.condition(PROGRESSING, True, UPGRADING, "another version is wanted")


def _situation(state: ReconcileState) -> Situation:
    reported = read_version(state.status.version)
    return Situation(
        record=state.status.upgrade,
        running=reported if reported.known else version_of_image(state.image_in_force),
        image=state.image_in_force,
        wanted=declared_version(state.desired.spec),
        wanted_image=state.image_wanted,
        engine=state.desired.engine,
        strict=bool(state.desired.spec.upgrade.require_backup_within),
    )


# ------------------------------------------------------------------ the upgrade begins, or ends before it did


def _begin(state: ReconcileState, before: NacosVersion, now: Situation) -> None:
    state.status.upgrade = UpgradeStatus(
        from_version=str(before), to=str(now.wanted), image=now.wanted_image, step="Preflight", since=times.now()
    )
    if not state.is_true(UPGRADING):
        state.ctx.event("UpgradeBegins", f"from Nacos {before} to {now.wanted}")


def _cancel(state: ReconcileState) -> None:
    state.status.upgrade = None
    state.ctx.event("UpgradeCancelled", "no other version of Nacos is wanted any more")


def _take_over(state: ReconcileState, live: StatefulSet | None, now: Situation) -> None:
    """A rollout to another version that an operator without this gate left half-done, or whose status was lost."""
    if now.wanted_image != now.image:
        return
    outdated = Workload(live, pods_of(state)).outdated
    images = {container.image or "" for pod in outdated for container in pod.spec.containers[:1]}
    versions = [version for version in map(version_of_image, images) if version.known]
    before = min(versions, default=now.running)
    if not images - {now.image} or not before.known or not now.wanted.known or before == now.wanted:
        return
    _begin(state, before, now)
    _roll(state, now)


# ------------------------------------------------------------------ before the StatefulSet has the image


async def _preflight(state: ReconcileState, live: StatefulSet | None, now: Situation) -> None:
    """It passes once; then only a pause halts the migration."""
    record = state.status.upgrade
    assert record is not None
    if state.desired.spec.upgrade.paused:
        await _halt(state, live, PAUSED)
        return
    if record.step == "Preflight":
        result = await find_problem(state, live, now.running, now.wanted)
        if isinstance(result, Problem) and not _is_allowed(state, now):
            await _halt(state, live, _with_way_out(state, result, now))
            return
        if (error := await database_problem(state)) is not None:
            outcome = database_failed(state, error)
            await _halt(state, live, Problem(outcome.reason, error.message))
            return
        record.backup = result if isinstance(result, str) else ""
        enter(state, "Migrating")
        await _save(state)
    _keep_size(state, live)


async def _save(state: ReconcileState) -> None:
    """Before anything is changed: what the upgrade began with cannot be read from the cluster afterwards."""
    state.status.publish_conditions()
    await state.ctx.save_status()


def _is_allowed(state: ReconcileState, now: Situation) -> bool:
    return now.wanted.known and f"{UPGRADE}={now.wanted}" in allowed_changes(state.ctx.obj)


def _with_way_out(state: ReconcileState, problem: Problem, now: Situation) -> Problem:
    if not now.wanted.known:
        return problem
    key = state.key
    command = f"kubectl annotate nacos -n {key.namespace} {key.name} 'nacos.io/allow-change={UPGRADE}={now.wanted}'"
    return Problem(problem.reason, f"{problem.message}; to go on in spite of it: {command}")


# ------------------------------------------------------------------ while servers are replaced


def _roll(state: ReconcileState, now: Situation) -> None:
    record = state.status.upgrade
    assert record is not None
    if now.wanted.known:  # the user may have corrected what version the image is
        record.to = str(now.wanted)
    if record.step in ("Preflight", "Migrating"):
        enter(state, "Rolling")
    if state.desired.spec.upgrade.paused:
        state.halted, state.may_roll = held(PAUSED.reason, PAUSED.message), False


async def _redirect(state: ReconcileState, live: StatefulSet | None, now: Situation) -> None:
    """To a third version, or back. Members and backup are not asked for: this may be the remedy, and the backup that
    the upgrade began with is of the data as it was.
    """
    record = active(state.status.upgrade)
    assert record is not None
    before, left = read_version(record.from_version), read_version(record.to)
    if state.desired.spec.upgrade.paused:
        await _halt(state, live, PAUSED)
        return
    back = goes_back(record, now.wanted)
    if not back and (message := path_problem(before, now.wanted)) and not _is_allowed(state, now):
        await _halt(state, live, _with_way_out(state, Problem("VersionPathUnknown", message), now))
        return
    state.ctx.event("UpgradeRedirected", f"to Nacos {now.wanted} in place of {record.to}")
    state.status.upgrade = UpgradeStatus(
        from_version=str(left if back else before),
        to=str(now.wanted),
        image=now.wanted_image,
        step="Migrating",
        since=times.now(),
        backup=record.backup,
    )
    await _save(state)
    _keep_size(state, live)


def _keep_size(state: ReconcileState, live: StatefulSet | None) -> None:
    """One thing at a time: a cluster grows or shrinks when it has its version."""
    state.grow_later = live is not None and state.desired.cluster and not is_hibernated(live)


def _shrink_later(state: ReconcileState, live: StatefulSet | None) -> None:
    """The same once the StatefulSet has the image; growth waits by itself (`hold.py`). From a cluster that has failed,
    servers can be taken away.
    """
    if live is not None and state.desired.replicas < size_of(live, state.desired)[0] and state.status.phase != "Failed":
        _keep_size(state, live)


async def _put_off(state: ReconcileState, live: StatefulSet | None, now: Situation) -> None:
    """The present upgrade goes on; what is wanted now follows it."""
    if _is_allowed(state, now):
        await _redirect(state, live, now)
        return
    record = active(state.status.upgrade)
    assert record is not None
    message = (
        f"Nacos {now.wanted} needs another schema than {record.to}, with which servers work already: it follows when "
        f"all of them do; to leave {record.to}, go back to {record.from_version}"
    )
    await _halt(state, live, _with_way_out(state, Problem("UpgradeUnfinished", message), now))
    state.halted, state.may_roll = None, not state.desired.spec.upgrade.paused


# ------------------------------------------------------------------ the halt


async def _halt(state: ReconcileState, live: StatefulSet | None, problem: Problem) -> None:
    """Nothing of the edit is applied. A StatefulSet that is missing comes back with the image that it had."""
    state.halted = held(problem.reason, problem.message)
    present = await read_present(state, live)
    if live is not None and present is not None:
        state.desired = state.now = await as_in_force(state, live, present, set())
        state.held = state.halted
        record = active(state.status.upgrade)  # with another image: the servers' own template may go on
        state.may_roll = record is None or record.image != state.image_in_force
        return
    spec = replace(state.desired.spec, image=state.image_in_force)
    state.desired = state.now = replace(state.desired, spec=spec, version=read_version(state.status.version))
