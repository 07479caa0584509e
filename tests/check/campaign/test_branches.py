"""Runs on virtual time that branch off the undisturbed one are as if they had begun with the first step."""

from __future__ import annotations

import os
import select
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.check import isolation, trunk
from konverge.check.branches import Branches
from konverge.check.campaign import Campaign, Options
from konverge.check.model import Apply, Edit, OperatorAway, Plan, Ref, Run, Step, Subject, Task, TimePasses, encode
from konverge.check.oracles import judge
from konverge.check.plans import all_plans
from konverge.check.reference import Reference, reference_of
from konverge.check.subjects import InThisProcess
from konverge.check.trunk import can_fork, path_of
from konverge.check.workers import Workers
from tests.check.campaign import keeper
from tests.check.campaign.test_campaign import SETUP, STEPS, TARGET, planned

pytestmark = [
    pytest.mark.spec("K-113"),
    pytest.mark.skipif(not can_fork(), reason="needs Linux: a process ends with its parent"),
]

BASE = Task(subject=Subject(target=TARGET), setup=SETUP, steps=STEPS, plan=Plan("reference"))
CREATE, DELETE, AGAIN = STEPS
OTHER = Step("other", (Apply({**keeper.SAMPLE, "spec": {"text": "other"}}),))


class Counting:
    """Carries out tasks in a worker, and counts them."""

    def __init__(self, workers: Workers) -> None:
        self._workers, self.whole = workers, 0

    def run(self, task: Task) -> Run:
        self.whole += 1
        return self._workers.run(task)


class World:
    """An undisturbed run that has left its processes, and what can begin there."""

    def __init__(self, workers: Workers, folder: Path) -> None:
        self.folder = folder
        self.workers = Counting(workers)
        self.trunk = workers.run(msgspec.structs.replace(BASE, branches=str(folder)))
        self.reference: Reference = reference_of(self.trunk, workers.run(BASE))
        self.branches = Branches(self.workers, BASE, self.reference, folder)

    def begun(self, plan: Plan) -> tuple[Run, int]:
        """Its run, and the step with which it began."""
        plan = self.branches.plan(plan)
        return self.branches.run(msgspec.structs.replace(BASE, plan=plan)), plan.begin

    def whole(self, plan: Plan) -> Run:
        return InThisProcess(keeper.wrong).run(msgspec.structs.replace(BASE, plan=plan))


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(1, isolated=False) as pool:
        yield pool


@pytest.fixture
def world(workers: Workers, tmp_path: Path) -> Iterator[World]:
    (tmp_path / "b").mkdir()
    yield World(workers, tmp_path / "b")
    shutil.rmtree(tmp_path / "b", ignore_errors=True)


def told(run: Run) -> bytes:
    """All of a run but what it cost, and where it began."""
    plan = msgspec.structs.replace(run.plan, begin=0)
    return encode(msgspec.structs.replace(run, plan=plan, seconds=0.0, cpu=0.0))


def test_a_process_stays_at_every_rest_and_the_run_is_as_without_them(world: World) -> None:
    assert sorted(path.name for path in world.folder.iterdir()) == ["0", "1", "2"]
    assert told(world.trunk) == told(world.whole(Plan("reference")))
    assert world.trunk.cpu > 0


def test_every_plan_gives_the_same_run_to_the_byte(world: World) -> None:
    """Also several from one process, and a plan that disturbs what is before the last rest."""
    plans = all_plans(world.reference)
    second = Ref("/configmaps", "default", "note-second")
    plans += [
        Plan("edits", (Edit(second, step=0, patch=None),)),
        Plan("edits", (Edit(second, step=2, patch={"data": {"text": "mine"}}),)),
        Plan("crash", (OperatorAway(step=1, last=1),)),
        Plan("time", (TimePasses(step=1, seconds=3600.0),)),
        Plan("time", (TimePasses(step=1, seconds=60.0, away=True),)),
        Plan("input", steps=(CREATE, OTHER, CREATE)),
        Plan("input", steps=(OTHER, CREATE)),
        Plan("crash", first=2),
    ]
    begun: dict[int, int] = {}
    for plan in plans:
        run, step = world.begun(plan)
        assert told(run) == told(world.whole(plan)), plan
        begun[step] = begun.get(step, 0) + 1
    assert min(begun.get(step, 0) for step in (0, 1, 2)) >= 2
    assert len(plans) > 20
    assert world.workers.whole == 0


def test_a_branch_costs_what_it_does_itself(world: World) -> None:
    late, step = world.begun(Plan("edits", (Edit(Ref("/configmaps", "default", "note-first"), step=1, patch=None),)))
    assert step == 2
    assert 0 < late.cpu < world.trunk.cpu
    assert 0 < late.seconds < world.trunk.seconds


def test_where_no_process_is_left_a_run_is_whole(world: World) -> None:
    plan = Plan("time", (TimePasses(step=1, seconds=3600.0),))
    path_of(world.folder, 2).unlink()
    run, _ = world.begun(plan)
    assert world.workers.whole == 1
    assert told(run) == told(world.whole(plan))
    assert Branches(world.workers, BASE, world.reference, world.folder).plan(plan).begin == 1


def test_other_steps_are_a_whole_run_and_a_beginning_that_does_not_fit_is_not_taken(world: World) -> None:
    shorter = msgspec.structs.replace(BASE, steps=(CREATE,), plan=Plan("crash"))
    assert told(world.branches.run(shorter)) == told(InThisProcess(keeper.wrong).run(shorter))
    assert world.workers.whole == 1
    wrong = Plan("edits", (Edit(Ref("/configmaps", "default", "note-first"), step=0, patch=None),), begin=2)
    run = world.branches.run(msgspec.structs.replace(BASE, plan=wrong))
    assert told(run) == told(world.whole(wrong))
    assert (run.plan.begin, world.workers.whole) == (1, 1)


def test_a_process_that_does_not_answer_costs_nothing_but_time(world: World) -> None:
    path = path_of(world.folder, 0)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        closing = threading.Thread(target=lambda: listener.accept()[0].close())
        closing.start()
        run, _ = world.begun(Plan("input", steps=(OTHER,)))
        closing.join()
    assert (run.problem, world.workers.whole) == ("", 1)


def test_what_is_under_way_ends_when_the_search_does(world: World) -> None:
    path = path_of(world.folder, 0)
    path.unlink()
    runs: list[Run] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        waits = threading.Thread(target=lambda: runs.append(world.begun(Plan("input", steps=(OTHER,)))[0]))
        waits.start()
        connection, _ = listener.accept()
        with connection:
            assert connection.recv(1) == b"{"
            world.branches.cancel()
            waits.join()
    assert [run.problem for run in runs] == ["the check has ended"]
    assert world.workers.whole == 0


def of_process(connection: socket.socket) -> int:
    """A descriptor that is ready when the process on the other side has ended."""
    (pid, _, _) = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return os.pidfd_open(pid)


def test_the_processes_end_with_their_folder(world: World) -> None:
    descriptors = []
    for number in range(3):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path_of(world.folder, number)))
            descriptors.append(of_process(connection))
    shutil.rmtree(world.folder)
    for descriptor in descriptors:
        assert select.select([descriptor], [], [], 30.0)[0]
        os.close(descriptor)


def test_the_processes_end_with_their_worker(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with Workers(1, isolated=False) as pool:
        pool.run(msgspec.structs.replace(BASE, branches=str(tmp_path / "b")))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path_of(tmp_path / "b", 2)))
            descriptor = of_process(connection)
    assert select.select([descriptor], [], [], 30.0)[0]
    os.close(descriptor)


def test_a_long_workload_leaves_no_more_than_so_many(
    monkeypatch: pytest.MonkeyPatch, workers: Workers, tmp_path: Path
) -> None:
    """In this process, since the number is changed; pytest has threads of its own sometimes, a fork has none."""
    monkeypatch.setattr(trunk, "MOST", 2)
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    run = InThisProcess(keeper.wrong).run(msgspec.structs.replace(BASE, branches=str(tmp_path)))
    assert len(run.checkpoints) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "2"]
    shutil.rmtree(tmp_path)


def test_an_operator_with_threads_is_not_forked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(threading, "active_count", lambda: 2)
    run = InThisProcess(keeper.wrong).run(msgspec.structs.replace(BASE, branches=str(tmp_path)))
    assert len(run.checkpoints) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    run = InThisProcess(keeper.wrong).run(msgspec.structs.replace(BASE, branches=str(folder)))
    assert len(run.checkpoints) == 3
    assert list(folder.iterdir()) == []


def test_where_no_more_processes_are_allowed_a_run_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(trunk, "_fork", refused)
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    run = InThisProcess(keeper.wrong).run(msgspec.structs.replace(BASE, branches=str(tmp_path)))
    assert (len(run.checkpoints), run.problem) == (3, "")
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_an_operator_that_cannot_start_says_so(tmp_path: Path) -> None:
    setup = msgspec.structs.replace(
        SETUP, objects=({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Not_A_Name"}},)
    )
    task = msgspec.structs.replace(BASE, setup=setup, branches=str(tmp_path))
    assert "refused Namespace" in InThisProcess(keeper.wrong).run(task).problem


@pytest.mark.skipif(bool(isolation.why_not()), reason=f"one run at a time: {isolation.why_not()}")
def test_a_check_finds_the_same_with_branches() -> None:
    options = Options(only=("crash",))
    more: dict[str, Any] = {"judge": judge, "planner": planned}
    with Workers(2) as pool:
        outcome = Campaign(BASE.subject, SETUP, STEPS, pool, options, **more).check()
    here = Campaign(BASE.subject, SETUP, STEPS, InThisProcess(keeper.wrong), options, **more).check()
    assert [item.sentence for item in outcome.findings] == [item.sentence for item in here.findings]
    assert [item.confirmed for item in outcome.findings] == [item.confirmed for item in here.findings]
    assert any(item.plan.begin for item in outcome.performed)
    assert outcome.base.branches == "", "a replay needs no process of this check"
