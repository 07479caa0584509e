"""What a program is found with is looked at again during the search; what failed requests led to, before it counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import pytest

from konverge.check.campaign import Campaign, Options, Outcome
from konverge.check.model import Alarm, Crash, Place, Plan, Refuse, Run, Severity, Subject, Task
from konverge.check.planning import Planned
from konverge.check.reference import Reference
from konverge.check.second_look import Again, SecondLook
from konverge.check.shrink import RESYNC, RETRY
from konverge.check.subjects import InThisProcess
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import SETUP, STEPS
from tests.check.campaign.test_findings import CHAIN, CRASH, REFERENCE, alarm, run_of, task_of
from tests.check.campaign.test_findings import STEPS as STEPS_OF_FINDINGS

SECRET = "secrets default/shop"


def refused(name: str) -> Plan:
    return Plan("errors", (Refuse(Place("create", "/secrets", "default", name), "error"),))


def crash(name: str) -> Plan:
    return Plan("crash", (Crash(Place("create", "/secrets", "default", name)),))


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
    assert isinstance(item, Refuse | Crash)
    return item.place.name


def checked(
    runner: Program, *names: str, plan: Callable[[str], Plan] = refused, until: Severity | None = None
) -> Outcome:
    def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
        return Planned([plan(name) for name in names])

    options = Options(shrink=False, repeats=3, until=until)
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


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(("plan", "severity"), [(refused, "medium"), (crash, "high")])
def test_what_a_failed_request_led_to_is_not_high_where_nobody_could_look_again(
    plan: Callable[[str], Plan], severity: Severity
) -> None:
    class Interrupted(Program):
        def run(self, task: Task) -> Run:
            if task.patience:
                raise KeyboardInterrupt
            return super().run(task)

    outcome = checked(Interrupted(), "a", plan=plan)
    assert outcome.interrupted
    assert [(item.alarm.severity, item.confirmed) for item in outcome.findings] == [(severity, (0, 0))]


def program(plan: Plan) -> Task:
    return msgspec.structs.replace(task_of(plan), subject=Subject(command=("operator",)))


def look(task: Task, severity: Severity = "high", second: SecondLook | None = None) -> tuple[SecondLook, Again | None]:
    second = second or SecondLook()
    return second, second.at(task, run_of(task.plan), REFERENCE, [alarm(SECRET, severity=severity)], 7.0)


@pytest.mark.spec("K-98")
def test_what_there_was_no_time_for_is_kept_as_it_was_seen() -> None:
    second, again = look(program(refused("a")))
    assert again is not None
    assert again.held
    assert again.task.patience == RETRY
    assert [step.name for step in again.task.steps] == ["create"], "up to the alarm"
    [left] = second.left()
    assert (left.first.object, left.after, left.task.patience) == (SECRET, 7.0, 0.0)
    assert second.left() == []


@pytest.mark.spec("K-98")
def test_where_nothing_failed_each_cause_is_looked_at_once_and_does_not_wait() -> None:
    second, again = look(program(CRASH))
    assert again == (msgspec.structs.replace(program(CRASH), steps=STEPS_OF_FINDINGS[:1], patience=RESYNC), False)
    assert second.left() == []
    assert look(program(CRASH), second=second)[1] is None


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(
    ("task", "severity"),
    [
        (program(CRASH), "medium"),
        (program(CHAIN), "high"),
        (task_of(CRASH), "high"),
        (task_of(refused("a")), "high"),
        (program(refused("a")), "low"),
    ],
    ids=["not high", "nothing went wrong", "virtual time", "a request on virtual time", "a note"],
)
def test_what_is_not_looked_at_again(task: Task, severity: Severity) -> None:
    second, again = look(task, severity)
    assert again is None
    assert second.left() == []


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(("lasting", "confirmed"), [(("a",), (1, 1)), ((), (0, 3))])
def test_what_is_high_is_noted_at_once_and_confirmed_by_the_second_look(
    lasting: tuple[str, ...], confirmed: tuple[int, int]
) -> None:
    runner = Program(*lasting)
    outcome = checked(runner, "a", plan=crash)
    assert runner.looked[:2] == [("a", 0.0), ("a", RESYNC)]
    assert [(item.alarm.object, item.confirmed) for item in outcome.findings] == [("secrets default/a", confirmed)]
    assert [(item.plan, len(item.groups)) for item in outcome.performed] == [(crash("a"), 1)], "one plan"


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(("name", "same"), [("shop", True), ("other", False)])
def test_another_alarm_is_seen_for_the_first_time(name: str, same: bool) -> None:
    second, again = look(program(CRASH))
    assert again is not None
    shown = [alarm(f"secrets default/{name}")]
    assert second.judged(again.task, run_of(CRASH), REFERENCE, shown) == (None, same, shown)
    assert (look(program(refused("a")), second=second)[1] is None) == same, "what has lasted needs no other look"


@pytest.mark.spec("K-98")
def test_what_another_alarm_shows_has_to_be_repeated() -> None:
    class Changing(Program):
        def judge(self, run: Run, reference: Reference) -> list[Alarm]:
            shown = super().judge(run, reference)
            return [alarm("secrets default/new")] if shown and self.looked[-1][1] else shown

    runner = Changing("a")
    outcome = checked(runner, "a")
    assert [item.alarm.object for item in outcome.findings] == ["secrets default/new"]
    assert len(runner.looked) > 2, "the second run alone does not confirm it"


PODS = "pods default/web-0"


class Replacing(Program):
    """Replaces a pod in each pass: at the rest after a change some are old, and with patience none, or all the same."""

    def __init__(self, *, lasts: bool, interrupted: bool = False) -> None:
        super().__init__()
        self._lasts, self._interrupted = lasts, interrupted
        self.patience = 0.0

    def run(self, task: Task) -> Run:
        if task.plan.pattern == "reference":
            return super().run(task)
        if task.patience and self._interrupted:
            raise KeyboardInterrupt
        self.patience = task.patience
        return unfinished(msgspec.structs.replace(run_of(task.plan), steps=task.plan.steps or ()))

    def judge(self, run: Run, reference: Reference) -> list[Alarm]:
        if run.plan.pattern == "reference":
            return []
        old = alarm(PODS, "a: up, back", "medium", "path-dependence")
        other = alarm("services default/web", "a: up", "medium", "effect")
        return [other, old] if not self.patience or self._lasts else [other]


def unfinished(run: Run) -> Run:
    web = {
        "metadata": {"name": "web", "uid": "1"},
        "spec": {"replicas": 3},
        "status": {"readyReplicas": 3, "updatedReplicas": 1},
    }
    pod = {"metadata": {"name": "web-0", "ownerReferences": [{"uid": "1"}]}}
    for checkpoint in run.checkpoints:
        checkpoint.under_way = True
        checkpoint.state = {"apps/statefulsets default/web": web, PODS: pod}
    return run


def changed_back(runner: Program) -> Outcome:
    return checked(runner, "a", plan=lambda _: Plan("input", steps=STEPS_OF_FINDINGS[:3]))


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(
    ("runner", "expected"),
    [
        (Replacing(lasts=True), [("medium", True)]),
        (Replacing(lasts=False), []),
        (Replacing(lasts=False, interrupted=True), [("low", False)]),
    ],
    ids=["lasts", "was under way", "nobody could look"],
)
def test_pods_of_a_workload_that_is_not_done_count_if_they_last(
    runner: Replacing, expected: list[tuple[Severity, bool]]
) -> None:
    outcome = changed_back(runner)
    found = {item.alarm.object: item for item in outcome.findings}
    assert found.pop("services default/web").alarm.severity == "medium", "what has nothing to do with it does not wait"
    assert [(item.alarm.severity, item.confirmed == (1, 1)) for item in found.values()] == expected
    assert len(outcome.performed) == 1, "one plan"


@pytest.mark.spec("K-98")
@pytest.mark.parametrize("field", ["", "status.updatedReplicas", "spec.replicas"])
def test_what_is_asked_of_a_workload_needs_no_second_look(field: str) -> None:
    task = program(CHAIN)
    shown = alarm("apps/statefulsets default/web", "a: up", field=field)
    again = SecondLook().at(task, unfinished(run_of(CHAIN)), REFERENCE, [shown], 7.0)
    assert (again is not None) == field.startswith("status.")
    assert SecondLook().at(task, run_of(CHAIN), REFERENCE, [shown], 7.0) is None, "nothing was under way"


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(("shown", "held"), [(alarm(PODS, severity="medium"), True), (alarm(SECRET), False)])
def test_after_a_fault_the_pods_of_a_workload_that_is_not_done_wait_too(shown: Alarm, held: bool) -> None:
    """A restart is another pass: what comes after it in the workload may have more to do than in the reference."""
    second = SecondLook()
    again = second.at(program(CRASH), unfinished(run_of(CRASH)), REFERENCE, [shown], 7.0)
    assert again is not None
    assert again.held == held
    assert len(second.left()) == held
    done = SecondLook().at(program(CRASH), run_of(CRASH), REFERENCE, [shown], 7.0)
    assert done is None or not done.held
