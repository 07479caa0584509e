"""Peers in processes of their own, which get their orders line by line.

Each worker stays alive for the whole run, so that imports and first uses are paid before anything is measured; the
rounds go from peer to peer, so that whatever else the machine does hits all of them alike. CPU time is that of the
worker's whole process, user and system, all its threads.

An action is measured from its beginning to its end. A peer that calls `measure_from_here` in the midst of one moves the
beginning there, and the benchmark learns of it (`Worker.start` returns); `measure_to_here` moves the end. That is how a
watch is measured without its opening and closing, and how the benchmark knows when to make the changes.
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
        """Do an action once; returns the CPU seconds it took."""
        self._order(action, **arguments)
        return self.finish()

    def start(self, action: str, **arguments: Any) -> None:
        """Start an action; returns when the measurement has begun."""
        self._order(action, **arguments)
        self._answer()

    def finish(self) -> float:
        """Wait for the end of the action that was started; its CPU seconds."""
        while "cpu" not in (answer := self._answer()):
            pass
        return float(answer["cpu"])

    def peak_bytes(self) -> int:
        self._order("memory")
        return int(self._answer()["peak"])

    def _order(self, action: str, **arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"action": action, **arguments}) + "\n")
        self._process.stdin.flush()

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


class _Span:
    """The part of an action that is measured, in CPU seconds of this process."""

    began = 0.0
    ended: float | None = None

    @classmethod
    def begin(cls) -> None:
        cls.began, cls.ended = cpu_seconds(), None

    @classmethod
    def spent(cls) -> float:
        return (cls.ended or cpu_seconds()) - cls.began


def measure_from_here() -> None:
    """Called by a peer in the midst of an action: what it did so far does not count."""
    _say({"began": True})
    _Span.began = cpu_seconds()


def measure_to_here() -> None:
    """Called by a peer: what it does in this action from now on does not count."""
    _Span.ended = cpu_seconds()


def serve(peer: Any, run: Callable[[Any], Any] | None = None) -> None:
    """The worker's side: methods of `peer` are the actions; `prepare_X`, where there is one, goes unmeasured.

    `run` drives what a method returns when that is awaitable.
    """
    drive: Callable[[Any], Any] = run or asyncio.Runner().run

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
        _Span.begin()
        call(action, order)
        _say({"cpu": _Span.spent()})
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
