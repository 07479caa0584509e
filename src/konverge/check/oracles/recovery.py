"""After a mistake, the last good request brings the cluster back to where it was."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.model import Alarm, Run, Step
from konverge.check.oracles.desired import Difference, Rested, changed_since, repeats
from konverge.check.oracles.path_dependence import own, sentence, severity
from konverge.check.reference import Reference


def recovery(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Alarms for what stays as the mistake left it. Later turns of the run say nothing once one has failed."""
    if run.plan.perturbations:
        return  # `state` judges what a fault leads to
    for before, now, between in repeats(run):
        mistakes = [step for step in between if step.expect]
        if not mistakes:
            continue
        alarms = [
            _alarm(difference, now, mistakes[-1], between)
            for difference in own(changed_since(before, now, run, reference))
        ]
        yield from alarms
        if any(alarm.severity != "low" for alarm in alarms):
            return


def _alarm(difference: Difference, now: Rested, mistake: Step, between: list[Step]) -> Alarm:
    return Alarm(
        oracle="recovery",
        severity=severity(difference, now.step),
        object=difference.key,
        field=difference.path,
        sentence=f"{sentence(difference)}, although the mistake ({mistake.name}) was taken back",
        step=now.step.name,
        expected=difference.expected,
        actual=difference.actual,
    )
