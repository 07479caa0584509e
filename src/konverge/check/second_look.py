"""What a failed request led to counts only if it lasts: the same run is made again, at once, and with patience.

Programs that look at their objects every half minute try again then what failed. A run that is judged before that has
alarms of whatever the request was for, and a search that kept them all would have to repeat them in its last minutes.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.check.findings import Evidence, Group, cause_of
from konverge.check.model import Alarm, Run, Task, encode
from konverge.check.reference import Reference
from konverge.check.shrink import may_retry, patient


class SecondLook:
    """Keeps the evidence that waits for its second run."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, Evidence] = {}
        self._lasting: set[Group] = set()

    def at(self, task: Task, run: Run, reference: Reference, alarms: Sequence[Alarm], after: float) -> Task | None:
        """What is to be run before the alarms of a run count; None if they do.

        A cause that has lasted once needs no other second run, and notes are not worth one.
        """
        if task.patience or not may_retry(task) or all(alarm.severity == "low" for alarm in alarms):
            return None
        evidence = Evidence(task, run, reference, alarms, after=after)
        if cause_of(evidence) in self._lasting:
            return None
        again = patient(evidence.task)
        self._waiting[encode(again)] = evidence
        return again

    def judged(self, task: Task, run: Run, reference: Reference, alarms: Sequence[Alarm]) -> Evidence | None:
        """After a second run: the evidence of the first, if the second says nothing about it."""
        first = self._waiting.pop(encode(task), None)
        if run.missed or run.problem:
            return first
        if any(alarm.severity != "low" for alarm in alarms):
            self._lasting.add(cause_of(Evidence(task, run, reference, alarms)))
        return None

    def left(self) -> list[Evidence]:
        """What there was no time to look at again."""
        left = list(self._waiting.values())
        self._waiting.clear()
        return left
