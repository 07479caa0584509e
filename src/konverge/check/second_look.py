"""What a run on real time shows is looked at again during the search: the same run is made once more, with patience.

What a failed request led to counts only if it lasts, and for less where the checker could not look again. Programs that
look at their objects every half minute try again then what failed; a run that is judged before has alarms of what the
request was for. The same holds for pods that are not as asked for while the workload says that it is not done: some
replace one in each pass. What else is high is noted at once, and looked at again all the same: whole runs take long,
and in the last minutes of a check there is time for few of them.

Where the search ends with a finding, it is one that has shown again: whatever would end it is looked at again, and no
plan is begun meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from konverge.check.findings import Evidence, Group, cause_of
from konverge.check.model import SEVERITIES, Alarm, Run, Severity, Task, encode
from konverge.check.oracles.unfinished import is_unfinished
from konverge.check.reference import Reference
from konverge.check.shrink import may_retry, patient

MOST_LOOKS = 2
"""At what would end the search and does not show again: no plan is begun meanwhile."""


class Again(NamedTuple):
    """What is to be run, and whether the alarms have to wait for it."""

    task: Task
    held: bool


class Looked(NamedTuple):
    """What came of it: the evidence of the first run, if that has waited, whether the second shows the same, and the
    alarms of the second that are new: where nothing went wrong, the others are noted already."""

    first: Evidence | None
    same: bool
    alarms: Sequence[Alarm]


class SecondLook:
    """Keeps the evidence that waits for its second run."""

    def __init__(self, ends: Severity | None = None) -> None:
        """`ends`: the search ends with what is as bad as that, if it lasts."""
        self._ends = ends
        self._waiting: dict[bytes, Evidence] = {}
        self._causes: dict[bytes, Group] = {}
        """Of the tasks that are run again."""
        self._lasting: set[Group] = set()
        self._ending: dict[bytes, Group] = {}
        """Of the tasks that are run again now, and may end the search."""
        self._looks: Counter[Group] = Counter()

    def may_end(self) -> bool:
        """Whether a look is under way with which the search may end."""
        return bool(self._ending)

    def at(self, task: Task, run: Run, reference: Reference, alarms: Sequence[Alarm], after: float) -> Again | None:
        """How the alarms of a run are looked at again; None if that is not worth a run.

        A cause that has lasted once needs no other look; where nothing failed, one look at each is enough.
        """
        if task.patience or not task.subject.command or not alarms:
            return None
        evidence = Evidence(task, run, reference, alarms, after=after)
        doubtful, cause = is_doubtful(run, evidence.first), cause_of(evidence)
        held = doubtful or (may_retry(task) and evidence.first.severity != "low")
        ends = self._may_end_with(evidence.first, cause)
        if not ends and (cause in self._lasting or not (held or self._is_worth_it(evidence, cause))):
            return None
        again = patient(evidence.task)
        key = encode(again)
        self._causes[key] = cause
        if ends:
            self._ending[key] = cause
            self._looks[cause] += 1
        if held:
            self._waiting[key] = evidence
        return Again(again, held=held)

    def _may_end_with(self, alarm: Alarm, cause: Group) -> bool:
        if self._ends is None or SEVERITIES.index(alarm.severity) > SEVERITIES.index(self._ends):
            return False
        return cause not in self._ending.values() and self._looks[cause] < MOST_LOOKS

    def _is_worth_it(self, evidence: Evidence, cause: Group) -> bool:
        """After a fault, once for each cause that is high."""
        disturbed = bool(evidence.task.plan.perturbations)
        return disturbed and evidence.first.severity == "high" and cause not in self._causes.values()

    def judged(self, task: Task, run: Run, reference: Reference, alarms: Sequence[Alarm]) -> Looked:
        """After a second run."""
        key = encode(task)
        self._ending.pop(key, None)
        cause = self._causes.get(key)
        if not task.plan.perturbations:
            alarms = [alarm for alarm in alarms if cause_of(Evidence(task, run, reference, [alarm])) == cause]
        same = bool(alarms) and cause_of(Evidence(task, run, reference, alarms)) == cause
        if same:
            self._lasting.add(self._causes[key])
        return Looked(self._waiting.pop(key, None), same, alarms)

    def left(self) -> list[Evidence]:
        """What there was no time to look at again."""
        left = list(self._waiting.values())
        self._waiting.clear()
        return left


def is_doubtful(run: Run, alarm: Alarm) -> bool:
    """It may only have needed more time."""
    return alarm.severity != "low" and is_unfinished(run, alarm)


def seen_once(alarms: Sequence[Alarm]) -> list[Alarm]:
    """What has to last, where the checker could not look again: a step less severe."""
    less: dict[Severity, Severity] = {"high": "medium", "medium": "low", "low": "low"}
    return [msgspec.structs.replace(alarm, severity=less[alarm.severity]) for alarm in alarms]
