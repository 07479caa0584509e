"""The phase of a Nacos: PreCheck (step 1), UpdateStatus (step 6), and the outcome of a reconcile in the status.

CODE_NORMAL ends a reconcile quietly. Any other code is recorded, and after three minutes without a reconcile that was
done the phase is Failed. Either way the next reconcile follows in five seconds.
"""

from __future__ import annotations

from konverge.objects import times
from konverge.operators.nacos import names
from konverge.operators.nacos.desired import InvalidSpec, read_desired
from konverge.operators.nacos.resource import NacosStatus, StatusEvent
from konverge.operators.nacos.steps.database import DATABASE_READY
from konverge.operators.nacos.steps.hibernation import sleep_or_wake
from konverge.operators.nacos.steps.hold import hold_changes
from konverge.operators.nacos.steps.outcome import (
    ASLEEP,
    CLUSTER,
    DONE,
    NORMAL,
    PARAMETER,
    UNKNOWN,
    Outcome,
    failed,
    wait,
)
from konverge.operators.nacos.steps.ownership import refuse_foreign
from konverge.operators.nacos.steps.state import (
    HIBERNATED,
    MEMBERS_VERIFIED,
    PODS_READY,
    PROGRESSING,
    READY,
    UPGRADING,
    ReconcileState,
)
from konverge.operators.nacos.steps.upgrade.gate import gate_upgrade
from konverge.operators.nacos.steps.upgrade.plan import active
from konverge.operators.nacos.steps.upgrade.progress import finish
from konverge.runtime import find_condition

EVENTS_KEPT = 10
"""The length of the originals' list."""
LONGEST_MESSAGE = 1024
_EVENT_REFRESH = 60.0
"""Seconds after which the time of an unchanged event moves: moving it in each reconcile would be a write each time."""


async def pre_check(state: ReconcileState) -> Outcome:
    """No phase yet: Creating, and the reconcile ends. Failed: all that follows is the repair. One that hibernates ends
    here.
    """
    accepted = state.status.phase == ""
    if accepted:
        state.status.phase = "Creating"
        state.begin_again("Creating", "the resource was accepted")
        state.ctx.event("Creating", "the resource was accepted")
    try:
        state.desired = state.now = read_desired(state.ctx.obj)
    except InvalidSpec as error:
        return failed(PARAMETER, "InvalidSpec", str(error))
    if (outcome := await refuse_foreign(state)).ends or (outcome := await hold_changes(state)).ends:
        return outcome
    await gate_upgrade(state)
    if state.ctx.obj.metadata.generation != state.status.observed_generation:
        _warn_of_plain_passwords(state)
    if accepted:
        return wait("Creating", "the resource was accepted", progress=True)
    return await sleep_or_wake(state)


def _warn_of_plain_passwords(state: ReconcileState) -> None:
    """Once for each spec: every user who may read the resource can read them."""
    spec = state.desired.spec
    mysql = spec.database if state.desired.engine == "mysql" else None
    plain = []
    if mysql and mysql.mysql_password and not mysql.mysql_credentials_secret_ref:
        plain.append("database.mysqlPassword (use database.mysqlCredentialsSecretRef)")
    if spec.certification.token:
        plain.append("certification.token (use certification.tokenSecretRef)")
    if plain:
        state.ctx.warning("PlainTextPassword", f"plain text in the resource: {', '.join(plain)}")


async def update_status(state: ReconcileState) -> Outcome:
    """Running, with one write of the status, or none when nothing changed. A cluster that shrinks waits for its last
    step.
    """
    if state.unapplied is not None:
        return state.unapplied
    finish(state)
    if state.held is not None:
        return state.held
    if state.halted is not None:
        return state.halted
    if state.now.replicas != state.desired.replicas:
        return wait("Scaling", f"{state.now.replicas} servers on the way to {state.desired.replicas}")
    if active(state.status.upgrade) is not None:
        return wait(UPGRADING, "not all servers have answered with the new version")
    _record_success(state)
    return DONE


def _record_success(state: ReconcileState) -> None:
    status, replicas = state.status, state.desired.replicas
    message = f"{replicas} of {replicas} servers are up"
    if status.phase != "Running":
        state.ctx.event("Running", f"{message}, version {status.version}")
    status.phase, status.healthy, status.failing_since = "Running", True, ""
    _record_event(status, NORMAL, "", good=True)
    state.condition(READY, True, "Running", message)
    state.condition("Available", True, "Running", message)
    state.condition(PROGRESSING, False, "Complete", message)
    state.condition("Degraded", False, "Running", "")


def record_early_end(state: ReconcileState, outcome: Outcome) -> None:
    """What is to be said of a reconcile that a step ended before it was done; nothing of one that was."""
    status, message = state.status, outcome.message[:LONGEST_MESSAGE]
    if outcome.progress:
        status.failing_since = ""
        state.condition("Degraded", False, "Progressing", message)
    if outcome is ASLEEP:
        _record_sleep(state)
        state.drop(READY)
    if outcome.code == NORMAL:
        return
    if outcome.kind == "held":
        _record_held(state, outcome.reason, message)
        return
    status.healthy = False
    another = outcome.code == PARAMETER and state.reason(READY) != outcome.reason
    if _record_event(status, outcome.code, message, good=False) or another:
        state.ctx.event(outcome.reason, message, type="Normal" if _is_expected(state, outcome) else "Warning")
    status.failing_since = status.failing_since or times.now()
    state.condition(READY, False, outcome.reason, message)
    if times.seconds_since(status.failing_since) > state.options.patience and status.phase != "Failed":
        status.phase = "Failed"
        state.ctx.warning("Failed", f"not healthy for {state.options.patience:g} s: {message}")
    if status.phase != "Creating":
        state.condition("Degraded", True, outcome.reason, message)


def _is_expected(state: ReconcileState, outcome: Outcome) -> bool:
    """Servers that are not up yet are no fault while they are started, until the patience ends."""
    return outcome.code in (UNKNOWN, CLUSTER) and state.is_true(PROGRESSING)


def _record_held(state: ReconcileState, reason: str, message: str) -> None:
    """The servers are up as they were, or asleep; the event is written once, and time does not make it worse."""
    status, servers = state.status, f"{state.now.replicas} of {state.now.replicas} servers are up"
    if state.desired.spec.hibernate:
        _record_sleep(state)
    else:
        status.phase, status.healthy, status.failing_since = "Running", True, ""
        state.condition("Available", True, "Running", servers)
        state.condition("Degraded", False, "Running", servers)
    if not status.event or status.event[-1].message != message:
        _record_event(status, PARAMETER, message, good=False)
    state.condition(READY, False, reason, message)
    state.condition(PROGRESSING, False, reason, message)


def _record_sleep(state: ReconcileState) -> None:
    """Nothing is wrong, and no client is served. Ready is left out by the caller: True would promise servers, and False
    would make kstatus (Helm's `--wait`, Flux) wait for ever for what is as declared.
    """
    status, reason, message = state.status, ASLEEP.reason, ASLEEP.message
    if restore := state.ctx.obj.metadata.annotations.get(names.RESTORE):
        message = f"no server runs during the restore {restore}"
        status.admin.last_result = ""  # the users come from the backup: the password is set again at the wake
    if status.phase != "Hibernated":
        state.ctx.event(reason, message)
    status.phase, status.healthy, status.failing_since = "Hibernated", False, ""
    status.leader, status.raft_groups, status.conditions = "", [], []
    if state.held is None:
        _record_event(status, NORMAL, message, good=True)
    state.condition(HIBERNATED, True, reason, message)
    for type in ("Available", PROGRESSING, "Degraded"):
        state.condition(type, False, reason, message)
    for type in (PODS_READY, MEMBERS_VERIFIED):
        state.condition(type, None, reason, message)
    if state.reason(DATABASE_READY):
        state.condition(DATABASE_READY, None, reason, "the database is looked at when the servers start")


def record_progress(state: ReconcileState, outcome: Outcome) -> None:
    """The two conditions that kstatus reads beside Ready.

    Stalled: nothing gets better before the user acts, or nothing got better for as long as the patience lasts (Helm's
    `--wait` fails). Reconciling: the operator works on the present generation (it goes on waiting).
    """
    ready = find_condition(state.status.kube_conditions, READY)
    current = ready is not None and ready.status == "True" and ready.observed_generation == state.generation
    stalled = outcome.code == PARAMETER or (outcome.code != NORMAL and state.status.phase == "Failed")
    reconciling = not outcome.settled and not stalled and not current
    message = outcome.message[:LONGEST_MESSAGE]
    state.condition("Stalled", stalled, outcome.reason if stalled else "Progressing", message if stalled else "")
    reason = outcome.reason if reconciling else "Stalled" if stalled else "Complete"
    state.condition("Reconciling", reconciling, reason, message if reconciling else "")


def _record_event(status: NacosStatus, code: int, message: str, *, good: bool) -> bool:
    """The document's list of events. True for a new event, False when the last one is repeated."""
    last = status.event[-1] if status.event else None
    now = times.now()
    if last is None or (last.code, last.status) != (code, good):
        entry = StatusEvent(status=good, code=code, message=message, first_appear_time=now, last_transition_time=now)
        status.event = [*status.event, entry][-EVENTS_KEPT:]
        return True
    if last.message != message or (not good and times.seconds_since(last.last_transition_time) >= _EVENT_REFRESH):
        last.message, last.last_transition_time = message, now
    return False
