"""Where the search ends with a finding of a program, that one has shown again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from konverge.check.budget import Budget
from konverge.check.model import Alarm, Plan, Run, Severity, Task
from konverge.check.reference import Reference
from konverge.check.second_look import MOST_LOOKS, SecondLook
from konverge.check.shrink import RESYNC
from konverge.check.side_by_side import runs_of
from konverge.check.waiting import Waiting
from tests.check.campaign.test_findings import CHAIN, CRASH, REFERENCE, alarm, run_of, task_of
from tests.check.campaign.test_findings import STEPS as STEPS_OF_FINDINGS
from tests.check.campaign.test_second_look import SECRET, Program, checked, crash, look, program, refused

pytestmark = pytest.mark.spec("K-103")


def test_what_does_not_show_again_does_not_end_the_search() -> None:
    runner = Program("lasts")
    outcome = checked(runner, "heals", "lasts", "never", plan=crash, until="high")
    assert runner.looked[:4] == [("heals", 0.0), ("heals", RESYNC), ("lasts", 0.0), ("lasts", RESYNC)]
    assert outcome.stopped
    assert outcome.left_out == {"crash": 1}
    assert [(item.alarm.object, item.alarm.severity, item.confirmed[0]) for item in outcome.findings] == [
        ("secrets default/lasts", "high", 1),
        ("secrets default/heals", "low", 0),
    ]


@pytest.mark.parametrize("plan", [refused, crash])
def test_without_it_all_plans_are_run(plan: Callable[[str], Plan]) -> None:
    outcome = checked(Program("a", "b"), "a", "b", plan=plan)
    assert (outcome.stopped, outcome.left_out, len(outcome.performed)) == (False, {}, 2)


def test_what_failed_requests_led_to_ends_it_too() -> None:
    runner = Program("lasts")
    outcome = checked(runner, "heals", "lasts", "never", until="medium")
    assert [name for name, _ in runner.looked] == ["heals", "heals", "lasts", "lasts"]
    assert outcome.left_out == {"errors": 1}


def test_what_the_reference_shows_ends_it_at_once() -> None:
    runner = Program(known="usual")
    outcome = checked(runner, "a", until="high")
    assert runner.looked == []
    assert outcome.stopped


@pytest.mark.parametrize(
    ("ends", "severity", "expected"),
    [("high", "high", True), ("high", "medium", False), ("medium", "medium", True), ("low", "low", True)],
)
@pytest.mark.parametrize("plan", [CRASH, CHAIN], ids=["fault", "no fault"])
def test_whatever_would_end_it_is_looked_at_again(
    plan: Plan, ends: Severity, severity: Severity, expected: bool
) -> None:
    second, again = look(program(plan), severity, SecondLook(ends))
    assert (again is not None) == expected
    assert second.may_end() == expected
    assert again is None or not again.held, "it is noted all the same"


def test_while_one_look_is_under_way_there_is_no_other_at_the_same() -> None:
    second, again = look(program(CRASH), second=SecondLook("high"))
    assert again is not None
    assert look(program(CRASH), second=second)[1] is None
    second.judged(again.task, run_of(CRASH), REFERENCE, [])
    assert not second.may_end()
    assert look(program(CRASH), second=second)[1] == again, "another plan may show it twice"


def test_what_never_shows_again_does_not_hold_up_the_search_for_ever() -> None:
    second = SecondLook("high")
    for _ in range(MOST_LOOKS):
        _, again = look(program(CRASH), second=second)
        assert again is not None
        second.judged(again.task, run_of(CRASH), REFERENCE, [])
    assert look(program(CRASH), second=second)[1] is None
    other = second.at(program(CRASH), run_of(CRASH), REFERENCE, [alarm("secrets default/other")], 0.0)
    assert other is not None


def test_a_look_that_could_not_be_had_does_not_hold_up_the_search_either() -> None:
    outcome = checked(Program(problem="no memory"), "a", "b", plan=crash, until="high")
    assert (outcome.stopped, outcome.left_out) == (False, {})
    assert len(outcome.performed) == 2


class Runs:
    """A search whose runs show nothing."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.cancelled = 0

    def task(self, plan: Plan | Task) -> Task:
        return plan if isinstance(plan, Task) else task_of(plan)

    def run(self, task: Task) -> Run:
        return run_of(task.plan)

    def cancel(self) -> None:
        self.cancelled += 1


AGAIN = msgspec.structs.replace(task_of(CHAIN), patience=RESYNC)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_plan_is_begun_while_a_look_may_end_the_search(jobs: int) -> None:
    looking = True
    waiting = Waiting([CRASH, CRASH], lambda: looking)
    waiting.put([CRASH, AGAIN])
    runs = runs_of(Runs(jobs), waiting, Budget(1000.0))
    task, _ = next(runs)
    assert (task, waiting.left_out()) == (AGAIN, {"crash": 3})
    looking = False
    assert [task.plan for task, _ in runs] == [CRASH] * 3
    assert len(waiting) == 0


def test_what_comes_first_keeps_its_order() -> None:
    waiting = Waiting([CHAIN])
    waiting.put([CRASH, AGAIN])
    assert [waiting.next() for _ in range(4)] == [CRASH, AGAIN, CHAIN, None]


def test_a_look_that_was_under_way_is_not_a_plan_that_was_left_out() -> None:
    waiting = Waiting([CRASH])
    waiting.put([AGAIN, AGAIN])
    runs = runs_of(Runs(2), waiting, Budget(1000.0))
    next(runs)
    runs.close()
    assert waiting.left_out() == {"crash": 1}
    assert waiting.next() == AGAIN


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_was_not_begun_is_left_out(jobs: int) -> None:
    search, waiting = Runs(jobs), Waiting([CRASH] * 5)
    runs = runs_of(search, waiting, Budget(1000.0))
    next(runs)
    runs.close()
    assert waiting.left_out() == {"crash": 4}, "what was under way is among them"
    assert search.cancelled == jobs - 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_is_begun_when_the_time_is_over(jobs: int) -> None:
    waiting = Waiting([CRASH])
    assert list(runs_of(Runs(jobs), waiting, Budget(0.0))) == []
    assert waiting.left_out() == {"crash": 1}


class Adding(Program):
    """Its first change spoils what is behind it, which comes back as a plan of its own."""

    def run(self, task: Task) -> Run:
        if task.plan.pattern == "reference":
            return super().run(task)
        self.looked.append((task.plan.pattern, task.patience))
        steps = task.plan.steps or ()
        return msgspec.structs.replace(run_of(task.plan), steps=steps)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        return [alarm(SECRET, "a: up", "medium", "path-dependence")] if run.plan.steps == CHAIN.steps else []


def test_a_campaign_looks_again_before_it_goes_on() -> None:
    runner = Adding()
    outcome = checked(runner, "a", plan=lambda _: Plan("input", steps=STEPS_OF_FINDINGS), until="medium")
    assert [patience for _, patience in runner.looked][:2] == [0.0, RESYNC], "before the rest of the chain"
    assert outcome.performed
