"""What happens while nothing is done but wait: schedules come round, lifetimes end, tokens are refreshed.

The state after it is compared with one of an hour before, so that all of this differs, rightly or not: it is a note.
But no lifetime ends for what holds data or serves users: a StatefulSet, a claim or a Service that goes because time
passes is as bad as at any other time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from konverge.check.folding import folded
from konverge.check.model import Alarm, Change, Checkpoint, Run, TimePasses
from konverge.check.oracles.deletions import PRECIOUS
from konverge.check.oracles.history import deletions_begun, key, owned_by
from konverge.check.reference import base_step

_ORACLES = frozenset(("state", "deletion", "secrets"))
_LASTING = (PRECIOUS - {"/secrets"}) | {"/services", "apps/daemonsets"}
_REFRESHED = ("data", "metadata.annotations")
"""A value of a Secret, and what is noted of it: until when it is valid."""


def lowered(alarms: Iterable[Alarm], run: Run) -> list[Alarm]:
    """What an operator did by itself in a run in which nothing goes wrong but that time passes is low."""
    known = _ByItself(run) if _only_waits(run) else None
    return [
        msgspec.structs.replace(alarm, severity="low") if known is not None and known.explains(alarm) else alarm
        for alarm in alarms
    ]


def _only_waits(run: Run) -> bool:
    plan = run.plan.perturbations
    return bool(plan) and all(isinstance(item, TimePasses) and not item.away for item in plan)


class _ByItself:
    def __init__(self, run: Run) -> None:
        self._begun = deletions_begun(run)
        self._objects: set[str] = set()
        """What was made or deleted, with what belongs to it."""
        self._lost: set[str] = set()
        self._fields: set[tuple[str, str]] = set()
        for before, after in _waits(run):
            for change in run.changes:
                if before.revision < change.revision <= after.revision:
                    self._note(change, before, after)

    def explains(self, alarm: Alarm) -> bool:
        if alarm.oracle not in _ORACLES or alarm.object in self._lost:
            return False
        return alarm.object in self._objects or (alarm.object, alarm.field) in self._fields

    def _note(self, change: Change, before: Checkpoint, after: Checkpoint) -> None:
        name = str(change.ref)
        if change.moment.type == "MODIFIED":
            if change.writer == "operator" and change.ref.resource == "/secrets":
                paths = (path for path, _, _ in change.differences)
                self._fields.update((key(change), path) for path in paths if path.startswith(_REFRESHED))
            return
        if change.ref.resource in _LASTING and name in before.state:
            self._lost.add(key(change))  # or made again, which is no better
        if self._is_by_itself(change):
            self._objects.add(key(change))
            for state in (before.state, after.state):
                owned = owned_by(state[name], state) if name in state else ()
                self._objects.update(folded(child) for child, _ in owned)

    def _is_by_itself(self, change: Change) -> bool:
        """By the operator; or a Job, which the cluster makes by a schedule and deletes some time after its end."""
        begun = self._begun.get(change.uid, change) if change.moment.type == "DELETED" else change
        return begun.writer == "operator" or change.ref.resource == "batch/jobs"


def _waits(run: Run) -> Iterator[tuple[Checkpoint, Checkpoint]]:
    """The states before and after."""
    return (pair for pair in pairwise(run.checkpoints) if pair[1].step != base_step(pair[1]))
