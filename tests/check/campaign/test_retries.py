"""After a failed request a program has time to try again: what is well by then is no finding."""

from __future__ import annotations

import msgspec
import pytest

from konverge.check.budget import Budget
from konverge.check.conclusion import Conclusion
from konverge.check.findings import Findings
from konverge.check.model import Alarm, ApplicationFault, Finding, Place, Plan, Refuse, Run, Subject, Task
from konverge.check.names import Names
from konverge.check.reference import Reference
from konverge.check.shrink import RESYNC, RETRY, Shrinker, may_retry, patient
from tests.check.campaign.test_findings import CRASH, REFERENCE, alarm, run_of, task_of

REFUSED = Plan("errors", (Refuse(Place("get", "/secrets", "", ""), "error"),))
FAULT = Plan("application", (ApplicationFault("http", "error", 0),))
SECRET = "secrets default/shop"


def program(plan: Plan) -> Task:
    return msgspec.structs.replace(task_of(plan), subject=Subject(command=("kopf",)))


class Retrying:
    """What fails is put right after a while, but for what is in `lasting`; runs are those that were made."""

    jobs = 1

    def __init__(self, *lasting: Plan, problem: str = "") -> None:
        self._lasting, self._problem = lasting, problem
        self.tasks: list[Task] = []

    def run(self, task: Task) -> Run:
        self.tasks.append(task)
        run = run_of(task.plan)
        run.problem = self._problem
        return run

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        shown = run.plan in self._lasting or self.tasks[-1].patience < RETRY
        return [alarm(SECRET)] if shown else []


def concluded(runner: Retrying, *tasks: Task, shown: Alarm | None = None, left: float = 1e6) -> list[Finding]:
    findings = Findings(Names())
    for task in tasks:
        findings.add(task, run_of(task.plan), REFERENCE, [shown or alarm(SECRET)])
    shrinker = Shrinker(runner, runner.judge, Names(), Budget(left), repeats=3)
    conclusion = Conclusion(shrinker, findings, Budget(left), 1)
    conclusion.draw(lambda done, total: None)
    return [finding for finding, _ in conclusion.ranked()]


@pytest.mark.spec("K-83")
@pytest.mark.parametrize("plan", [REFUSED, FAULT])
def test_what_is_well_after_a_retry_is_no_finding(plan: Plan) -> None:
    runner = Retrying()
    assert concluded(runner, program(plan)) == []
    assert [task.patience for task in runner.tasks] == [RETRY]


@pytest.mark.spec("K-83")
def test_every_plan_is_tried_before_a_finding_is_none() -> None:
    runner = Retrying()
    assert concluded(runner, program(REFUSED), program(FAULT)) == []
    assert [task.plan.pattern for task in runner.tasks] == ["errors", "application"]


@pytest.mark.spec("K-83")
def test_what_lasts_is_shown_by_one_patient_run() -> None:
    runner = Retrying(REFUSED)
    [finding] = concluded(runner, program(REFUSED))
    assert finding.confirmed == (1, 1)
    assert {task.patience for task in runner.tasks} == {RETRY}
    assert finding.task.patience == RETRY, "its replay is as patient"


@pytest.mark.spec("K-83")
def test_another_plan_that_shows_the_same_is_tried_when_one_is_put_right() -> None:
    runner = Retrying(CRASH)
    [finding] = concluded(runner, program(REFUSED), program(CRASH))
    assert finding.task.plan.pattern == "crash"
    assert finding.confirmed == (1, 2)
    assert [task.patience for task in runner.tasks[:2]] == [RETRY, RESYNC], (
        "after a crash there is nothing to try again"
    )


@pytest.mark.spec("K-83")
def test_as_many_plans_are_tried_as_there_are_until_one_lasts() -> None:
    others = [Plan("errors", (Refuse(Place("get", "/secrets", "", name), "error"),)) for name in "abcd"]
    [finding] = concluded(Retrying(FAULT), *map(program, (*others, FAULT)))
    assert finding.task.plan == FAULT
    assert finding.confirmed == (1, 5)
    assert concluded(Retrying(), *map(program, (*others, FAULT))) == []


@pytest.mark.spec("K-83")
def test_a_finding_that_one_impatient_run_denies_stays() -> None:
    findings = concluded(Retrying(problem="no memory"), program(CRASH), program(REFUSED))
    assert [finding.confirmed for finding in findings] == [(0, 3)]


@pytest.mark.spec("K-83")
def test_runs_that_could_not_be_made_deny_nothing() -> None:
    findings = concluded(Retrying(problem="no memory"), program(REFUSED))
    assert [finding.confirmed for finding in findings] == [(0, 3)]


@pytest.mark.spec("K-83")
def test_only_programs_after_failures_wait() -> None:
    assert may_retry(program(REFUSED))
    assert may_retry(program(FAULT))
    assert not may_retry(program(CRASH))
    assert not may_retry(program(Plan("reference")))
    assert not may_retry(task_of(REFUSED)), "on virtual time every retry comes before rest"
    assert may_retry(program(Plan("crash", (*CRASH.perturbations, *REFUSED.perturbations))))


@pytest.mark.spec("K-83")
def test_how_long_a_task_is_patient() -> None:
    assert [patient(program(plan)).patience for plan in (REFUSED, FAULT, CRASH)] == [RETRY, RETRY, RESYNC]
    assert patient(task_of(REFUSED)) == task_of(REFUSED)
    assert RETRY > 60.0 > RESYNC > 30.0
