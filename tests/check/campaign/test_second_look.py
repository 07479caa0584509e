"""What a failed request led to is looked at again during the search, before it counts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.model import Alarm, Place, Plan, Refuse, Run, Subject, Task
from konverge.check.planning import Planned
from konverge.check.reference import Reference
from konverge.check.second_look import SecondLook
from konverge.check.shrink import RETRY
from konverge.check.subjects import InThisProcess
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import SETUP, STEPS
from tests.check.campaign.test_findings import CRASH, REFERENCE, alarm, run_of, task_of

SECRET = "secrets default/shop"


def refused(name: str) -> Plan:
    return Plan("errors", (Refuse(Place("create", "/secrets", "default", name), "error"),))


class Program:
    """Every failed request has an alarm of its plan's object; after the patience only those of `lasting` have it."""

    jobs = 1

    def __init__(self, *lasting: str, problem: str = "", known: str = "") -> None:
        self._lasting, self._problem, self._known = lasting, problem, known
        self._undisturbed: Run | None = None
        self.looked: list[tuple[str, float]] = []

    def run(self, task: Task) -> Run:
        if self._undisturbed is None:
            self._undisturbed = InThisProcess(keeper.manager).run(msgspec.structs.replace(task, snapshots=False))
        if task.plan.pattern != "reference":
            self.looked.append((_name(task.plan), task.patience))
        problem = self._problem if task.patience else ""
        return msgspec.structs.replace(self._undisturbed, plan=task.plan, problem=problem)

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        if run.plan.pattern == "reference":
            return [alarm(f"secrets default/{self._known}")] if self._known else []
        name, patience = self.looked[-1]
        shown = name in self._lasting or not patience
        return [alarm(f"secrets default/{name.rstrip('0123456789')}")] if shown and not run.problem else []

    def cancel(self) -> None:
        raise AssertionError("there is one run at a time")


def _name(plan: Plan) -> str:
    [item] = plan.perturbations
    assert isinstance(item, Refuse)
    return item.place.name


def checked(runner: Program, *names: str) -> Outcome:
    def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        return Planned([refused(name) for name in names])

    options = Options(shrink=False, repeats=3)
    return Campaign(
        Subject(command=("operator",)), SETUP, STEPS, runner, options, judge=runner.judge, planner=planned
    ).check()


@pytest.mark.spec("K-98")
def test_what_is_well_at_the_second_look_is_no_finding_and_not_repeated() -> None:
    runner = Program("lasts")
    outcome = checked(runner, "heals", "lasts")
    assert runner.looked == [("heals", 0.0), ("heals", RETRY), ("lasts", 0.0), ("lasts", RETRY)]
    assert [(item.alarm.object, item.confirmed) for item in outcome.findings] == [("secrets default/lasts", (1, 1))]
    assert outcome.findings[0].task.patience == RETRY, "its replay is as patient"
    assert [(item.plan, len(item.groups)) for item in outcome.performed] == [
        (refused("heals"), 0),
        (refused("lasts"), 1),
    ]


@pytest.mark.spec("K-98")
def test_what_has_lasted_once_needs_no_other_look() -> None:
    runner = Program("lasts1")
    [finding] = checked(runner, "lasts1", "lasts2", "lasts3").findings
    assert [look for look in runner.looked if look[1]] == [("lasts1", RETRY)]
    assert finding.runs == 3


@pytest.mark.spec("K-98")
def test_what_the_undisturbed_run_shows_too_is_not_looked_at_again() -> None:
    runner = Program(known="usual")
    checked(runner, "usual")
    assert runner.looked == [("usual", 0.0)]


@pytest.mark.spec("K-98")
def test_a_second_run_that_could_not_be_made_denies_nothing() -> None:
    outcome = checked(Program(problem="no memory"), "a")
    assert [item.alarm.object for item in outcome.findings] == ["secrets default/a"]
    assert [item.problem for item in outcome.performed] == [""], "the first run counts"


def program(plan: Plan) -> Task:
    return msgspec.structs.replace(task_of(plan), subject=Subject(command=("operator",)))


def look(task: Task, severity: str = "high") -> tuple[SecondLook, Task | None]:
    second = SecondLook()
    shown = alarm(SECRET, severity=severity)  # type: ignore[arg-type]
    return second, second.at(task, run_of(task.plan), REFERENCE, [shown], 7.0)


@pytest.mark.spec("K-98")
def test_what_there_was_no_time_for_is_kept_as_it_was_seen() -> None:
    second, again = look(program(refused("a")))
    assert again is not None
    assert again.patience == RETRY
    assert [step.name for step in again.steps] == ["create"], "up to the alarm"
    [left] = second.left()
    assert (left.first.object, left.after, left.task.patience) == (SECRET, 7.0, 0.0)
    assert second.left() == []


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(
    ("task", "severity"),
    [(program(CRASH), "high"), (task_of(refused("a")), "high"), (program(refused("a")), "low")],
    ids=["nothing failed", "virtual time", "a note"],
)
def test_what_counts_at_once(task: Task, severity: str) -> None:
    second, again = look(task, severity)
    assert again is None
    assert second.left() == []
