"""Our controllers and the real ones, on our API server and on the real one: the same scenarios, the same states.

The scenarios were recorded with the fourth pair, the real controllers on the real server.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real.clients.controllers import crew
from tests.real.embedded import Tool, embedded_server
from tools.control_plane import ControlPlane

CORPUS = Path(__file__).parent.parent / "conformance"
SCENARIOS = ("public/controllers", "own-controllers")
RECORDED = {("gc/new-namespace", "look"), ("gc/new-namespace", "account-comes-back")}
"""These compare the certificate of the recorder's own authority."""
READINESS_GATES = {("service/not-ready", "create")}
"""Here our kubelet does more than kwok: a pod with a readiness gate that nobody opens is not ready."""


@contextmanager
def our_parts(command: str, *arguments: str) -> Iterator[None]:
    program = [sys.executable, "-m", "konverge.cli.main", command, *arguments]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready ")
            yield
        finally:
            process.terminate()


@contextmanager
def ours_on_ours(binaries: Path, folder: Path) -> Iterator[Path]:
    kubeconfig = folder / "kubeconfig"
    with our_parts("up", "--operators", "none", "--nodes", "2", "--kubeconfig", str(kubeconfig)):
        yield kubeconfig


@contextmanager
def ours_on_real(binaries: Path, folder: Path) -> Iterator[Path]:
    with (
        ControlPlane(binaries) as plane,
        our_parts("controllers", "--nodes", "2", "--kubeconfig", str(plane.kubeconfig)),
    ):
        yield plane.kubeconfig


@contextmanager
def real_on_ours(binaries: Path, folder: Path) -> Iterator[Path]:
    for name in ("kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages.yaml", "kubectl"):
        if not (binaries / name).exists():
            pytest.skip(f"no {name} in {binaries}")
    with embedded_server(folder) as kubeconfig, crew(binaries, kubeconfig, folder):
        kubectl = Tool(binaries / "kubectl", kubeconfig, folder)
        for name in ("node-1", "node-2"):
            kubectl("create", "-f", "-", stdin=json.dumps(node(name)))
        kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=60s")
        yield kubeconfig


def node(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": {"cpu": "32", "memory": "256Gi", "pods": "110"},
            "allocatable": {"cpu": "32", "memory": "256Gi", "pods": "110"},
        },
    }


@pytest.mark.limit(600)
@pytest.mark.blocking("waits for a child process that does nothing but this")
@pytest.mark.spec("R-32", "R-33", "R-34", "R-35", "R-36", "R-37", "R-38", "R-39", "R-40", "R-41", "S-16")
@pytest.mark.parametrize(
    ("pair", "different"),
    [(ours_on_ours, RECORDED | READINESS_GATES), (ours_on_real, RECORDED | READINESS_GATES), (real_on_ours, RECORDED)],
)
def test_the_same_scenarios_end_in_the_same_states(
    pair: Callable[[Path, Path], Any], different: set[tuple[str, str]], binaries: Path, tmp_path: Path
) -> None:
    with pair(binaries, tmp_path) as kubeconfig:
        for corpus in SCENARIOS:
            found = mismatches(kubeconfig, corpus, tmp_path / "result.json")
            wrong = [one for one in found if (one["scenario"], one["step"]) not in different]
            assert not wrong, f"{corpus}: {json.dumps(wrong, indent=1)}"


def mismatches(kubeconfig: Path, corpus: str, result: Path) -> list[dict[str, Any]]:
    command = ["check-controllers", "--kubeconfig", kubeconfig, "-j", "6", "--json", result, CORPUS / corpus]
    done = subprocess.run([sys.executable, CORPUS / "replay.py", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(result.read_text())["failures"]
    return found
