"""A whole check: the reference, the plans, their runs, and what is wrong.

Plans come by value, the most telling first, and the budget ends the search, not a finding: what was left out is
counted. Ctrl-C ends it as well; what is known by then is reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Protocol

import msgspec

from konverge.check.beginnings import Beginnings
from konverge.check.branches import Branches
from konverge.check.budget import Budget
from konverge.check.collector import what_stays_is_frozen
from konverge.check.conclusion import Conclusion
from konverge.check.differences import Masks
from konverge.check.findings import Evidence, Findings, Group, by_cause, by_chance, first_turn, group_of
from konverge.check.inputs import with_recreation
from konverge.check.missed import Missed
from konverge.check.model import Alarm, Finding, Plan, Run, Setup, Severity, Step, Subject, Task
from konverge.check.names import Names
from konverge.check.oracles import judge as judge_run
from konverge.check.oracles.unused import Used, unused
from konverge.check.planning import OF_INPUT, Planner, faults_only
from konverge.check.plans.tours import apart, is_tour
from konverge.check.real_rest import always_busy_in, limit_after, pauses_after, quiet_after
from konverge.check.reference import Reference, reference_of
from konverge.check.second_look import SecondLook, is_doubtful, seen_once
from konverge.check.shrink import Shrinker
from konverge.check.side_by_side import runs_of
from konverge.check.trunk import can_fork
from konverge.check.undisturbed import last_step, unhealthy, why_no_reference, without_last
from konverge.check.waiting import Waiting

LAST_LINES = 20
MOST_LEFT_OUT = 2
"""Changes of the workload without which the reference is taken again, since it ends with them."""


class CouldNotTest(Exception):
    """The reference did not come about; the message says why and what to do, `log` is the end of the operator's."""

    def __init__(self, reason: str, log: Iterable[str] = ()) -> None:
        super().__init__(reason)
        self.log = list(log)[-LAST_LINES:]


class Runner(Protocol):
    """Carries out tasks: in this process, or in workers. `run` is called from as many threads as there are jobs."""

    jobs: int

    def run(self, task: Task) -> Run: ...

    def cancel(self) -> None:
        """End the runs that other threads have under way; each of them gets a failed one."""


class Listener:
    """Hears how a check goes on. The default says nothing."""

    def progress(self, text: str, done: int = 0, total: int = 0, most: float = math.inf) -> None:
        """What is under way, and the seconds that the budget leaves for it."""

    def found(self, finding: Finding) -> None:
        """A group has its first alarm. It is not confirmed yet."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a check is done."""

    only: tuple[str, ...] = ()
    """Patterns of plans; empty for all."""
    seed: int = 0
    budget: float = 300.0
    """Seconds of wall time."""
    masks: Masks = Masks()
    repeats: int = 1
    """How often a finding is repeated to confirm it: once on virtual time, three times on real time."""
    shrink: bool = True
    least: Severity = "low"
    """What is less than that is reported as it was seen: repeating it takes as long as finding it."""
    until: Severity | None = None
    """The search ends with the first finding that is as bad as that; on real time once it has shown again."""
    unused_rules: bool = False
    """Rules of the operator's roles that no run used are a note: roles that were made from declarations ask for no more
    than those do."""
    quiet: float = 0.0
    limit: float = 0.0


class Performed(msgspec.Struct, kw_only=True):
    """One plan, and what came of it."""

    plan: Plan
    missed: bool = False
    problem: str = ""
    groups: tuple[Group, ...] = ()
    about: str = ""
    """The field of the custom resource whose change raised the alarms, if it was one."""
    cpu: float = 0.0


class Outcome(msgspec.Struct, kw_only=True):
    """Everything that a report is made from."""

    base: Task
    """The reference's task."""
    reference: Reference
    findings: list[Finding] = []
    evidence: list[Evidence] = []
    """For each finding, the run that shows it."""
    performed: list[Performed] = []
    left_out: dict[str, int] = {}
    """Plans that the budget did not allow, by pattern."""
    notes: list[str] = []
    """What else was not tested, and why."""
    seconds: float = 0.0
    searched: float = 0.0
    """Of these, for the plans: the others confirm what they found, and make it smaller."""
    interrupted: bool = False
    stopped: bool = False
    """The search ended with what was found, and not with its time."""


Judge = Callable[[Run, Reference], Iterable[Alarm]]


class Campaign:
    """One check of one operator.

    >>> outcome = Campaign(subject, setup, steps, runner).check()        # doctest: +SKIP
    """

    def __init__(
        self,
        subject: Subject,
        setup: Setup,
        steps: tuple[Step, ...],
        runner: Runner,
        options: Options | None = None,
        *,
        listener: Listener | None = None,
        judge: Judge = judge_run,
        planner: Planner = faults_only,
    ) -> None:
        self._options = options or Options()
        self._runner, self._judge, self._planner = runner, judge, planner
        self._listener = listener or Listener()
        self._used = Used()
        self._without_effect: set[str] = set()
        self._missed = Missed()
        self._second = SecondLook(ends=self._options.until)
        self._beginnings: Beginnings | Branches | None = None
        """Where runs can begin later than with the first step."""
        self._home: Path | None = None
        self._folder: Path | None = None
        """Where those on virtual time branch off; in a home that goes with the check."""
        self._base = Task(
            subject=subject,
            setup=setup,
            steps=steps,
            plan=Plan("reference"),
            seed=self._options.seed,
            quiet=self._options.quiet,
            limit=self._options.limit,
        )

    def check(self) -> Outcome:
        """Raises CouldNotTest."""
        with ExitStack() as stack:
            if self._base.subject.target and self._runner.jobs > 1 and can_fork():  # in workers, that is
                self._home = Path(stack.enter_context(TemporaryDirectory(prefix="konverge-check-")))
            return self._checked()

    def _checked(self) -> Outcome:
        names = Names.of(self._base)
        findings = Findings(names)
        reference = self._reference()
        budget = Budget(self._options.budget)  # for the plans: a slow operator must not use it up undisturbed
        notes: list[str] = []
        while (steps := without_last(self._base.steps, reference.run)) and len(notes) < MOST_LEFT_OUT:
            self._add_reference(findings, reference)
            notes.append(f"left out of all other runs: {last_step(reference.run)!r}, after which nothing goes on")
            self._base = msgspec.structs.replace(
                self._base,
                steps=steps,
                quiet=self._options.quiet,
                limit=self._options.limit,
                pauses={},
                always_busy=(),
            )
            reference = self._reference()
        self._add_reference(findings, reference)
        outcome = Outcome(base=self._base, reference=reference, notes=[*notes, *unhealthy(reference)])
        try:
            with what_stays_is_frozen():
                self._search(outcome, findings, budget)
                if self._options.unused_rules and not self._options.only:
                    findings.add_reference(self._base, reference.run, reference, unused(self._base.setup, self._used))
                self._conclude(outcome, findings, names, budget)
        except KeyboardInterrupt:
            outcome.interrupted = True
            if not outcome.findings:
                for group in findings.groups:
                    outcome.findings.append(findings.finding(group))
                    outcome.evidence.append(findings.evidence(group)[0])
        outcome.seconds = budget.used
        return outcome

    # -------------------------------------------------------------- the reference

    def _add_reference(self, findings: Findings, reference: Reference) -> None:
        findings.add_reference(self._base, reference.run, reference, self._judge(reference.run, reference))

    def _reference(self) -> Reference:
        """Two runs with different seeds: what differs between them is masked."""
        self._listener.progress("the operator runs undisturbed, twice with different seeds")
        again = msgspec.structs.replace(self._base, seed=self._base.seed + 1)
        base = self._base
        if self._home is not None:
            self._folder = Path(mkdtemp(dir=self._home))
            base = msgspec.structs.replace(base, branches=str(self._folder))
        if self._runner.jobs > 1:
            with ThreadPoolExecutor(2, "check") as pool:
                first, second = pool.map(self._undisturbed, (base, again))
        else:
            first, second = self._undisturbed(base), self._undisturbed(again)
        self._learn_rest(first, second)
        first, second = sorted((first, second), key=lambda run: len(run.checkpoints))  # the one that got less far
        return reference_of(first, second, self._options.masks)

    def _learn_rest(self, *runs: Run) -> None:
        """On real time: how long a pause has to be to mean rest."""
        if self._is_program and not self._options.quiet:
            self._base = msgspec.structs.replace(
                self._base,
                quiet=quiet_after(runs),
                pauses=pauses_after(runs),
                always_busy=always_busy_in(runs),
                limit=self._options.limit or limit_after(runs),
            )

    def _undisturbed(self, task: Task) -> Run:
        run = self._runner.run(msgspec.structs.replace(task, snapshots=bool(task.subject.command)))
        self._used.add(run)
        reason = why_no_reference(run)
        if reason:
            raise CouldNotTest(reason, run.log)
        return run

    # -------------------------------------------------------------- the search

    def _search(self, outcome: Outcome, findings: Findings, budget: Budget) -> None:
        planned = self._planner(outcome.reference, self._options.only, self._options.seed)
        if outcome.reference.run.snapshots and planned.plans:
            self._beginnings = Beginnings(self._runner, outcome.reference)
            self._beginnings.try_out(self._base, self._judge)
        elif self._folder is not None:
            self._beginnings = Branches(self._runner, self._base, outcome.reference, self._folder)
        outcome.notes += [f"left out: {sentence}" for sentence in planned.left_out]
        waiting = Waiting(planned.plans, self._second.may_end)
        done, total = 0, len(waiting)
        try:
            with closing(runs_of(self, waiting, budget)) as runs:
                while not self._has_enough(findings) and (ended := next(runs, None)):
                    task, run = ended
                    done += 1
                    more = self._judged(task, run, outcome, findings, budget)
                    waiting.put(more, behind=self._missed.behind(run, self.jobs))  # what it is worth has not changed
                    total += len(more)
                    self._listener.progress(task.plan.pattern, done, total, budget.left_to_search)
        finally:
            for evidence in self._second.left():
                self._note_once_seen(evidence, outcome, findings)
            outcome.left_out = waiting.left_out()
            outcome.searched, outcome.stopped = budget.used, self._has_enough(findings)

    def _has_enough(self, findings: Findings) -> bool:
        until = self._options.until
        return until is not None and findings.has(until, lasting=self._is_program)

    def _judged(self, task: Task, run: Run, outcome: Outcome, findings: Findings, budget: Budget) -> list[Plan | Task]:
        """Notes what a run shows.

        What a chain of changes had behind its first alarm is left for another run, and a change without effect is
        tried on a new custom resource: both come back as plans. What failed requests led to comes back as a task, and
        is noted after that. What did not come to pass is tried again. Of a tour, what may have led to alarms comes
        back as plans of one change each.
        """
        self._used.add(run)
        alarms = list(self._judge(run, outcome.reference))
        if run.missed and not alarms and not task.patience and self._is_program and self._missed.may_come(run):
            return [task.plan]
        if is_tour(task.plan) and (fresh := findings.fresh(alarms)):
            return list(apart(task.plan, fresh))
        more: list[Plan | Task] = []
        if task.plan.pattern in OF_INPUT:
            alarms, rest = first_turn(run, alarms)
            more = [*self._with_recreation(task.plan, alarms), *([rest] if rest is not None else [])]
        if not run.plan.perturbations:
            alarms, chance = by_chance(alarms)
            findings.forget(chance)
        if task.patience:
            self._judged_again(task, run, alarms, outcome, findings, budget.used)
            return more
        fresh = findings.fresh(alarms)
        doubtful = [] if run.plan.perturbations else [alarm for alarm in fresh if is_doubtful(run, alarm)]
        again = self._second.at(task, run, outcome.reference, doubtful or fresh, budget.used)
        if again is not None:
            more.append(again.task)
        if again is None or not again.held or doubtful:
            sure = alarms if again is None else [alarm for alarm in alarms if alarm not in doubtful]
            self._note(task, run, sure, outcome, findings, budget.used)
        return more

    def _judged_again(
        self, task: Task, run: Run, alarms: Sequence[Alarm], outcome: Outcome, findings: Findings, after: float
    ) -> None:
        """Notes what the second look at a run shows. If it could not be had, what has waited for it counts."""
        first, same, alarms = self._second.judged(task, run, outcome.reference, findings.fresh(alarms))
        if run.missed or run.problem:
            if first is not None:
                self._note_once_seen(first, outcome, findings)
            return
        if not same:  # whatever else it shows is seen for the first time
            task = msgspec.structs.replace(task, patience=0.0)
        if first is not None and task.plan.perturbations:
            self._note(task, run, alarms, outcome, findings, after)
        else:  # the first run is counted already
            self._add(task, run, alarms, outcome, findings, after)

    def _note(
        self, task: Task, run: Run, alarms: Sequence[Alarm], outcome: Outcome, findings: Findings, after: float
    ) -> None:
        outcome.performed.append(_performed(run, alarms))
        self._add(task, run, alarms, outcome, findings, after)

    def _add(
        self, task: Task, run: Run, alarms: Sequence[Alarm], outcome: Outcome, findings: Findings, after: float
    ) -> None:
        for mine in by_cause(run, alarms):
            first = findings.add(task, run, outcome.reference, mine, after=after)
            if first is not None:
                self._listener.found(first)

    def _note_once_seen(self, evidence: Evidence, outcome: Outcome, findings: Findings) -> None:
        note = self._note if evidence.task.plan.perturbations else self._add  # the others are counted already
        note(evidence.task, evidence.run, seen_once(evidence.alarms), outcome, findings, evidence.after)

    def _with_recreation(self, plan: Plan, alarms: Iterable[Alarm]) -> Iterator[Plan]:
        """For every field whose change had no effect and should have had one, once."""
        for alarm in alarms:
            if alarm.oracle == "effect" and alarm.severity != "low" and alarm.field not in self._without_effect:
                self._without_effect.add(alarm.field)
                made = with_recreation(plan, alarm.step)
                if made is not None:
                    yield made

    @property
    def jobs(self) -> int:
        return self._runner.jobs

    @property
    def _is_program(self) -> bool:
        """It runs on real time, and is never twice the same."""
        return bool(self._base.subject.command)

    def task(self, plan: Plan | Task) -> Task:
        """What is run for a plan."""
        if isinstance(plan, Task):
            return plan
        if self._beginnings is not None:
            plan = self._beginnings.plan(plan)
        return msgspec.structs.replace(self._base, plan=plan)

    def run(self, task: Task) -> Run:
        """A second look is at a whole run, from the first step."""
        runner = self._runner if task.patience or self._beginnings is None else self._beginnings
        return runner.run(task)

    def cancel(self) -> None:
        """End what is under way."""
        self._runner.cancel()
        if isinstance(self._beginnings, Branches):
            self._beginnings.cancel()

    # -------------------------------------------------------------- what is known in the end

    def _conclude(self, outcome: Outcome, findings: Findings, names: Names, budget: Budget) -> None:
        """Repeats what was found, and makes it smaller; what there is no time for is reported as it was seen."""
        options = self._options
        shrinker = Shrinker(
            self._runner,
            self._judge,
            names,
            budget,
            repeats=options.repeats,
            trials=self._beginnings if isinstance(self._beginnings, Branches) else None,
        )
        conclusion = Conclusion(
            shrinker, findings, budget, self._runner.jobs, shrink=options.shrink, least=options.least
        )
        try:
            conclusion.draw(self._confirming(budget))
        finally:
            for finding, evidence in conclusion.ranked():
                outcome.findings.append(finding)
                outcome.evidence.append(evidence)

    def _confirming(self, budget: Budget) -> Callable[[int, int], None]:
        return lambda done, total: self._listener.progress("confirming findings", done, total, budget.left)


def _performed(run: Run, alarms: Iterable[Alarm]) -> Performed:
    alarms = list(alarms)
    groups = tuple(dict.fromkeys(group_of(alarm) for alarm in alarms))
    steps = {step.name: step.about for step in run.steps}
    about = next((steps.get(alarm.step, "") for alarm in alarms), "")
    return Performed(plan=run.plan, missed=run.missed, problem=run.problem, groups=groups, about=about, cpu=run.cpu)
