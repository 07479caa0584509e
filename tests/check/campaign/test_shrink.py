"""Findings made smaller: which workloads are tried, and what a repetition with a short one is worth."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from konverge.check.budget import Budget
from konverge.check.findings import Evidence
from konverge.check.model import (
    Alarm,
    ApplicationFault,
    Crash,
    Delete,
    Edit,
    Finding,
    OperatorAway,
    Perturbation,
    Place,
    Plan,
    Ref,
    Run,
    Step,
    Subject,
    Task,
)
from konverge.check.names import Names
from konverge.check.reference import Reference
from konverge.check.shrink import RESYNC, Shrinker, candidates
from tests.check.campaign.test_findings import REFERENCE, STEPS, alarm, run_of, task_of

CRASH = Crash(Place("create", "/pods", "default", "x"))
REF = Ref("/pods", "default", "x")
PROGRAM = Subject(command=("./manager",))


def evidence(step: str, *perturbations: Perturbation, subject: Subject = PROGRAM) -> Evidence:
    """An alarm of a step, in a run with all of them."""
    plan = Plan("crash", perturbations)
    task = msgspec.structs.replace(task_of(plan), subject=subject)
    return Evidence(task, run_of(plan), REFERENCE, [alarm("pods default/x", step)])


def workloads(tasks: Iterable[Task]) -> list[list[str]]:
    return [[step.name for step in task.steps] for task in tasks]


class Runner:
    """Shows the alarm in runs of these workloads alone."""

    def __init__(self, *shown: tuple[str, ...]) -> None:
        self.shown = shown
        self.runs: list[tuple[str, ...]] = []
        self.patience: list[float | None] = []
        """Of each run; None of an undisturbed one."""

    def run(self, task: Task) -> Run:
        self.runs.append(tuple(step.name for step in task.steps))
        self.patience.append(task.patience if task.plan.perturbations else None)
        return msgspec.structs.replace(run_of(task.plan), steps=task.steps)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        names = tuple(step.name for step in run.steps)
        return [alarm("pods default/x", names[-1])] if run.plan.perturbations and names in self.shown else []

    def confirmed(self, *every: Evidence, budget: float = 1e6) -> tuple[Finding, Evidence]:
        shrinker = Shrinker(self, self.judge, Names(), Budget(budget), repeats=3)
        finding = Finding(task=every[0].task, alarm=every[0].first, sentence="", runs=len(every), details=[])
        return finding, shrinker.confirm(finding, every)


FIELD = ("create", "b: up")
"""What matters of the first four steps, if the last of them does."""
UP_TO = ("create", "a: up", "a: up, back", "b: up")


@pytest.mark.spec("K-88")
def test_the_steps_of_the_changed_field_come_first_then_each_without_one() -> None:
    seen = evidence("b: up", CRASH)
    assert workloads(candidates(seen)) == [list(UP_TO)], "what comes later does not matter"
    cut = Evidence(seen.task, msgspec.structs.replace(seen.run, steps=STEPS[:4]), REFERENCE, seen.alarms)
    assert workloads(candidates(cut)) == [
        list(FIELD),
        ["a: up", "a: up, back", "b: up"],
        ["create", "a: up, back", "b: up"],
        ["create", "a: up", "b: up"],
    ]


@pytest.mark.spec("K-88")
def test_of_a_step_about_no_field_any_other_may_be_left_away() -> None:
    steps = (Step("create", ()), STEPS[1], Step("delete", ()))
    run = msgspec.structs.replace(run_of(Plan("crash", (CRASH,))), steps=steps)
    seen = Evidence(task_of(run.plan), run, REFERENCE, [alarm("pods default/x", "delete")])
    assert workloads(candidates(seen)) == [["a: up", "delete"], ["create", "delete"]]


@pytest.mark.spec("K-88")
def test_what_is_made_anew_is_deleted_before() -> None:
    deleted = Step("b: up, deleted", (Delete("v1", "Thing", "default", "a"),))
    steps = (*STEPS[:2], STEPS[3], deleted, Step("b: up, created again", (), about="b"))
    run = msgspec.structs.replace(run_of(Plan("input", steps=steps)), steps=steps)
    seen = Evidence(task_of(run.plan), run, REFERENCE, [alarm("pods default/x", "b: up, created again")])
    names = [step.name for step in next(iter(candidates(seen))).plan.steps or ()]
    assert names == ["create", "b: up", "b: up, deleted", "b: up, created again"]


@pytest.mark.spec("K-88")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Edit(REF, None, 3), Edit(REF, None, 1)),
        (ApplicationFault("http", "down", 0), ApplicationFault("http", "down", 0)),
        (OperatorAway(0, 3), OperatorAway(0, 1)),
    ],
)
def test_what_goes_wrong_in_a_step_goes_wrong_in_the_same_one(before: Perturbation, after: Perturbation) -> None:
    seen = evidence("b: up", before)
    cut = Evidence(seen.task, msgspec.structs.replace(seen.run, steps=STEPS[:4]), REFERENCE, seen.alarms)
    first = next(iter(candidates(cut)))
    assert [step.name for step in first.steps] == list(FIELD)
    assert first.plan.perturbations == (after,)


@pytest.mark.spec("K-88")
def test_a_step_in_which_something_goes_wrong_is_never_left_away() -> None:
    seen = evidence("b: up", Edit(REF, None, 1))
    cut = Evidence(seen.task, msgspec.structs.replace(seen.run, steps=STEPS[:4]), REFERENCE, seen.alarms)
    assert workloads(candidates(cut)) == [["a: up", "a: up, back", "b: up"], ["create", "a: up", "b: up"]]


@pytest.mark.spec("K-88")
def test_a_short_workload_that_shows_it_is_what_is_repeated_and_reported() -> None:
    runner = Runner(FIELD)
    finding, shown = runner.confirmed(evidence("b: up", CRASH))
    assert finding.confirmed == (2, 2)
    assert runner.runs == [FIELD] * 3, "the first is undisturbed"
    assert workloads([finding.task, shown.task]) == [list(FIELD)] * 2


@pytest.mark.spec("K-89")
def test_a_program_has_half_a_minute_to_repair_it_in_repetitions_and_replays() -> None:
    short, long, virtual = Runner(FIELD), Runner(UP_TO), Runner(UP_TO)
    finding, _ = short.confirmed(evidence("b: up", CRASH))
    assert finding.task.patience == RESYNC > 30.0
    long.confirmed(evidence("b: up", CRASH))
    virtual.confirmed(evidence("b: up", CRASH, subject=Subject(target="webapp")))
    assert [item for item in short.patience if item is not None] == [RESYNC] * 2
    assert [item for item in long.patience if item is not None] == [RESYNC] * 3
    assert virtual.patience == [0.0] * 2


@pytest.mark.spec("K-88")
def test_a_short_workload_that_does_not_show_it_says_nothing() -> None:
    runner = Runner(UP_TO)
    finding, shown = runner.confirmed(evidence("b: up", CRASH))
    assert finding.confirmed == (2, 2)
    assert runner.runs == [FIELD, FIELD, UP_TO, UP_TO]
    assert workloads([finding.task, shown.task]) == [list(UP_TO)] * 2


@pytest.mark.spec("K-88")
def test_what_several_plans_have_shown_needs_the_short_workload_once() -> None:
    runner = Runner(FIELD)
    finding, _ = runner.confirmed(evidence("b: up", CRASH), evidence("b: up", CRASH))
    assert finding.confirmed == (1, 1)
    assert runner.runs == [FIELD] * 2


@pytest.mark.spec("K-88")
@pytest.mark.parametrize(
    ("seen", "workload"),
    [
        (evidence("b: up", CRASH, subject=Subject(target="webapp")), UP_TO),
        (evidence("b: up", Edit(REF, None, 1)), UP_TO),
        (evidence("create", CRASH), ("create",)),
    ],
)
def test_where_there_is_no_short_workload_it_is_repeated_as_it_was(seen: Evidence, workload: tuple[str, ...]) -> None:
    runner = Runner(workload)
    finding, _ = runner.confirmed(seen)
    assert finding.confirmed == (2, 2)
    assert runner.runs == [workload] * 2


@pytest.mark.spec("K-88")
def test_without_time_nothing_is_tried() -> None:
    runner = Runner(FIELD)
    finding, _ = runner.confirmed(evidence("b: up", CRASH), budget=-1.0)
    assert finding.confirmed == (0, 0)
    assert not runner.runs
