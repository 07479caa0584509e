"""What is known in the end: findings are repeated, made smaller, and put in order.

All are repeated before any is made smaller, the worst first: that a finding is true matters more than that it is
small. On real time what never showed again is a note, whatever it would mean, and comes last; what was gone when the
operator had tried again is none.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import msgspec

from konverge.check.budget import GRACE, Budget
from konverge.check.findings import Evidence, Findings, Group
from konverge.check.model import SEVERITIES, Alarm, Finding, Severity
from konverge.check.shrink import Shrinker

Known = tuple[Finding, Evidence]


class Conclusion:
    """The findings of a search, as far as they are known. `ranked` may be asked for at any time."""

    def __init__(
        self,
        shrinker: Shrinker,
        findings: Findings,
        budget: Budget,
        jobs: int,
        *,
        shrink: bool = True,
        least: Severity = "low",
    ) -> None:
        self._shrinker, self._budget, self._jobs, self._shrinks = shrinker, budget, jobs, shrink
        self._least = SEVERITIES.index(least)
        self._every = {group: findings.evidence(group) for group in findings.groups}
        self._known = {group: (findings.finding(group), every[0]) for group, every in self._every.items()}

    def draw(self, progress: Callable[[int, int], None]) -> None:
        """Repeat all, then make smaller what showed again, as long as there is time."""
        disturbed = [group for group, known in self._known.items() if self._is_repeated(*known)]
        disturbed.sort(key=lambda group: rank(*self._known[group]))
        total = len(disturbed) * (2 if self._shrinks else 1)
        self._each(disturbed, self._confirm, lambda done: progress(done, total))
        if self._shrinks:
            again = [group for group in disturbed if group in self._known and self._known[group][0].confirmed[0]]
            again.sort(key=lambda group: rank(*self._known[group]))
            self._each(again, self._shrink, lambda done: progress(len(disturbed) + done, total))

    def _is_repeated(self, finding: Finding, evidence: Evidence) -> bool:
        return _is_disturbed(evidence) and SEVERITIES.index(finding.alarm.severity) <= self._least

    def ranked(self) -> list[Known]:
        """The worst first."""
        return sorted(self._known.values(), key=lambda item: rank(*item))

    def _each(
        self, groups: Sequence[Group], work: Callable[[Group], Known | None], progress: Callable[[int], None]
    ) -> None:
        """Several at once, if there are several jobs. What does not end in time stays as it was."""
        if self._jobs <= 1:
            for number, group in enumerate(groups, 1):
                self._take(group, work(group))
                progress(number)
            return
        pool = ThreadPoolExecutor(self._jobs, "conclude")
        try:
            waiting: dict[Future[Known | None], Group] = {pool.submit(work, group): group for group in groups}
            while waiting:
                ended, _ = wait(waiting, max(self._budget.left + GRACE, 0.0), FIRST_COMPLETED)
                if not ended:
                    return
                for future in ended:
                    self._take(waiting.pop(future), future.result())
                progress(len(groups) - len(waiting))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _take(self, group: Group, known: Known | None) -> None:
        if known is None:
            del self._known[group]
        else:
            self._known[group] = known

    def _confirm(self, group: Group) -> Known | None:
        finding = copy.copy(self._known[group][0])
        evidence = self._shrinker.confirm(finding, self._every[group])
        if evidence is None:
            return None
        shown, tried = finding.confirmed
        if tried and not shown:
            finding.alarm = msgspec.structs.replace(finding.alarm, severity="low")
        return finding, evidence

    def _shrink(self, group: Group) -> Known:
        known, evidence = self._known[group]
        finding = copy.copy(known)
        return finding, self._shrinker.shrink(finding, evidence)


def _is_disturbed(evidence: Evidence) -> bool:
    return evidence.task.plan.pattern != "reference"


def rank(finding: Finding, evidence: Evidence) -> tuple[bool, int, bool, bool, float, int, bool]:
    """Findings in the order of what they are worth to a reader.

    What never showed again is last; then the severity counts; then what needs no fault at all, since every user meets
    it; then what loses data; then what always shows again; then in how many runs it was seen. Labels and annotations
    are behind what they are about.
    """
    shown, tried = finding.confirmed
    return (
        tried > 0 and not shown,
        SEVERITIES.index(finding.alarm.severity),
        _is_disturbed(evidence),
        not _loses_data(finding.alarm),
        -shown / tried if tried else -0.5,
        -finding.runs,
        "metadata." in finding.alarm.field,
    )


def _loses_data(alarm: Alarm) -> bool:
    """A claim, a volume or a Secret is deleted, gone, or has another value than those who use it know."""
    precious = alarm.object.startswith(("persistentvolumeclaims ", "persistentvolumes ", "secrets "))
    if alarm.oracle in ("deletion", "secrets"):
        return precious
    gone = alarm.field == "metadata.deletionTimestamp" or (not alarm.field and alarm.actual == 0)
    return alarm.oracle == "state" and precious and gone
