"""The test suites of other people's clients for Python, on the embedded cluster; of lightkube, whose suite is in no
distribution, what it shows of a cluster.

What is known to fail has its reason here; every other failure is one of ours. A test that fails is run again, as these
projects do it: their own time limits are short for a busy machine. Containers of `ubuntu` are processes, all others are
simulated.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.clients import programs
from tests.real.clients.suites import STAND_INS, Results, Suite
from tests.real.embedded import Tool, konverge_process

pytestmark = [pytest.mark.spec("S-33"), pytest.mark.limit(900)]

KR8S = Suite(
    "kr8s",
    "0.20.15",
    needs=(
        *("pytest", "pytest-asyncio", "pytest-timeout", "pytest-rerunfailures", "trio", "lightkube", "kubernetes"),
        *("kubernetes-asyncio", "kubernetes-validate", "pykube-ng", "httpx-ws<0.9"),
    ),
)
_PORT_80 = "needs nginx on port 80 of a pod, which only root may open"
KR8S_KNOWN = {
    "test_api::test_api_resources": "expects one resource called pods; the metrics API has one too",
    "test_objects::test_cast_to_from_kubernetes": "a module that the package kubernetes does not have any more",
    "test_objects::test_pod_exec_not_ready": "expects that a pod is not ready at once",
    "test_objects::test_adoption": _PORT_80,
    "test_objects::test_service_exec": _PORT_80,
    "test_objects::test_multiple_bind_addresses_port_forward": _PORT_80,
    "test_objects::test_pod_port_forward_context_manager": _PORT_80,
    "test_objects::test_pod_port_forward_context_manager_sync": _PORT_80,
    "test_objects::test_pod_port_forward_start_stop": _PORT_80,
    "test_objects::test_service_port_forward_context_manager": _PORT_80,
    "test_objects::test_service_port_forward_start_stop": _PORT_80,
}
KR8S_PASS = 281

KOPF = Suite(
    "kopf",
    "1.45.2",
    needs=(
        *("pytest", "pytest-asyncio", "pytest-aiohttp", "pytest-mock", "pytest-timeout", "pytest-rerunfailures"),
        *("astpath[xpath]", "lxml", "kmock", "looptime", "freezegun", "kubernetes", "pykube-ng", "certvalidator"),
        "certbuilder",
    ),
)
KOPF_KNOWN = {
    "test_examples::test_all_examples_are_runnable[17-admission]": "its certificate library does not know OpenSSL 3",
}
KOPF_PASS = 16
"""Operators of its examples, each of which is run, given an object and asked to delete it again."""
RULES = """
- image: "ubuntu:*"
  container_command: replace
"""


@pytest.fixture(scope="module")
def cluster(kubectl: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    folder = tmp_path_factory.mktemp("suites")
    rules, kubeconfig = folder / "rules.yaml", folder / "kubeconfig"
    rules.write_text(RULES)
    up = ["up", "--processes", str(rules), "--operators", "none", "--nodes", "2", "--kubeconfig", str(kubeconfig)]
    with konverge_process(*up, "--output", "json") as line:
        assert line.startswith("{")
        tool = Tool(kubectl, kubeconfig, folder)
        # The suites expect that something runs there, as it does in their clusters.
        tool("-n", "kube-system", "create", "deployment", "metrics-server", "--image=metrics-server")
        tool("-n", "kube-system", "rollout", "status", "deployment/metrics-server", "--timeout=150s")
        yield tool


def run(suite: Suite, cluster: Tool, *arguments: str) -> Results:
    suite.prepare()
    return suite.run(
        *arguments,
        results=cluster.home / f"{suite.package}.xml",
        limit=840,
        KUBECONFIG=str(cluster.kubeconfig),
        PATH=os.pathsep.join((str(cluster.program.parent), os.environ["PATH"])),
        PYTHONPATH=str(STAND_INS),
    )


@pytest.mark.takes(600)
def test_the_suite_of_kr8s(cluster: Tool) -> None:
    results = run(KR8S, cluster, "-p", "pytest_kind.plugin", "--timeout=120", "--reruns=2", "kr8s")
    assert not results.surprises(KR8S_KNOWN)
    assert len(results.passed) >= KR8S_PASS, sorted(results.passed)


@pytest.mark.takes(300)
def test_the_suite_of_kopf_that_needs_a_cluster(cluster: Tool) -> None:
    KOPF.prepare()
    peerings = str(KOPF.sources / "peering.yaml")
    cluster.run("apply", "-f", peerings)  # the definitions; the objects of their kinds come with the second one
    cluster("wait", "--for=condition=Established", "customresourcedefinitions", "--all", "--timeout=150s")
    cluster("apply", "-f", peerings)
    results = run(KOPF, cluster, "-o", "timeout=0", "--reruns=2", "--only-e2e", "tests/e2e", "examples")
    assert not results.surprises(KOPF_KNOWN)
    assert len(results.passed) >= KOPF_PASS, sorted(results.passed)


def test_lightkube_on_a_cluster(cluster: Tool, python_clients: Path) -> None:
    program = programs.SOURCES / "python" / "light_cluster.py"
    steps = programs.run(python_clients / "python", program, kubeconfig=cluster.kubeconfig)
    assert steps == ["conditions", "logs", "commands", "patches", "collections", "custom"]
