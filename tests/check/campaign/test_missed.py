"""What did not come to pass in a run of a program is tried again: the next run may be a little faster or slower."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.missed import Missed
from konverge.check.model import Alarm, Crash, Place, Plan, Refuse, Run, Subject, Task
from konverge.check.planning import Planned
from konverge.check.reference import Reference
from konverge.check.subjects import InThisProcess
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import SETUP, STEPS, TARGET
from tests.check.campaign.test_findings import alarm

pytestmark = pytest.mark.spec("K-115")

SECRET = "secrets default/shop"


def crash(name: str) -> Plan:
    return Plan("crash", (Crash(Place("create", "/secrets", "default", name)),))


RUN = Run(plan=crash("it"), seed=0, steps=STEPS)


def name_of(plan: Plan) -> str:
    return "".join(item.place.name for item in plan.perturbations if isinstance(item, Crash))


class Program:
    """The moments of some plans do not come the first times; once one has come, its run has an alarm."""

    jobs = 1

    def __init__(self, shown_meanwhile: bool = False, **missed: int) -> None:
        self._left = dict(missed)
        self._shown_meanwhile = shown_meanwhile
        self._undisturbed: Run | None = None
        self.performed: list[str] = []

    def run(self, task: Task) -> Run:
        if self._undisturbed is None:
            self._undisturbed = InThisProcess(keeper.manager).run(msgspec.structs.replace(task, snapshots=False))
        name = name_of(task.plan)
        missed = self._left.get(name, 0) > 0
        if name and not task.patience:
            self.performed.append(name)
            self._left[name] = self._left.get(name, 0) - 1
        return msgspec.structs.replace(self._undisturbed, plan=task.plan, missed=missed)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        if not name_of(run.plan) or (run.missed and not self._shown_meanwhile):
            return []
        return [alarm(SECRET)]

    def cancel(self) -> None:
        raise AssertionError("there is one run at a time")


def checked(runner: Program, *names: str, subject: Subject | None = None) -> Outcome:
    def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        return Planned([crash(name) for name in names])

    subject = subject or Subject(command=("operator",))
    options = Options(shrink=False)
    return Campaign(subject, SETUP, STEPS, runner, options, judge=runner.judge, planner=planned).check()


def test_what_was_missed_is_tried_again_at_once_and_counts_once() -> None:
    runner = Program(late=1)
    outcome = checked(runner, "late", "other")
    assert runner.performed[:3] == ["late", "late", "other"]
    assert [(name_of(item.plan), item.missed) for item in outcome.performed] == [("late", False), ("other", False)]
    assert [item.alarm.object for item in outcome.findings] == [SECRET]


def test_what_is_missed_three_times_was_not_tested() -> None:
    runner = Program(never=9)
    outcome = checked(runner, "never")
    assert runner.performed == ["never"] * 3
    assert [item.missed for item in outcome.performed] == [True]


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_last_try_comes_when_others_have_been_run(jobs: int) -> None:
    """The first plans begin while all jobs start at once."""
    missed, run = Missed(), msgspec.structs.replace(RUN, missed=True)
    assert [missed.behind(run, jobs), missed.may_come(run), missed.behind(run, jobs)] == [0, True, 0]
    assert [missed.may_come(run), missed.behind(run, jobs), missed.may_come(run)] == [True, 2 * jobs, False]
    other = msgspec.structs.replace(run, plan=crash("other"))
    assert [missed.may_come(other), missed.behind(other, jobs)] == [True, 0]
    assert missed.behind(msgspec.structs.replace(run, missed=False), jobs) == 0


def test_a_plan_that_is_missed_twice_is_found_at_its_third_try() -> None:
    runner = Program(late=2)
    outcome = checked(runner, "late", "one", "two", "three")
    assert runner.performed[:6] == ["late", "late", "one", "two", "late", "three"]
    assert [(name_of(item.plan), item.missed) for item in outcome.performed][2] == ("late", False)


def test_what_the_run_showed_all_the_same_counts() -> None:
    runner = Program(shown_meanwhile=True, late=9)
    outcome = checked(runner, "late")
    assert [item.missed for item in outcome.performed] == [True]
    assert [item.alarm.object for item in outcome.findings] == [SECRET]


def test_on_virtual_time_the_same_would_be_missed_again() -> None:
    runner = Program(never=9)
    checked(runner, "never", subject=Subject(target=TARGET))
    assert runner.performed == ["never"]


class MissesTheSecondLook(Program):
    def run(self, task: Task) -> Run:
        if task.plan.perturbations:
            self.performed.append("again" if task.patience else "first")
        return msgspec.structs.replace(super().run(task), missed=task.patience > 0)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        return [alarm(SECRET)] if run.plan.perturbations and not run.missed else []


def test_a_second_look_that_is_missed_is_not_repeated_and_denies_nothing() -> None:
    runner = MissesTheSecondLook()

    def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        return Planned([Plan("errors", (Refuse(Place("create", "/secrets", "default", "a"), "error"),))])

    options = Options(shrink=False, repeats=1)
    outcome = Campaign(
        Subject(command=("operator",)), SETUP, STEPS, runner, options, judge=runner.judge, planner=planned
    ).check()
    assert runner.performed[:2] == ["first", "again"]
    assert runner.performed.count("first") == 1
    assert [item.alarm.object for item in outcome.findings] == [SECRET]
