"""Files of findings hold no secrets, and what they lack comes from whoever repeats them."""

from __future__ import annotations

import threading
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from konverge.check import replay
from konverge.check.inputs.references import references
from konverge.check.model import Alarm, Apply, Crash, Obj, Place, Plan, Run, Setup, Step, Subject, Task, encode
from konverge.check.oracles.copies import copies
from tests.check.oracles.histories import KEY, THING, History, obj

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
    (tmp_path / "later.json").write_text('{"format": 2, "task": "of another form"}')
    with pytest.raises(replay.ReplayError, match=r"later\.json has format 2, and this version reads 1: run the check"):
        replay.read(tmp_path / "later.json")
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


# ------------------------------------------------------------------ what placeholders keep


def secret(name: str, **content: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, **content}


def entries(*objects: Obj) -> list[dict[str, Any]]:
    """The values in the file, decoded."""
    task, _ = replay.without_secrets(task_of(Step("create", tuple(map(Apply, objects)))))
    shown = [action.object for action in task.steps[0].actions if isinstance(action, Apply)]
    return [
        {
            **{key: b64decode(value, validate=True).decode() for key, value in item.get("data", {}).items()},
            **item.get("stringData", {}),
        }
        for item in shown
    ]


def task_of(*steps: Step) -> Task:
    return Task(subject=TASK.subject, setup=Setup(), steps=steps, plan=Plan("input", steps=steps))


@pytest.mark.spec("K-146")
def test_equal_values_stay_equal_and_others_different() -> None:
    assert entries(
        secret("a", data={"user": "YWRtaW4=", "password": "aHVudGVyMg=="}),
        secret("b", data={"password": "aHVudGVyMg==", "other": "aHVu\ndGVyMw=="}),
        secret("a", stringData={"password": "hunter2", "user": "hunter3"}),
        secret("c", stringData={"encoded": "aHVudGVyMg=="}),
    ) == [
        {"user": "redacted-1-a-user", "password": "redacted-2-a-password"},
        {"password": "redacted-2-a-password", "other": "redacted-3-b-other"},
        {"password": "redacted-2-a-password", "user": "redacted-3-b-other"},
        {"encoded": "redacted-4-c-encoded"},
    ]


@pytest.mark.spec("K-146")
def test_the_same_value_has_one_placeholder_in_setup_workload_and_plan() -> None:
    first = Step("create", (Apply(secret("a", data={"x": "aHVudGVyMg=="})),))
    second = Step("change", (Apply(secret("a", stringData={"x": "other"})),))
    setup = Setup(objects=(secret("s", stringData={"password": "hunter2"}),))
    given = Task(subject=TASK.subject, setup=setup, steps=(first,), plan=Plan("input", steps=(first, second)))
    task, redacted = replay.without_secrets(given)
    shown = [
        step.actions[0].object for step in (*task.steps, *(task.plan.steps or ())) if isinstance(step.actions[0], Apply)
    ]
    assert task.setup.objects[0]["stringData"] == {"password": "redacted-1-s-password"}
    assert [item.get("data", item.get("stringData")) for item in shown] == [
        {"x": "cmVkYWN0ZWQtMS1zLXBhc3N3b3Jk"},
        {"x": "cmVkYWN0ZWQtMS1zLXBhc3N3b3Jk"},
        {"x": "redacted-2-a-x"},
    ]
    assert redacted[0] == "Secret s: password"
    assert replay.without_secrets(task)[0] == task, "and again the same"


@pytest.mark.spec("K-146")
def test_what_is_empty_or_cannot_be_read_stays_so() -> None:
    given = secret("a", data={"gone": "", "none": None, "wrong": "hunter22!"}, stringData={"gone": "", "number": 7})
    task, redacted = replay.without_secrets(task_of(Step("create", (Apply(given),))))
    assert isinstance(task.steps[0].actions[0], Apply)
    shown = task.steps[0].actions[0].object
    assert shown["data"] == {"gone": "", "none": None, "wrong": "redacted-1-a-wrong"}, "no base64, as it was none"
    assert shown["stringData"] == {"gone": "", "number": "redacted-2-a-number"}
    assert [what for what in redacted if what.startswith("Secret")] == ["Secret a: wrong", "Secret a: number"]
    plain = secret("a", data=None)
    assert replay.without_secrets(task_of(Step("create", (Apply(plain),))))[0].steps[0].actions == (Apply(plain),)


@pytest.mark.spec("K-146")
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b'{"auths": {}}', '{"redacted": "redacted-1-a-x"}'),
        (b'["hunter2"]', "redacted-1-a-x"),
        (b"{hunter2", "redacted-1-a-x"),
        (b'{"a": "\xff"}', "redacted-1-a-x"),
    ],
)
def test_an_object_stays_one(content: bytes, shown: str) -> None:
    """The API server refuses credentials of a registry that are none."""
    assert entries(secret("a", data={"x": b64encode(content).decode()})) == [{"x": shown}]


@pytest.mark.spec("K-48", "K-146")
def test_no_placeholder_is_a_part_of_another() -> None:
    values = {f"k{number}": f"hunter{number}" for number in range(12)}
    [shown] = entries(secret("a", stringData={**values, "k": "x", "k-1": "y"}))
    words = list(shown.values())
    assert len(set(words)) == len(words) == 14
    assert not [one for one in words for other in words if one != other and one in other]


@pytest.mark.spec("K-48", "K-145")
def test_annotations_that_repeat_a_secret_are_left_out() -> None:
    name = "kubectl.kubernetes.io/last-applied-configuration"
    given = secret("a", stringData={"x": "hunter2"})
    given["metadata"]["annotations"] = {name: '{"x": "hunter2"}', "b": "c"}
    task, redacted = replay.without_secrets(task_of(Step("create", (Apply(given),))))
    assert isinstance(task.steps[0].actions[0], Apply)
    assert task.steps[0].actions[0].object["metadata"] == {"name": "a", "annotations": {"b": "c"}}
    assert f"Secret a: {name}" in redacted
    assert b"hunter2" not in encode(task)


class Copier:
    """An operator that makes a copy of a password, and leaves it as it was."""

    jobs = 1

    def run(self, task: Task) -> Run:
        history = History(task.plan.steps or task.steps[:1], task.plan.pattern)
        history.change("ADDED", "secrets default/copy")
        copied: Obj = {}
        for step in history.run.steps:
            applied = {item.object["kind"]: item.object for item in step.actions if isinstance(item, Apply)}
            login = obj("Secret", "login", data=applied["Secret"]["data"])
            copied = copied or obj("Secret", "copy", data=login["data"])
            history.rest(
                {KEY: {**obj("Thing"), **THING}, "secrets default/login": login, "secrets default/copy": copied}
            )
        history.run.plan = task.plan
        return history.run


@pytest.mark.spec("K-146")
def test_what_comes_of_a_rotated_secret_shows_again() -> None:
    login = secret("login", data={"password": "aHVudGVyMg=="})
    other = secret("other", data={"password": "YW5vdGhlcg=="})
    sample = {**THING, "spec": {"secretName": "login"}}
    _, rotate, back, _ = next(references([login, other], sample))
    steps = (
        Step("create", (Apply(sample), Apply(other), Apply(login))),
        Step("Secret login rotated", (rotate,)),
        Step("Secret login rotated, back", (back,)),
    )
    task, _ = replay.without_secrets(task_of(*steps))
    alarm = Alarm(oracle="copies", severity="medium", object="secrets default/copy", field="data", sentence="")
    evidence, same = replay.again(replay.Replay(sentence="", task=task, alarm=alarm), Copier(), copies)
    assert same
    assert evidence.first.step == "Secret login rotated"
