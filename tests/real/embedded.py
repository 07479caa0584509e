"""Our server as a process of its own, and the real command line tools that are pointed at it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 180.0
"""Seconds for one command, and for what is waited for by repeating one."""


@contextmanager
def konverge_process(*arguments: str, stop: signal.Signals = signal.SIGTERM) -> Iterator[str]:
    """A command of ours that runs until the block ends; gives the first line that it prints."""
    command = [sys.executable, "-m", "konverge.cli.main", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline()
        finally:
            process.send_signal(stop)


@contextmanager
def embedded_server(folder: Path, *, tls: bool = True) -> Iterator[Path]:
    """`konverge apiserver`; gives the path of its kubeconfig."""
    kubeconfig = folder / "kubeconfig"
    with konverge_process("apiserver", "--tls" if tls else "--no-tls", "--kubeconfig", str(kubeconfig)) as line:
        assert line.startswith("ready "), f"our server did not start: {line!r}"
        yield kubeconfig


@dataclass(frozen=True)
class Tool:
    """kubectl or helm, in a home folder of its own, so that neither caches nor settings of the user matter."""

    program: Path
    kubeconfig: Path
    home: Path
    namespace: str = ""

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)}
        scope = ["--namespace", self.namespace] if self.namespace else []
        command = [str(self.program), *arguments, *scope]
        return subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, timeout=LIMIT)

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        """What a command prints; it must succeed."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode == 0, f"{arguments}: {done.stderr}{done.stdout}"
        return done.stdout.strip()

    def fails(self, *arguments: str, stdin: str = "") -> str:
        """The error that a command prints; it must fail."""
        done = self.run(*arguments, stdin=stdin)
        assert done.returncode != 0, f"{arguments} succeeded: {done.stdout}"
        return done.stderr.strip()

    def until(self, holds: Callable[[str], Any], *arguments: str) -> str:
        """What a command prints, as soon as that is as expected: for what another program does in its own time."""
        end = time.monotonic() + LIMIT
        while True:
            done = self.run(*arguments)
            if done.returncode == 0 and holds(done.stdout):
                return done.stdout.strip()
            assert time.monotonic() < end, f"{arguments}: not as expected within {LIMIT} s: {done.stderr}{done.stdout}"

    def serves(self, definition: str) -> None:
        """Wait until a custom resource can be used: a real server serves it a moment after it is established."""
        self("wait", "--for=condition=Established", f"crd/{definition}", f"--timeout={LIMIT / 2:.0f}s")
        self.until(lambda printed: True, "get", definition, "--all-namespaces")

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))
