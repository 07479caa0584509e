"""How a round ends: what an interruption or a success means for the phase, the events and the conditions.

CODE_NORMAL interrupts quietly. Any other code is noted, and when rounds have not come to their end for three minutes
the phase is Failed. Either way the next round is in five seconds.
"""

from __future__ import annotations

from konverge.objects import times
from konverge.operators.nacos.pods import seconds_since
from konverge.operators.nacos.status import NacosStatus, StatusEvent
from konverge.operators.nacos.steps.round import READY, Round
from konverge.operators.nacos.steps.stop import NORMAL, Stop

EVENTS_KEPT = 10
LONGEST_MESSAGE = 1024
_RETOLD_AFTER = 60.0
"""How often an unchanged event's time is moved: telling it each round would be a write each round."""


def interrupted(round: Round, stop: Stop) -> None:
    """A step ended the round."""
    status, message = round.status, stop.message[:LONGEST_MESSAGE]
    if stop.progress:
        status.failing_since = ""
        round.condition("Degraded", False, "Progressing", message)
    if stop.code == NORMAL:
        return
    status.healthy = False
    if note_event(status, stop.code, message, good=False):
        round.ctx.warning(stop.reason, message)
    status.failing_since = status.failing_since or times.now()
    round.condition(READY, False, stop.reason, message)
    if seconds_since(status.failing_since) > round.options.patience and status.phase != "Failed":
        status.phase = "Failed"
        round.ctx.warning("Failed", f"not well for {round.options.patience:g} s: {message}")
    if status.phase != "Creating":
        round.condition("Degraded", True, stop.reason, message)


def finish(round: Round) -> None:
    """Every step was content."""
    status, replicas = round.status, round.wish.replicas
    if status.phase != "Running":
        round.ctx.event("Running", f"{replicas} of {replicas} servers are up, version {status.version}")
    status.phase, status.healthy, status.failing_since = "Running", True, ""
    note_event(status, NORMAL, "", good=True)
    told = f"{replicas} of {replicas} servers are up"
    round.condition(READY, True, "Running", told)
    round.condition("Available", True, "Running", told)
    round.condition("Progressing", False, "Complete", told)
    round.condition("Degraded", False, "Running", "")


def note_event(status: NacosStatus, code: int, message: str, *, good: bool) -> bool:
    """The document's list of events. True when this is a new one, and not the last one again."""
    last = status.event[-1] if status.event else None
    now = times.now()
    if last is None or (last.code, last.status) != (code, good):
        entry = StatusEvent(status=good, code=code, message=message, first_appear_time=now, last_transition_time=now)
        status.event = [*status.event, entry][-EVENTS_KEPT:]
        return True
    if last.message != message or (not good and seconds_since(last.last_transition_time) >= _RETOLD_AFTER):
        last.message, last.last_transition_time = message, now
    return False
