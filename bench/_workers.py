"""Peers in processes of their own, told what to do line by line.

Each worker stays alive for the whole run, so that imports and first uses are paid before anything is measured; the
rounds go from peer to peer, so that whatever else the machine does hits all of them alike. CPU time is that of the
worker's whole process, user and system, all its threads.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any


class Worker:
    """A peer's process, seen from the benchmark."""

    def __init__(self, name: str, module: str, *arguments: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def do(self, action: str, **arguments: Any) -> float:
        """Have it done once; returns the CPU seconds it took."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
        self._process.stdin.flush()
        return float(self._answer()["cpu"])

    def peak_bytes(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"action": "memory"}) + "\n")
        self._process.stdin.flush()
        return int(self._answer()["peak"])

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name} ended: see its error above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def serve(peer: Any, run: Callable[[Any], Any] | None = None) -> None:
    """The worker's side: methods of `peer` are the actions; `prepare_X`, where there is one, goes unmeasured.

    `run` drives what a method returns when that is awaitable.
    """
    drive = run or asyncio.Runner().run

    def call(name: str, arguments: dict[str, Any]) -> None:
        outcome = getattr(peer, name)(**arguments)
        if inspect.isawaitable(outcome):
            drive(outcome)

    _say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        action = order.pop("action")
        if action == "memory":
            _say({"peak": _peak()})
            continue
        if hasattr(peer, f"prepare_{action}"):
            call(f"prepare_{action}", order)
        before = cpu_seconds()
        call(action, order)
        _say({"cpu": cpu_seconds() - before})
    if hasattr(peer, "close"):
        call("close", {})


def _say(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def _peak() -> int:
    """Bytes resident at most. Not ru_maxrss: that one begins with what the parent had when it forked."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def on_uvloop() -> Callable[[Any], Any]:
    """A runner on uvloop, for ourselves and for every asynchronous peer alike."""
    import uvloop

    return asyncio.Runner(loop_factory=uvloop.new_event_loop).run
