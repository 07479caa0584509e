"""A program as a child process behind the gate: its environment, its crashes, its end."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from konverge.check.accounts import granted
from konverge.check.child_run import run_child
from konverge.check.model import Apply, Crash, OperatorAway, Place, Plan, Run, Setup, Step, Task, encode
from konverge.check.real_rest import LEAST
from konverge.check.supervisor import REVIVALS
from konverge.check.worker import READY
from tests.check.child.support import CREATE, DELETE, FIRST, data, task, written

SECOND = Place("create", "/configmaps", "default", "second")


def perform(wanted: Task) -> Run:
    run = asyncio.run(run_child(wanted))
    assert run.problem == ""
    return run


@pytest.mark.spec("K-05")
def test_a_program_is_given_nothing_that_leads_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("HTTPS_PROXY", "http://10.0.0.2:3128")
    run = perform(task(OWN="{kubeconfig}"))
    assert written(run) == [(1, "create", "second"), (1, "create", "third")]
    environment = json.loads(data(run, "second")["environment"])
    assert environment["OWN"] == environment["KUBECONFIG"] != str(tmp_path / "mine")
    assert environment["HOME"] != os.environ["HOME"]
    assert not {"KUBERNETES_SERVICE_HOST", "HTTPS_PROXY"} & environment.keys()
    assert not Path(environment["HOME"]).exists()  # nothing is left behind


@pytest.mark.spec("K-05")
def test_a_crash_kills_the_process_after_its_write_and_another_starts() -> None:
    run = perform(task(plan=Plan("crash", (Crash(SECOND),)), steps=(CREATE, DELETE)))
    assert run.hit == ["crash after create configmaps default/second"]
    assert not run.missed
    assert written(run) == [(1, "create", "second"), (2, "create", "third")]
    assert run.exits == []  # it did not end by itself
    assert [checkpoint.rested for checkpoint in run.checkpoints] == [True, True]


@pytest.mark.spec("K-19")
def test_a_step_is_done_while_the_program_is_away() -> None:
    run = perform(task(plan=Plan("crash", (OperatorAway(0, 0),)), steps=(CREATE, DELETE)))
    assert written(run) == [(2, "create", "second"), (2, "create", "third")]
    assert [checkpoint.blind for checkpoint in run.checkpoints] == [False, False]
    assert "configmaps default/third" in run.checkpoints[0].state
    unseen = perform(task(plan=Plan("crash", (OperatorAway(0, 1),)), steps=(CREATE, DELETE)))
    assert written(unseen) == []
    assert [checkpoint.blind for checkpoint in unseen.checkpoints] == [True, False]


@pytest.mark.spec("K-05")
def test_a_program_that_ends_by_itself_is_started_again_and_its_traceback_kept() -> None:
    run = perform(task("panic", quiet=LEAST))  # less, and a busy machine has not seen it end
    assert len(run.exits) == 4
    assert {item.code for item in run.exits} == {1}
    assert all("RuntimeError: the program has a mistake" in item.error for item in run.exits)
    assert "1: Traceback (most recent call last):" in run.log


@pytest.mark.spec("K-56")
def test_a_program_that_ends_again_and_again_goes_on_when_the_user_takes_it_back() -> None:
    broken: dict[str, Any] = {**FIRST, "data": {"mistake": "yes"}}
    changed = Step("break", (Apply(broken),), about="data.mistake")
    back = Step("break, back", (Apply({**FIRST, "data": {"also": "fourth"}}),), about="data.mistake")
    run = perform(task("panic if asked", steps=(CREATE, changed, back, DELETE), quiet=LEAST))
    assert [checkpoint.step for checkpoint in run.checkpoints] == ["create", "break", "break, back", "delete"]
    assert [item.step for item in run.exits] == [1, 1, 1, 1]
    assert all(checkpoint.rested for checkpoint in run.checkpoints)
    assert (5, "create", "fourth") in written(run), "it was started once more, and did what it had to do"


@pytest.mark.spec("K-56")
def test_a_program_that_ends_with_every_setting_is_given_up() -> None:
    changes = [Step(f"again {number}", (Apply({**FIRST, "data": {"number": str(number)}}),)) for number in range(6)]
    run = perform(task("panic later", steps=(CREATE, *changes), quiet=LEAST))
    assert len(run.exits) == 4 * (1 + REVIVALS)
    assert len(run.checkpoints) == 2 + REVIVALS


@pytest.mark.spec("K-05")
def test_a_program_that_cannot_be_started_is_a_problem_of_the_run() -> None:
    wanted = task()
    absent = Task(
        subject=type(wanted.subject)(command=("/nowhere/manager",)), setup=wanted.setup, steps=wanted.steps,
        plan=wanted.plan,
    )  # fmt: skip
    assert "/nowhere/manager" in asyncio.run(run_child(absent)).problem


@pytest.mark.spec("K-05")
def test_what_a_program_started_dies_with_it(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reading, True)
    perform(task(PIPE=str(pipe)))
    assert read_all(reading) == b"%d\n" % os.getpid()  # the end: neither the program nor its child has it open


@pytest.mark.spec("K-05")
def test_a_program_does_not_outlive_a_worker_that_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "konverge.check.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == READY
        worker.stdin.write(encode(task(PIPE=str(pipe))) + b"\n")
        worker.stdin.flush()
        reading = os.open(pipe, os.O_RDONLY)  # until the program opens its end
        assert os.read(reading, 100) == b"%d\n" % worker.pid
        worker.kill()
        assert read_all(reading) == b""


def read_all(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


@pytest.mark.spec("K-04")
def test_the_program_has_the_permissions_of_its_account_alone() -> None:
    meta = {"name": "operator", "namespace": "default"}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator"}],
    }
    objects, account = granted([role, binding], "default")
    run = perform(task(setup=Setup(nodes=0, objects=tuple(objects), account=account)))
    refused = [item for item in run.exchanges if item.status == 403]
    assert [(item.verb, item.resource, item.name) for item in refused[:1]] == [("create", "/configmaps", "second")]
    assert "system:serviceaccount:default:operator" in refused[0].error
    assert run.exits[0].code == 3


@pytest.mark.spec("K-07")
def test_the_lock_of_a_crashed_leader_is_free_for_the_next() -> None:
    run = perform(task("elected", Plan("crash", (Crash(SECOND),)), limit=30.0))
    assert written(run) == [(1, "create", "second"), (2, "create", "third")]


@pytest.mark.spec("K-06")
def test_writes_that_change_nothing_are_noise_at_rest() -> None:
    run = perform(task("no-ops"))
    assert run.checkpoints[0].rested
    assert run.checkpoints[0].noise.keys() == {
        "create configmaps default/second", "patch configmaps default/second",
        "create configmaps default/third", "patch configmaps default/third",
    }  # fmt: skip
    assert perform(task()).checkpoints[0].gap > 0
