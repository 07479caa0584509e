"""The oracles: each looks at one run beside the reference and says what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from konverge.check.model import SEVERITIES, Alarm, Run
from konverge.check.oracles import by_itself, templates
from konverge.check.oracles.company import neighbours, notes
from konverge.check.oracles.configuration import configuration
from konverge.check.oracles.copies import copies
from konverge.check.oracles.crash import crash
from konverge.check.oracles.deletions import deletions
from konverge.check.oracles.effect import effect
from konverge.check.oracles.finalizers import finalizers, orphans
from konverge.check.oracles.following import following
from konverge.check.oracles.foreign import foreign
from konverge.check.oracles.leader import leader
from konverge.check.oracles.misoperation import misoperation
from konverge.check.oracles.ours import ours
from konverge.check.oracles.path_dependence import path_dependence
from konverge.check.oracles.permissions import permissions
from konverge.check.oracles.recovery import recovery
from konverge.check.oracles.rest import needless, no_rest
from konverge.check.oracles.restarts import restarts
from konverge.check.oracles.retention import retention
from konverge.check.oracles.secrets import secrets
from konverge.check.oracles.selection import selection
from konverge.check.oracles.state import state
from konverge.check.oracles.status import status
from konverge.check.reference import Reference

Oracle = Callable[[Run, Reference], Iterable[Alarm]]

ORACLES: tuple[Oracle, ...] = (
    deletions,
    secrets,
    finalizers,
    crash,
    no_rest,
    state,
    restarts,
    path_dependence,
    recovery,
    foreign,
    neighbours,
    selection,
    retention,
    notes,
    leader,
    permissions,
    orphans,
    status,
    misoperation,
    configuration,
    copies,
    following,
    effect,
    needless,
    ours,
)
"""In the order in which alarms of one severity are shown."""


def judge(run: Run, reference: Reference) -> list[Alarm]:
    """What all oracles say of a run (also of the reference itself), worst first; nothing if the run says nothing."""
    if run.problem or run.missed:
        return []
    alarms = [alarm for oracle in ORACLES if _asked(oracle, run) for alarm in oracle(run, reference)]
    held = {alarm.object for alarm in alarms if alarm.oracle == "finalizers"}
    alarms = [alarm for alarm in alarms if not (alarm.oracle == "state" and alarm.object in held)]
    alarms = by_itself.lowered(templates.lowered(alarms, run, reference), run)
    return sorted(alarms, key=lambda alarm: SEVERITIES.index(alarm.severity))


_OF_INPUT: tuple[Oracle, ...] = (effect, following, copies, configuration, path_dependence, recovery, misoperation)


def _asked(oracle: Oracle, run: Run) -> bool:
    """What others took from the operator does not follow the custom resource any more."""
    return run.plan.pattern != "edits" or oracle not in _OF_INPUT
