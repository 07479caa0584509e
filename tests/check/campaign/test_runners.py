"""Who carries out runs: what fails or never ends costs its run, and no more."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from konverge.check import campaign as module
from konverge.check.campaign import Campaign, Options
from konverge.check.model import Plan, Run, Subject, Task
from konverge.check.performing import failed
from konverge.check.planning import Planned
from konverge.check.plans.crash import crashes
from konverge.check.reference import Reference
from konverge.check.subjects import InThisProcess
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import SETUP, STEPS


class Recorded:
    """Answers plans from one undisturbed run, two at once; some of them fail, or never end."""

    jobs = 2

    def __init__(self, *, hangs: bool = False) -> None:
        self._run: Run | None = None
        self._hangs = hangs
        self.never = threading.Event()

    def run(self, task: Task) -> Run:
        if self._run is None:
            self._run = InThisProcess(keeper.manager).run(task)
        if task.plan.pattern == "reference":
            return self._run
        if task.plan.pattern == "time" and self._hangs:
            self.never.wait()
        return failed(task, "no")


def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
    return Planned([Plan("time"), *crashes(reference)])


@pytest.mark.spec("K-49")
def test_a_run_that_never_ends_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.0)
    runner = Recorded(hangs=True)
    runner.run(Task(subject=Subject(), setup=SETUP, steps=STEPS, plan=Plan("reference")))  # before time counts
    try:
        outcome = Campaign(Subject(), SETUP, STEPS, runner, Options(budget=3.0), planner=planned).check()
    finally:
        runner.never.set()
    assert outcome.left_out == {"time": 1}
    assert {item.problem for item in outcome.performed} == {"no"}


@pytest.mark.spec("K-49")
def test_plans_that_fail_are_said_to_be_not_tested() -> None:
    outcome = Campaign(Subject(), SETUP, STEPS, Recorded(), Options(), planner=planned).check()
    assert outcome.left_out == {}
    assert outcome.findings == []
    assert len(outcome.performed) > 4
    assert {item.problem for item in outcome.performed} == {"no"}


def test_a_mistake_of_the_checker_is_the_problem_of_its_run() -> None:
    def broken() -> list[object]:
        raise RuntimeError("by the test")

    task = Task(subject=Subject(), setup=SETUP, steps=STEPS, plan=Plan("reference"))
    run = InThisProcess(broken).run(task)  # type: ignore[arg-type]
    assert "RuntimeError: by the test" in run.problem
