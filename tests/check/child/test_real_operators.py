"""Operators in Go as child processes: a small one of today, built here, and an old release where it is at hand.

OPERATORS_HOME is a folder with `bin/rabbitmq-1.6.0` and its module in `src/rabbitmq-1.6.0`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.check.accounts import granted
from konverge.check.model import Crash, Obj, Place, Plan, Run, Setup, Subject, Task
from konverge.check.oracles import judge
from konverge.check.profile import load
from konverge.check.real_rest import quiet_after
from konverge.check.reference import reference_of
from konverge.check.workers import Workers
from konverge.check.workload import basic

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[3]
OPERATORS = os.environ.get("OPERATORS_HOME", "")
DEFINITION: Obj = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "benches.bench.konverge.dev"},
    "spec": {
        "group": "bench.konverge.dev",
        "scope": "Namespaced",
        "names": {"plural": "benches", "kind": "Bench"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}  # fmt: skip
SAMPLE: Obj = {
    "apiVersion": "bench.konverge.dev/v1",
    "kind": "Bench",
    "metadata": {"name": "first", "namespace": "default"},
    "spec": {"payload": "text"},
}
CREATION = Place("create", "/configmaps", "default", "first")


def roles(*verbs: str) -> tuple[list[Obj], str]:
    """An account that may do this to ConfigMaps, and all to its own kind."""
    rules: list[dict[str, Any]] = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", *verbs]},
        {"apiGroups": ["bench.konverge.dev"], "resources": ["*"], "verbs": ["*"]},
    ]
    meta = {"name": "bench"}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench"},
        "subjects": [{"kind": "ServiceAccount", "name": "bench", "namespace": "bench-system"}],
    }
    return granted([role, binding], "default")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go")
    source = ROOT / "bench" / "peers" / "go-controller-runtime"
    built = tmp_path_factory.mktemp("go") / "bench-operator"
    done = subprocess.run([go, "build", "-o", str(built), "./typed"], cwd=source, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"the small operator cannot be built: {done.stderr[-300:]}")
    return built


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(2) as made:
        yield made


def task(program: Path, plan: Plan, *verbs: str, quiet: float = 1.5) -> Task:
    objects, account = roles(*verbs)
    subject = Subject(command=(str(program),), environment={"BENCH_NS": "default"})
    setup = Setup(objects=(DEFINITION, *objects), account=account, nodes=0)
    return Task(subject=subject, setup=setup, steps=basic([SAMPLE]), plan=plan, quiet=quiet)


def parallel(workers: Workers, tasks: list[Task]) -> list[Run]:
    with ThreadPoolExecutor(workers.jobs) as threads:
        return list(threads.map(workers.run, tasks))


def serious(run: Run, first: Run, second: Run) -> list[str]:
    return [alarm.sentence for alarm in judge(run, reference_of(first, second)) if alarm.severity != "low"]


@pytest.mark.spec("K-05")
def test_a_small_go_operator_survives_a_crash_after_its_creation(program: Path, workers: Workers) -> None:
    plans = [Plan("reference"), Plan("reference"), Plan("crash", (Crash(CREATION),))]
    first, second, crashed = parallel(workers, [task(program, plan, "create", "update") for plan in plans])
    assert [run.problem for run in (first, second, crashed)] == ["", "", ""]
    made = [str(item.place) for item in first.exchanges if item.place is not None and item.incarnation == 1]
    assert made[0] == str(CREATION)  # its name is read from a protobuf body
    assert all(checkpoint.rested for checkpoint in first.checkpoints)
    assert crashed.hit == [f"crash after {CREATION}"]
    assert {item.incarnation for item in crashed.exchanges} == {1, 2}
    assert serious(crashed, first, second) == []


@pytest.mark.spec("K-04")
def test_a_missing_permission_of_a_go_operator_shows(program: Path, workers: Workers) -> None:
    run = workers.run(task(program, Plan("reference")))  # it may not create
    refused = [item for item in run.exchanges if item.status == 403]
    assert (refused[0].verb, refused[0].resource, refused[0].name) == ("create", "/configmaps", "first")
    assert "system:serviceaccount:bench-system:bench" in refused[0].error


@pytest.mark.skipif(not (OPERATORS and Path(OPERATORS, "bin/rabbitmq-1.6.0").exists()), reason="needs OPERATORS_HOME")
@pytest.mark.spec("K-05", "K-06", "K-07")
def test_rabbitmq_crashes_and_comes_to_the_same_rest(workers: Workers) -> None:
    profile = load(ROOT / "bench" / "check" / "rabbitmq" / "check.toml")
    base = Task(
        subject=profile.subject, setup=profile.setup, steps=basic(profile.samples), plan=Plan("reference"), quiet=3.0
    )
    first, second = parallel(workers, [base, base])
    assert first.problem == second.problem == ""
    assert [checkpoint.rested for checkpoint in first.checkpoints] == [True, True, True]
    assert first.exits == []
    assert not any(item.status == 403 for item in first.exchanges)
    quiet = quiet_after([first, second])
    wanted = ("create apps/statefulsets default/rabbit-server", "delete apps/statefulsets default/rabbit-server")
    places = [item.place for item in first.exchanges if item.place is not None and str(item.place) in wanted]
    tasks = [msgspec.structs.replace(base, quiet=quiet, plan=Plan("crash", (Crash(place),))) for place in places]
    for run in parallel(workers, tasks):
        assert not run.missed
        assert {item.incarnation for item in run.exchanges} == {1, 2}  # the second led at once
        assert serious(run, first, second) == []
        assert run.cpu < 12  # the bar is 4; a loaded machine counts more
