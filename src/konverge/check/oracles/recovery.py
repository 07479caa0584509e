"""After a mistake, the last good request brings the cluster back to where it was."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.check.folding import folded
from konverge.check.model import Alarm, Run, Step
from konverge.check.oracles.desired import Difference, Rested, changed_since, is_own, repeats
from konverge.check.oracles.history import owned_by
from konverge.check.oracles.path_dependence import is_again, is_fixed, is_generated, own, sentence, severity
from konverge.check.reference import Reference


def recovery(run: Run, reference: Reference) -> Iterator[Alarm]:
    """Alarms for what stays as the mistake left it. Later turns of the run say nothing once one has failed."""
    if run.plan.perturbations:
        return  # `state` judges what a fault leads to
    for before, now, between in repeats(run):
        mistakes = [step for step in between if step.expect]
        if not mistakes:
            continue
        again = is_again(between)
        alarms = [
            _alarm(difference, now, mistakes[-1], held=again and is_fixed(difference))
            for difference in own(changed_since(before, now, run, reference, again=again))
            if not again or (_is_of_it(difference, before, now) and not is_generated(difference, now))
        ]
        yield from alarms
        if any(alarm.severity != "low" for alarm in alarms):
            return


def _is_of_it(difference: Difference, before: Rested, now: Rested) -> bool:
    """Whether it is about what was corrected, or what that owns. Others were created while the mistake was there, and
    may keep what they took from it."""
    for state in (before.checkpoint.state, now.checkpoint.state):
        for key, obj in state.items():
            if is_own(key, now.step):
                names = {key, *(name for name, _ in owned_by(obj, state))}
                if difference.key in map(folded, names):
                    return True
    return False


def _alarm(difference: Difference, now: Rested, mistake: Step, *, held: bool) -> Alarm:
    """`held`: Kubernetes itself forbids to change it, and what was never well had nothing to lose."""
    return Alarm(
        oracle="recovery",
        severity="low" if held else severity(difference, now.step),
        object=difference.key,
        field=difference.path,
        sentence=f"{sentence(difference)}, although the mistake ({mistake.name}) was taken back",
        step=now.step.name,
        expected=difference.expected,
        actual=difference.actual,
    )
