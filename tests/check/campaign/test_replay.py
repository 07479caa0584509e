"""Files of findings hold no secrets, and what they lack comes from whoever repeats them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from konverge.check import replay
from konverge.check.model import Alarm, Apply, Crash, Place, Plan, Run, Setup, Step, Subject, Task, encode

SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "aHVudGVyMg=="}}
PLAIN = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "p"}, "stringData": {"password": "hunter2"}}
STEPS = (Step("create", (Apply(PLAIN),)),)
TASK = Task(
    subject=Subject(
        command=("./manager",), environment={"DB_PASSWORD": "hunter2", "API_TOKEN": "hunter2", "LEVEL": "1"}
    ),
    setup=Setup(objects=(SECRET,)),
    steps=STEPS,
    plan=Plan("input", steps=STEPS),
)


@pytest.mark.spec("K-48")
def test_values_of_secrets_and_secret_settings_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    task, redacted = replay.without_secrets(TASK)
    written = encode(task)
    assert b"hunter2" not in written
    assert b"aHVudGVyMg==" not in written
    assert task.subject.environment == {"DB_PASSWORD": "", "API_TOKEN": "", "LEVEL": "1"}
    assert redacted == [
        "Secret s: password",
        "environment: DB_PASSWORD",
        "environment: API_TOKEN",
        "Secret p: password",
    ]
    monkeypatch.setenv("DB_PASSWORD", "mine")
    assert replay.with_environment(task).subject.environment == {"DB_PASSWORD": "mine", "API_TOKEN": "", "LEVEL": "1"}


@pytest.mark.spec("K-48")
def test_a_file_that_is_something_else_is_refused_with_its_name(tmp_path: Path) -> None:
    alarm = Alarm(oracle="state", severity="high", object="x", sentence="")
    later = replay.Replay(sentence="", task=TASK, alarm=alarm, format=2)
    for name, data in (("a.json", b"{}"), ("b.json", b"\xff"), ("c.json", encode(later))):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(replay.ReplayError, match=name):
            replay.read(tmp_path / name)
    with pytest.raises(replay.ReplayError, match="absent"):
        replay.read(tmp_path / "absent.json")


class Meeting:
    """Two runs at once, or none: each waits for the other."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._both = threading.Barrier(jobs)
        self.plans: list[Plan] = []

    def run(self, task: Task) -> Run:
        self._both.wait(60)
        self.plans.append(task.plan)
        return Run(plan=task.plan, seed=0, steps=task.steps)


@pytest.mark.spec("K-48")
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_run_and_its_reference_end_with_the_same_step_and_run_at_once_if_they_can(jobs: int) -> None:
    alarm = Alarm(oracle="state", severity="high", object="x", sentence="")
    plan = Plan("crash", (Crash(Place("create", "/pods", "default", "a")),), first=2)
    steps = tuple(Step(name, ()) for name in "abc")
    task = Task(subject=Subject(command=("./manager",)), setup=Setup(), steps=steps, plan=plan)
    runner = Meeting(jobs)
    evidence, same = replay.again(
        replay.Replay(sentence="", task=task, alarm=alarm), runner, lambda run, _: [alarm] if run.plan == plan else []
    )
    assert same
    assert evidence.run.plan == plan
    assert evidence.reference.run.plan == Plan("reference", first=2)
    assert sorted(runner.plans, key=lambda item: item.pattern) == [plan, Plan("reference", first=2)]
