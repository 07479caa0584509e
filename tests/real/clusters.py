"""Whole clusters, each from our or the real API server with our or the real controllers; all have two nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.real.clients import programs
from tests.real.clients.controllers import real_controllers
from tests.real.embedded import Tool, embedded_server, konverge_process
from tools.control_plane import ControlPlane

_NODES = ("node-1", "node-2")


@contextmanager
def ours_on_ours(binaries: Path, folder: Path) -> Iterator[Path]:
    kubeconfig = folder / "kubeconfig"
    with _our_parts("up", "--operators", "none", "--nodes", "2", "--kubeconfig", str(kubeconfig)):
        yield kubeconfig


@contextmanager
def ours_on_real(binaries: Path, folder: Path) -> Iterator[Path]:
    with (
        ControlPlane(binaries) as plane,
        _our_parts("controllers", "--nodes", "2", "--kubeconfig", str(plane.kubeconfig)),
    ):
        yield plane.kubeconfig


@contextmanager
def real_on_ours(binaries: Path, folder: Path) -> Iterator[Path]:
    with embedded_server(folder) as kubeconfig, _real_parts(binaries, kubeconfig, folder):
        yield kubeconfig


@contextmanager
def real_on_real(binaries: Path, folder: Path) -> Iterator[Path]:
    with ControlPlane(binaries) as plane, _real_parts(binaries, plane.kubeconfig, folder):
        yield plane.kubeconfig


@contextmanager
def _our_parts(command: str, *arguments: str) -> Iterator[None]:
    with konverge_process(command, *arguments) as line:
        assert line.startswith("ready ")
        yield


@contextmanager
def _real_parts(binaries: Path, kubeconfig: Path, folder: Path) -> Iterator[None]:
    for name in ("kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages.yaml", "kubectl"):
        programs.require(binaries, name)
    with real_controllers(binaries, kubeconfig, folder):
        kubectl = Tool(binaries / "kubectl", kubeconfig, folder)
        for name in _NODES:
            kubectl("create", "-f", "-", stdin=json.dumps(_node(name)))
        kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=150s")
        yield


def _node(name: str) -> dict[str, Any]:
    room = {"cpu": "32", "memory": "256Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }
