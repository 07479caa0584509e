"""API servers under test, ours and the real one: processes of their own, and what the system says of their cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._server import binaries
from tools import real_binaries
from tools.control_plane import ControlPlane, Process

REAL = "kube-apiserver + etcd"


@dataclass(slots=True)
class Running:
    """A server that is ready."""

    kubeconfig: Path
    processes: list[Process]
    seconds_to_ready: float

    def cpu(self) -> float:
        return sum(process.cpu_seconds() for process in self.processes)

    def megabytes(self) -> float:
        return sum(process.resident_bytes() for process in self.processes) / 2**20


@contextmanager
def real(*, durable: bool = False) -> Iterator[Running]:
    folder = binaries()
    if folder is None:
        raise SystemExit(f"no kube-apiserver to compare with: {real_binaries.find()[1]}")
    began = time.monotonic()
    with ControlPlane(folder, fsync=durable) as plane:
        yield Running(plane.kubeconfig, plane.processes, plane.ready_at - began)


@contextmanager
def ours(*, durable: bool = False) -> Iterator[Running]:
    """`konverge apiserver` over TLS, as the real one is; with a data directory when durable."""
    with (
        tempfile.TemporaryDirectory(prefix="konverge-bench-") as data,
        konverge("apiserver", "--tls", *(["--data-dir", data] if durable else [])) as running,
    ):
        yield running


@contextmanager
def konverge(*arguments: str) -> Iterator[Running]:
    """A command of ours that serves an API, from its start until the block ends."""
    with tempfile.TemporaryDirectory(prefix="konverge-bench-") as folder:
        kubeconfig, log = Path(folder) / "kubeconfig", Path(folder) / "log"
        command = [sys.executable, "-m", "konverge.cli.main", *arguments, "--kubeconfig", str(kubeconfig)]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["XDG_STATE_HOME"] = folder  # a cluster of the user may have the same name
        began = time.monotonic()
        with log.open("wb") as errors:
            popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment)
        try:
            assert popen.stdout is not None
            if not popen.stdout.readline().startswith(b"ready "):
                raise RuntimeError(f"konverge {arguments[0]} did not start: {log.read_text()}")
            ready = time.monotonic() - began
            yield Running(kubeconfig, [Process("konverge", popen, log)], ready)
        finally:
            popen.terminate()
            popen.wait(30)
            if popen.stdout is not None:
                popen.stdout.close()


SERVERS = {"konverge": ours, REAL: real}
