"""A finding is shown again before it is reported, and made as small as it can be: perturbations, steps, fields.

Whatever is left away, the run must still raise an alarm of the finding's group, beside a reference of the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from konverge.check.budget import Budget
from konverge.check.findings import Evidence, described, group_of, with_steps
from konverge.check.model import (
    Alarm,
    Apply,
    Edit,
    Finding,
    Obj,
    OperatorAway,
    Plan,
    Run,
    Task,
    TimePasses,
    encode,
)
from konverge.check.names import Names
from konverge.check.reference import Reference

MOST_TRIALS, MOST_REAL_TRIALS = 24, 4
"""On virtual time, and on real time, where each takes its seconds."""


class _Runner(Protocol):
    def run(self, task: Task) -> Run: ...


Judge = Callable[[Run, Reference], Iterable[Alarm]]


class Shrinker:
    """Repeats findings and makes them smaller, as long as there is time."""

    def __init__(self, runner: _Runner, judge: Judge, names: Names, budget: Budget, *, repeats: int) -> None:
        self._runner, self._judge, self._names = runner, judge, names
        self._budget, self._repeats = budget, repeats
        self._references: dict[bytes, Reference] = {}

    def confirm(self, finding: Finding, every: Sequence[Evidence]) -> Evidence:
        """Notes how often the finding showed again; the result is the evidence that did, or the first.

        What several plans have shown needs one repetition, and what one plan alone has shown two that show it again;
        where a plan does not show it, the next one is tried. A note is repeated once.
        """
        enough = 1 if len(every) > 1 else 2
        most = 1 if finding.alarm.severity == "low" else self._repeats
        shown: list[Evidence] = []
        tried = 0
        while tried < most and len(shown) < enough and not self._budget.over:
            evidence = every[tried % len(every)]
            tried += 1
            again = self._again(evidence.task, evidence)
            if again is not None:
                shown.append(again)
        finding.confirmed = (len(shown), tried)
        return self._taken(finding, shown[0]) if shown else every[0]

    def shrink(self, finding: Finding, evidence: Evidence) -> Evidence:
        """The smallest evidence that still shows the finding, which is changed to it."""
        return self._taken(finding, self._shrunk(evidence))

    def _taken(self, finding: Finding, evidence: Evidence) -> Evidence:
        finding.task, finding.alarm = evidence.task, evidence.first
        finding.sentence = described(evidence, self._names)
        return evidence

    def _shrunk(self, evidence: Evidence) -> Evidence:
        most = MOST_REAL_TRIALS if evidence.task.subject.command else MOST_TRIALS
        trials = 0
        smaller = True
        while smaller:
            smaller = False
            for task in candidates(evidence):
                trials += 1
                if trials > most or self._budget.over:
                    return evidence
                again = self._again(task, evidence)
                if again is not None:
                    evidence, smaller = again, True
                    break
        return evidence

    def _again(self, task: Task, like: Evidence) -> Evidence | None:
        """The evidence of another run, if it shows an alarm of the same group."""
        reference = self._reference(task, like)
        if reference is None:
            return None
        run = self._runner.run(task)
        if run.missed or run.problem:
            return None
        alarms = list(self._judge(run, reference))
        same = [alarm for alarm in alarms if group_of(alarm) == group_of(like.first)]
        return Evidence(task, run, reference, [same[0]]) if same else None

    def _reference(self, task: Task, like: Evidence) -> Reference | None:
        """What a run of these steps is compared with. A workload that only ends earlier needs no other."""
        steps, known = task.steps, like.reference.run.steps
        if task.plan.steps is not None or steps == known[: len(steps)]:
            return like.reference
        key = encode(steps)
        if key not in self._references:
            undisturbed = msgspec.structs.replace(task, plan=Plan("reference"))
            run = self._runner.run(undisturbed)
            if run.problem or not all(checkpoint.rested for checkpoint in run.checkpoints):
                return None
            self._references[key] = Reference(run=run, masks=like.reference.masks, varying=like.reference.varying)
        return self._references[key]


def candidates(evidence: Evidence) -> Iterator[Task]:
    """Smaller tasks, those that leave away most first."""
    task = evidence.task
    yield from _fewer_steps(evidence)
    perturbations = task.plan.perturbations
    if len(perturbations) > 1:
        for index in range(len(perturbations)):
            fewer = perturbations[:index] + perturbations[index + 1 :]
            yield msgspec.structs.replace(task, plan=msgspec.structs.replace(task.plan, perturbations=fewer))
    yield from _plainer_objects(task)


def _fewer_steps(evidence: Evidence) -> Iterator[Task]:
    task, steps = evidence.task, evidence.run.steps
    names = [step.name for step in steps]
    last = evidence.first.step.removesuffix(", then")
    needed = names.index(last) + 1 if last in names else len(steps)
    if needed < len(steps):
        yield with_steps(task, steps[:needed])
        return
    if any(isinstance(item, Edit | TimePasses | OperatorAway) for item in task.plan.perturbations):
        return  # they name steps by number
    about = steps[needed - 1].about
    of_field = tuple(step for number, step in enumerate(steps) if number == 0 or step.about == about)
    if about and len(of_field) < len(steps):
        yield with_steps(task, of_field)
    for index in range(len(steps) - 1):
        yield with_steps(task, steps[:index] + steps[index + 1 :])


def _plainer_objects(task: Task) -> Iterator[Task]:
    """Each step's object with one of the fields as they were in the first step: towards the sample."""
    steps = task.plan.steps
    if steps is None or not steps or not isinstance(steps[0].actions[0], Apply):
        return
    sample = steps[0].actions[0].object
    for number, step in enumerate(steps[1:], 1):
        for index, action in enumerate(step.actions):
            if not isinstance(action, Apply) or action.object.get("kind") != sample.get("kind"):
                continue
            for plainer in _towards(sample, action.object):
                actions = (*step.actions[:index], Apply(plainer), *step.actions[index + 1 :])
                changed = msgspec.structs.replace(step, actions=actions)
                yield with_steps(task, (*steps[:number], changed, *steps[number + 1 :]))


def _towards(sample: Obj, obj: Obj) -> Iterator[Obj]:
    """The object with one field of its spec as in the sample, where several differ."""
    ours, theirs = obj.get("spec", {}), sample.get("spec", {})
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return
    differing = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    if len(differing) < 2:
        return
    for key in differing:
        spec: dict[str, Any] = {name: value for name, value in ours.items() if name != key}
        if key in theirs:
            spec[key] = theirs[key]
        yield {**obj, "spec": spec}
