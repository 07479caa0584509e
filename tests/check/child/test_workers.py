"""Workers: warm, isolated, and replaceable."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from konverge.check import isolation
from konverge.check import workers as module
from konverge.check.accounts import granted
from konverge.check.in_process import run_in_process
from konverge.check.model import Plan, Run, Setup, Subject, Task
from konverge.check.workers import MEMORY, PER_PROCESSOR, Workers, usual_jobs
from konverge.check.workload import basic
from konverge.operators.catalog import find
from tests.check.child.support import data, task, written

needs_isolation = pytest.mark.skipif(bool(isolation.why_not()), reason=f"no isolation: {isolation.why_not()}")


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as made:
        yield made


@needs_isolation
@pytest.mark.spec("K-08")
def test_parallel_runs_share_no_port_and_reach_no_network(workers: Workers) -> None:
    tasks = [task(PORT="8123"), task(PORT="8123")]
    with ThreadPoolExecutor(2) as threads:
        runs = list(threads.map(workers.run, tasks))
    for run in runs:
        assert run.problem == ""
        assert run.exits == []  # the port was free
        assert written(run) == [(1, "create", "second"), (1, "create", "third")]
        assert "unreachable" in data(run, "second")["outside"]
        assert int(data(run, "second")["pid"]) < 1000  # of a process namespace of its own
        assert run.cpu > 0


@needs_isolation
@pytest.mark.spec("K-05")
def test_a_program_in_cluster_finds_the_files_of_its_account(workers: Workers) -> None:
    objects, account = granted([], "shop", "operator")
    admin = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "operator", "namespace": "shop"}],
    }
    setup = Setup(nodes=0, objects=(*objects, admin), account=account)
    run = workers.run(task(setup=setup, in_cluster=True))
    assert run.problem == ""
    assert written(run) == [(1, "create", "second"), (1, "create", "third")]
    assert data(run, "second")["namespace"] == "shop"
    assert data(run, "second")["token"] not in ("", "none")


@needs_isolation
@pytest.mark.spec("K-84")
def test_a_program_in_cluster_without_an_account_finds_a_token_all_the_same(workers: Workers) -> None:
    run = workers.run(task(in_cluster=True))
    assert run.problem == ""
    assert data(run, "second")["token"] == "none", "clients refuse to start with an empty one"


@pytest.mark.spec("K-08")
def test_a_worker_that_dies_costs_its_run_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with Workers(1, isolated=False) as workers, ThreadPoolExecutor(1) as threads:
        assert workers.jobs == 1
        assert "one after the other" in workers.notes[0]
        dying = threads.submit(workers.run, task(PIPE=str(pipe)))
        with pipe.open("rb") as reading:  # until the program runs
            os.kill(int(reading.readline()), signal.SIGKILL)  # the worker is its parent
        assert "a worker died" in dying.result().problem
        assert workers.run(task()).problem == ""


@pytest.mark.spec("K-133")
@pytest.mark.parametrize("isolated", [False, pytest.param(True, marks=needs_isolation)])
def test_a_run_that_is_cut_off_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolated: bool) -> None:
    temporary, pipe = tmp_path / "temporary", tmp_path / "pipe"
    temporary.mkdir()
    os.mkfifo(pipe)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    with Workers(1, isolated=isolated) as workers, ThreadPoolExecutor(1) as threads:
        under_way = threads.submit(workers.run, task(PIPE=str(pipe)))
        with pipe.open("rb") as reading:  # until the program runs
            reading.readline()
        (kubeconfig,) = temporary.glob("*/*/kubeconfig")
        assert kubeconfig.stat().st_mode & 0o777 == 0o600
        workers.cancel()
        assert "a worker died" in under_way.result().problem
        assert list(temporary.iterdir()) == []
        assert workers.run(task()).problem == ""
        assert len(list(temporary.iterdir())) == 1, "that of the worker, which waits for more"
    assert list(temporary.iterdir()) == []


@pytest.mark.spec("K-08")
def test_an_operator_in_python_runs_in_a_worker_as_it_does_here(workers: Workers) -> None:
    operator = find("webapp")
    wanted = Task(
        subject=Subject(target="webapp"),
        setup=Setup(objects=tuple(operator.definitions()), nodes=1),
        steps=basic(operator.sample_objects()[:1]),
        plan=task().plan,
    )
    there, here = workers.run(wanted), run_in_process(wanted, operator)
    assert there.problem == here.problem == ""
    assert there.changes == here.changes
    assert there.checkpoints == here.checkpoints


@pytest.mark.spec("K-08")
def test_what_cannot_be_loaded_is_a_problem_of_the_run(workers: Workers) -> None:
    wanted = Task(subject=Subject(target="no_such_module:manager"), setup=Setup(), steps=(), plan=task().plan)
    assert "no_such_module" in workers.run(wanted).problem


@pytest.mark.spec("K-08")
def test_there_are_more_runs_at_once_than_processors_unless_memory_is_scarce(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
    assert usual_jobs() <= 2 * PER_PROCESSOR
    monkeypatch.setattr(module, "_free_memory", lambda: 1 << 40)
    assert usual_jobs() == 2 * PER_PROCESSOR
    monkeypatch.setattr(module, "_free_memory", lambda: 3 * MEMORY + 1)
    assert usual_jobs() == 3
    monkeypatch.setattr(module, "_free_memory", lambda: 0)
    assert usual_jobs() == 1


@pytest.mark.spec("K-08")
def test_when_the_check_has_ended_no_worker_starts() -> None:
    with Workers(1, isolated=False) as workers:
        pass
    assert workers.run(task()).problem == "the check has ended"


@pytest.mark.spec("K-77")
def test_more_runs_at_once_where_undisturbed_ones_mostly_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_processors", lambda: 2)
    monkeypatch.setattr(module, "_free_memory", lambda: 1 << 50)
    assert [module.fitting_jobs(share) for share in (0.04, 0.1, 0.025, 0.001, 0.0)] == [25, 10, 40, 48, 48]
    monkeypatch.setattr(module, "_free_memory", lambda: 15 * MEMORY)
    assert [module.fitting_jobs(share) for share in (0.04, 0.1, 0.0)] == [15, 10, 15]


@pytest.mark.spec("K-77")
@pytest.mark.parametrize(
    ("jobs", "isolated", "more", "grown"),
    [
        (0, True, {}, 25),
        (0, True, {"cpu": 20.0}, 12),
        (0, True, {"problem": "it died"}, 12),
        (0, True, {"seconds": 0.0}, 12),
        (3, True, {}, 3),
        (0, False, {}, 1),
    ],
)
def test_a_pool_grows_by_what_an_undisturbed_run_has_cost(
    monkeypatch: pytest.MonkeyPatch, jobs: int, isolated: bool, more: dict[str, Any], grown: int
) -> None:
    monkeypatch.setattr(module, "_processors", lambda: 2)
    monkeypatch.setattr(module, "_free_memory", lambda: 1 << 50)
    done = Run(plan=Plan("reference"), seed=0, steps=(), **{"seconds": 100.0, "cpu": 4.0, **more})
    monkeypatch.setattr(module._Worker, "run", lambda self, given: done)
    with Workers(jobs, isolated=isolated) as made:
        plain = made.jobs
        assert made.run(task()) is done
        assert made.jobs == plain, "of a run with a fault nothing is learned"
        for _ in range(2):
            made.run(msgspec.structs.replace(task(), snapshots=True))
        assert made.jobs == len(made._workers) == made._idle.qsize() == grown


class _Spare:
    """Says what it is told, and counts how often it begins anew."""

    def __init__(self, *shares: float | None) -> None:
        self.shares, self.restarts = list(shares), 0

    def share(self) -> float | None:
        return self.shares.pop(0)

    def restart(self) -> None:
        self.restarts += 1


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Workers]:
    """Pools whose workers are all at work but for one."""
    monkeypatch.setattr(module, "_processors", lambda: 2)
    monkeypatch.setattr(module, "_free_memory", lambda: 1 << 50)
    done = Run(plan=Plan("crash"), seed=0, steps=(), seconds=10.0, cpu=1.0)
    monkeypatch.setattr(module._Worker, "run", lambda self, given: done)

    def made(*shares: float | None, jobs: int = 0) -> Workers:
        workers = Workers(jobs, isolated=True)
        for _ in range(workers.jobs - 1):
            workers._idle.get()
        workers._spare = cast("Any", _Spare(*shares))
        return workers

    return made


@pytest.mark.spec("K-86")
def test_a_pool_grows_while_all_are_at_work_and_processors_idle(busy: Callable[..., Workers]) -> None:
    with busy(0.16) as workers:
        workers.run(task())
        assert workers.jobs == len(workers._workers) == 12 + 3
        assert workers._idle.qsize() == 1 + 3


@pytest.mark.spec("K-86")
@pytest.mark.parametrize("share", [None, 0.0, 0.15])
def test_a_pool_that_fills_the_processors_stays_as_it_is(busy: Callable[..., Workers], share: float | None) -> None:
    with busy(share) as workers:
        workers.run(task())
        assert workers.jobs == 12


@pytest.mark.spec("K-86")
def test_a_pool_that_is_not_used_does_not_grow(busy: Callable[..., Workers]) -> None:
    with busy() as workers:
        workers._idle.put(workers._workers[0])
        workers.run(task())
        assert workers.jobs == 12
        assert cast("_Spare", workers._spare).restarts == 1


@pytest.mark.spec("K-86")
def test_jobs_that_the_user_gave_stay(busy: Callable[..., Workers]) -> None:
    with busy(1.0, jobs=3) as workers:
        workers.run(task())
        assert workers.jobs == 3


@pytest.mark.spec("K-86")
def test_a_pool_grows_to_its_bound_and_to_what_memory_allows(
    busy: Callable[..., Workers], monkeypatch: pytest.MonkeyPatch
) -> None:
    with busy(*[0.9] * 8) as workers:
        sizes = []
        for _ in range(8):
            workers.run(task())
            sizes.append(workers.jobs)
            while workers._idle.qsize() > 1:
                workers._idle.get()
    assert sizes == [15, 18, 22, 27, 33, 41, 48, 48]
    with busy(0.9) as workers:
        monkeypatch.setattr(module, "_free_memory", lambda: MEMORY * 2 - 1)
        workers.run(task())
        assert workers.jobs == 13


@pytest.mark.spec("K-90")
def test_runs_under_way_can_be_cancelled_and_their_workers_start_again(monkeypatch: pytest.MonkeyPatch) -> None:
    told, write = threading.Event(), module._Worker._write

    def tells(self: module._Worker, data: bytes) -> None:
        write(self, data)
        told.set()

    monkeypatch.setattr(module._Worker, "_write", tells)
    with Workers(1) as workers, ThreadPoolExecutor(1) as thread:
        workers.cancel()  # nothing is under way
        waiting = thread.submit(workers.run, task(quiet=600.0, limit=6000.0))
        told.wait()
        workers.cancel()
        assert "a worker died" in waiting.result().problem
        assert not workers.run(task()).problem
