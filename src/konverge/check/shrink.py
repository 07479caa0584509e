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
    ApplicationFault,
    Apply,
    Delete,
    Finding,
    Obj,
    Plan,
    Refuse,
    Run,
    Step,
    Task,
    encode,
)
from konverge.check.names import Names
from konverge.check.reference import Reference

MOST_TRIALS, MOST_REAL_TRIALS = 24, 4
"""On virtual time, and on real time, where each takes its seconds."""
RESYNC = 35.0
"""Seconds in which a program looks at its objects again, if it does so every half minute as many do."""
RETRY = 65.0
"""Seconds in which a program tries again what failed: kopf waits for 60, controllers on kube-rs often for 30. No
undisturbed run has such a pause, so it cannot be learned from one."""


class _Runner(Protocol):
    def run(self, task: Task) -> Run: ...


Judge = Callable[[Run, Reference], Iterable[Alarm]]


class Shrinker:
    """Repeats findings and makes them smaller, as long as there is time."""

    def __init__(
        self,
        runner: _Runner,
        judge: Judge,
        names: Names,
        budget: Budget,
        *,
        repeats: int,
        trials: _Runner | None = None,
    ) -> None:
        """`trials` carries out what only makes a finding smaller, and what repeats a note; else `runner` does."""
        self._runner, self._judge, self._names = runner, judge, names
        self._trials = trials or runner
        self._budget, self._repeats = budget, repeats
        self._references: dict[bytes, Reference] = {}

    def confirm(self, finding: Finding, every: Sequence[Evidence]) -> Evidence | None:
        """Notes how often the finding showed again; the result is the evidence that did, or the first.

        What several plans have shown needs one repetition, and what one plan alone has shown two that show it again;
        where a plan does not show it, the next one is tried. A note is repeated once. On real time the first is tried
        with the steps that probably matter alone: if that shows it, it is shorter to repeat and to read; if not, it
        says nothing. The operator has time to repair it, and after a failed request more of it, to try again: what
        lasts then is shown by one such run, and None says that nothing did, whatever of it failed. What the search has
        looked at twice needs no more.
        """
        lasted = next((evidence for evidence in every if evidence.task.patience), None)
        if lasted is not None:  # the search has looked twice
            finding.confirmed = (1, 1)
            return self._taken(finding, lasted)
        shorter = self._shorter(every[0])
        surely = len(every) > 1 or (shorter is not None and may_retry(shorter.task))
        is_note = finding.alarm.severity == "low"
        enough, most = 1 if surely else 2, 1 if is_note else self._repeats
        shown: list[Evidence] = [] if shorter is None else [shorter]
        tried, healed = len(shown), 0
        while tried - healed < most and len(shown) < enough and healed < len(every) and not self._budget.over:
            evidence = shorter or every[tried % len(every)]
            tried += 1
            runner = self._trials if is_note else self._runner
            made, again = self._repeated(patient(evidence.task), evidence, runner)
            healed += may_retry(evidence.task) and made and again is None
            if again is not None:
                shown.append(again)
                enough = 1 if may_retry(evidence.task) else enough
        finding.confirmed = (len(shown), tried)
        if shown:
            return self._taken(finding, shown[0])
        return None if healed == len(every) else every[0]

    def _shorter(self, evidence: Evidence) -> Evidence | None:
        """The finding with the first step and those of the changed field alone, if that is enough to show it."""
        steps = None if not evidence.task.subject.command or self._budget.over else _of_field(evidence)
        for task in () if steps is None else _with(evidence, steps):
            return self._again(patient(task), evidence)
        return None

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
        return self._repeated(task, like, self._trials)[1]

    def _repeated(self, task: Task, like: Evidence, runner: _Runner) -> tuple[bool, Evidence | None]:
        """Whether the task could be done again, and what shows the same."""
        reference = self._reference(task, like)
        if reference is None:
            return False, None
        run = runner.run(task)
        if run.missed or run.problem:
            return False, None
        alarms = list(self._judge(run, reference))
        same = [alarm for alarm in alarms if group_of(alarm) == group_of(like.first)]
        return True, Evidence(task, run, reference, [same[0]]) if same else None

    def _reference(self, task: Task, like: Evidence) -> Reference | None:
        """What a run of these steps is compared with. A workload that only ends earlier needs no other."""
        steps, known = task.steps, like.reference.run.steps
        if task.plan.steps is not None or steps == known[: len(steps)]:
            return like.reference
        key = encode(steps)
        if key not in self._references:
            undisturbed = msgspec.structs.replace(task, plan=Plan("reference"), patience=0.0)
            run = self._trials.run(undisturbed)
            if run.problem or not all(checkpoint.rested for checkpoint in run.checkpoints):
                return None
            self._references[key] = Reference(run=run, masks=like.reference.masks, varying=like.reference.varying)
        return self._references[key]


def may_retry(task: Task) -> bool:
    """Something fails that a program tries again after a while. On virtual time there is no rest before it does."""
    fails = any(isinstance(item, Refuse | ApplicationFault) for item in task.plan.perturbations)
    return fails and bool(task.subject.command)


def patient(task: Task) -> Task:
    """The task with time for the operator to repair what its last step leaves behind, on real time."""
    if not task.subject.command:
        return task
    return msgspec.structs.replace(task, patience=RETRY if may_retry(task) else RESYNC)


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
    last = _last(evidence)
    if last < len(evidence.run.steps) - 1:
        yield from _with(evidence, range(last + 1))
        return
    of_field = _of_field(evidence)
    if of_field is not None:
        yield from _with(evidence, of_field)
    for index in range(last):
        yield from _with(evidence, [number for number in range(last + 1) if number != index])


def _last(evidence: Evidence) -> int:
    """The number of the alarm's step; where it has none, of the last."""
    names = [step.name for step in evidence.run.steps]
    name = evidence.first.step.removesuffix(", then")
    return names.index(name) if name in names else len(names) - 1


def _of_field(evidence: Evidence) -> list[int] | None:
    """The first step, those up to the alarm's that change the same field, and a deletion between them; None if these
    are all."""
    steps, last = evidence.run.steps, _last(evidence)
    about = steps[last].about
    numbers = [number for number in range(last + 1) if number == 0 or steps[number].about == about]
    if last > 0 and _deletes(steps[last - 1]):  # the same object is recreated
        numbers = sorted({*numbers, last - 1})
    return numbers if about and len(numbers) < len(steps) else None


def _deletes(step: Step) -> bool:
    return any(isinstance(action, Delete) for action in step.actions)


def _with(evidence: Evidence, numbers: Sequence[int]) -> Iterator[Task]:
    """The task with these steps alone; nothing if something goes wrong in one of the others."""
    places = {old: new for new, old in enumerate(numbers)}
    perturbations: list[Any] = []
    for item in evidence.task.plan.perturbations:
        named = {name: getattr(item, name) for name in ("step", "last") if hasattr(item, name)}
        if any(number not in places for number in named.values()):
            return
        perturbations.append(msgspec.structs.replace(item, **{name: places[number] for name, number in named.items()}))
    plan = msgspec.structs.replace(evidence.task.plan, perturbations=tuple(perturbations))
    task = msgspec.structs.replace(evidence.task, plan=plan)
    yield with_steps(task, tuple(evidence.run.steps[number] for number in numbers))


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
