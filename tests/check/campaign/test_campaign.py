"""A whole check of a small operator: what is wrong is found once, confirmed, small, and can be shown again."""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from konverge.check import replay
from konverge.check.campaign import Campaign, CouldNotTest, Listener, Options, Outcome, Runner
from konverge.check.model import Apply, Checkpoint, Finding, Plan, Run, Setup, Step, Subject, Task
from konverge.check.oracles import judge as judge_run
from konverge.check.planning import Planned
from konverge.check.plans.crash import crashes
from konverge.check.reference import Reference
from konverge.check.subjects import InThisProcess
from konverge.check.undisturbed import without_last
from konverge.check.workload import basic
from konverge.objects import crd_dict
from konverge.runtime import Manager
from tests.check.campaign import keeper

SETUP = Setup(objects=(crd_dict(keeper.Kept),), nodes=1)
STEPS = basic([keeper.SAMPLE])
TARGET = "tests.check.campaign.keeper:wrong"


class Counting:
    """A runner that counts, and ends as if by Ctrl-C after so many runs."""

    jobs = 1

    def __init__(self, inner: Runner, most: int = 1000) -> None:
        self._inner, self.most, self.count = inner, most, 0

    def run(self, task: Task) -> Run:
        self.count += 1
        if self.count > self.most:
            raise KeyboardInterrupt
        return self._inner.run(task)

    def cancel(self) -> None:
        raise AssertionError("there is one run at a time")


class Heard(Listener):
    def __init__(self) -> None:
        self.findings: list[Finding] = []

    def found(self, finding: Finding) -> None:
        self.findings.append(finding)


def planned(reference: Reference, only: Sequence[str], seed: int) -> Planned:
    """A crash after every write."""
    return Planned(list(crashes(reference)))


def campaign(
    manager: Manager, options: Options | None = None, runner: Runner | None = None, **more: object
) -> Campaign:
    runner = runner or InThisProcess(manager)
    more.setdefault("planner", planned)
    return Campaign(Subject(target=TARGET), SETUP, STEPS, runner, options or Options(only=("crash",)), **more)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return campaign(keeper.wrong).check()


@pytest.mark.spec("K-45")
def test_a_healthy_operator_has_no_findings() -> None:
    fine = campaign(keeper.manager).check()
    assert fine.findings == []
    assert len(fine.performed) >= 4
    assert not any(item.missed or item.problem for item in fine.performed)


@pytest.mark.spec("K-45", "K-46")
def test_one_cause_is_one_finding_with_the_fewest_steps(outcome: Outcome) -> None:
    """Two plans show it (create, create again), and in two steps each; it is reported once, after one step."""
    [finding] = outcome.findings
    assert finding.alarm.object == "configmaps default/note-second"
    assert finding.runs >= 2
    assert finding.confirmed == (1, 1)
    assert [step.name for step in finding.task.steps] == ["create"]
    assert len(finding.task.plan.perturbations) == 1


@pytest.mark.spec("K-47")
def test_the_sentence_says_between_which_writes_the_crash_was(outcome: Outcome) -> None:
    sentence = outcome.findings[0].sentence
    assert sentence.startswith(
        "after a crash between creating ConfigMap note-first and creating ConfigMap note-second, "
        "ConfigMap note-second is missing"
    )


@pytest.mark.spec("K-48")
def test_a_file_shows_the_finding_again(outcome: Outcome, tmp_path: Path) -> None:
    path = tmp_path / "finding-1.json"
    path.touch(0o644)
    replay.write(path, replay.replay_of(outcome.findings[0], outcome.evidence[0], "1.0"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    read = replay.read(path)
    _, same = replay.again(read, InThisProcess(keeper.wrong), judge_run)
    assert same
    _, same = replay.again(read, InThisProcess(keeper.manager), judge_run)
    assert not same, "the right operator does not have it"


@pytest.mark.spec("K-49")
def test_what_the_budget_left_out_is_counted() -> None:
    short = campaign(keeper.manager, Options(only=("crash",), budget=1e-9)).check()
    assert short.performed == []
    assert short.left_out["crash"] >= 4


@pytest.mark.spec("K-49")
def test_an_interrupted_check_reports_what_it_knows() -> None:
    heard = Heard()
    runner = Counting(InThisProcess(keeper.wrong), most=4)
    cut = campaign(keeper.wrong, runner=runner, listener=heard).check()
    assert cut.interrupted
    assert cut.left_out
    assert [finding.alarm.object for finding in cut.findings] == ["configmaps default/note-second"]
    assert [finding.alarm.object for finding in heard.findings] == ["configmaps default/note-second"]


@pytest.mark.spec("K-50")
@pytest.mark.parametrize(
    ("manager", "sample", "reason"),
    [
        (keeper.idle, keeper.SAMPLE, "wrote nothing"),
        (keeper.manager, {**keeper.SAMPLE, "spec": {"text": 5}}, "refused the sample"),
    ],
)
def test_without_a_reference_nothing_is_tested(manager: Manager, sample: dict[str, object], reason: str) -> None:
    runner = Counting(InThisProcess(manager))
    with pytest.raises(CouldNotTest, match=reason):
        Campaign(Subject(), SETUP, basic([sample]), runner, Options()).check()
    assert runner.count == 1


@pytest.mark.spec("K-46")
def test_a_finding_that_does_not_show_again_is_flaky() -> None:
    """As on real time: the first run of a plan raises the alarm, and no repetition does."""
    seen: list[Plan] = []

    def judge(run: Run, reference: Reference) -> Iterator[object]:
        if run.plan not in seen:
            yield from judge_run(run, reference)
        seen.append(run.plan)

    flaky = campaign(keeper.wrong, Options(only=("crash",), repeats=3), judge=judge).check()
    [finding] = flaky.findings
    assert finding.confirmed == (0, 3)


@pytest.mark.spec("K-45")
def test_what_the_undisturbed_run_shows_is_reported_once() -> None:
    from konverge.check.model import Alarm

    alarm = Alarm(oracle="needless", severity="low", object="operator", sentence="it writes without need")

    def judge(run: Run, reference: Reference) -> Iterable[Alarm]:
        return [alarm]

    noisy = campaign(keeper.manager, judge=judge).check()
    assert [(finding.alarm, finding.runs, finding.patterns) for finding in noisy.findings] == [
        (alarm, 1, ("reference",))
    ]


class Stopping:
    """A runner whose operator never goes on after one change."""

    jobs = 1

    def __init__(self, inner: Runner, about: str) -> None:
        self._inner, self._about = inner, about

    def run(self, task: Task) -> Run:
        run = self._inner.run(task)
        for number, step in enumerate(run.steps):
            if step.about == self._about:
                run.checkpoints = run.checkpoints[: number + 1]
                run.checkpoints[-1].rested = False
                break
        return run

    def cancel(self) -> None:
        raise AssertionError("there is one run at a time")


def changed(text: str) -> Step:
    sample = {**keeper.SAMPLE, "spec": {"text": text}}
    return Step(f"spec.text: {text}", (Apply(sample),), about="spec.text")


@pytest.mark.spec("K-56")
def test_a_change_that_ends_the_reference_is_said_and_left_out_of_all_other_runs() -> None:
    create, delete, again = STEPS
    steps = (create, changed("stop"), changed("go"), delete, again)
    runner = Stopping(InThisProcess(keeper.manager), "spec.text")
    more = {"planner": planned, "judge": judge_run}
    outcome = Campaign(Subject(target=TARGET), SETUP, steps, runner, Options(only=("crash",)), **more).check()  # type: ignore[arg-type]
    assert [finding.alarm.oracle for finding in outcome.findings] == ["no rest"]
    assert outcome.findings[0].alarm.step == "spec.text: stop"
    assert outcome.findings[0].task.steps == steps[:2], "what shows it again"
    assert outcome.reference.run.steps == STEPS
    assert len(outcome.reference.run.checkpoints) == len(STEPS)
    assert len(outcome.performed) >= 4
    assert any("spec.text: stop" in note for note in outcome.notes)


@pytest.mark.spec("K-56")
def test_a_workload_that_ends_with_a_deletion_is_kept() -> None:
    create, delete, again = STEPS
    run = Run(plan=Plan("reference"), seed=0, steps=STEPS, checkpoints=[checkpoint("create"), checkpoint("delete")])
    assert without_last(STEPS, run) == ()
    run.checkpoints.append(checkpoint("create again"))
    assert without_last(STEPS, run) == ()
    steps = (create, changed("stop"), changed("go"), delete, again)
    run.checkpoints = [checkpoint("create"), checkpoint("spec.text: stop, then")]
    assert without_last(steps, run) == STEPS


def checkpoint(step: str) -> Checkpoint:
    return Checkpoint(step=step, revision=1, time=1.0, state={})


@pytest.mark.spec("K-103")
def test_the_search_can_end_with_the_first_finding() -> None:
    whole = campaign(keeper.wrong).check()
    first = campaign(keeper.wrong, Options(only=("crash",), until="high")).check()
    assert len(first.performed) < len(whole.performed)
    assert sum(first.left_out.values()) == len(whole.performed) - len(first.performed)
    assert [finding.alarm.severity for finding in first.findings][:1] == ["high"]
    assert first.findings[0].confirmed[0] == 1, "it is repeated as always"
    assert (first.stopped, whole.stopped) == (True, False)


@pytest.mark.spec("K-103")
def test_what_is_not_as_bad_does_not_end_the_search() -> None:
    fine = campaign(keeper.manager, Options(only=("crash",), until="high")).check()
    assert fine.left_out == {}
    assert not fine.stopped
