"""Who carries out runs: what fails or never ends costs its run, and no more."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence

import pytest

from konverge import clock
from konverge.check.budget import Budget
from konverge.check.campaign import Campaign, Listener, Options
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
        self._first = threading.Lock()
        self._hangs = hangs
        self.never = threading.Event()
        self.cancelled = 0

    def run(self, task: Task) -> Run:
        with self._first:
            if self._run is None:
                self._run = InThisProcess(keeper.manager).run(task)
        if task.plan.pattern == "reference":
            return self._run
        if task.plan.pattern == "time" and self._hangs:
            self.never.wait()
        return failed(task, "no")

    def cancel(self) -> None:
        self.cancelled += 1


class Done(Listener):
    """How many runs of plans there have been."""

    runs = -1

    def progress(self, text: str, done: int = 0, total: int = 0, most: float = math.inf) -> None:
        self.runs = done if total else self.runs


def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
    return Planned([Plan("time"), *crashes(reference)])


@pytest.mark.spec("K-49")
def test_a_run_that_never_ends_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Recorded(hangs=True)
    others: list[Plan] = []

    def noted(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        others.extend(crashes(reference))
        return planned(reference, only, seed)

    done = Done()
    monkeypatch.setattr(Budget, "left_to_runs", property(lambda budget: 0.0 if done.runs == len(others) else 600.0))
    try:
        campaign = Campaign(Subject(), SETUP, STEPS, runner, Options(budget=1e6), listener=done, planner=noted)
        outcome = campaign.check()
    finally:
        runner.never.set()
    assert outcome.left_out == {"time": 1}
    assert runner.cancelled == 1, "what is repeated needs its worker"
    assert {item.problem for item in outcome.performed} == {"no"}


@pytest.mark.spec("K-49")
def test_plans_that_fail_are_said_to_be_not_tested() -> None:
    runner = Recorded()
    outcome = Campaign(Subject(), SETUP, STEPS, runner, Options(), planner=planned).check()
    assert outcome.left_out == {}
    assert outcome.findings == []
    assert len(outcome.performed) > 4
    assert runner.cancelled == 0
    assert {item.problem for item in outcome.performed} == {"no"}


def test_a_mistake_of_the_checker_is_the_problem_of_its_run() -> None:
    def broken() -> list[object]:
        raise RuntimeError("by the test")

    task = Task(subject=Subject(), setup=SETUP, steps=STEPS, plan=Plan("reference"))
    run = InThisProcess(broken).run(task)  # type: ignore[arg-type]
    assert "RuntimeError: by the test" in run.problem


@pytest.mark.spec("K-90")
@pytest.mark.parametrize(("seconds", "search", "runs"), [(400.0, 300.0, 340.0), (40.0, 30.0, 60.0)])
def test_what_a_budget_leaves_for_the_search_and_for_runs_under_way(
    monkeypatch: pytest.MonkeyPatch, seconds: float, search: float, runs: float
) -> None:
    now = [1000.0]
    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    budget = Budget(seconds)
    assert (budget.left_to_search, budget.left_to_runs, budget.left) == (search, runs, seconds)
    now[0] += search
    assert (budget.searching, budget.over) == (False, False)
    assert budget.left_to_runs == runs - search
