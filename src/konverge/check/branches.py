"""Runs on virtual time branch off the undisturbed run, at the last rest before what they disturb.

The undisturbed run left a process at each rest (`konverge.check.trunk`), which is asked here for runs. Where there is
none, or it does not answer, a run has its whole workload, and so has one of other steps.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from konverge.check.model import Plan, Run, Task, decode_run, encode
from konverge.check.performing import failed
from konverge.check.plans.length import Length
from konverge.check.reference import Reference
from konverge.check.trunk import path_of

LONGEST = 600.0
"""Seconds for a run; then it is given up."""


class _Runner(Protocol):
    def run(self, task: Task) -> Run: ...


class _Cancelled(Exception):
    """Nobody waits for this run any more."""


class Branches:
    """A runner for plans. `plan` gives a plan the step with which it begins."""

    def __init__(self, runner: _Runner, base: Task, reference: Reference, folder: Path) -> None:
        """`base` is the task of the undisturbed run that has left its processes in the folder."""
        self._runner, self._base, self._folder = runner, base, folder
        self._length = Length(reference)
        self._rests = sorted(int(path.name) for path in folder.iterdir())
        self._under_way: set[socket.socket] = set()
        self._cancelled: set[socket.socket] = set()
        self._changing = threading.Lock()

    def plan(self, plan: Plan) -> Plan:
        """The plan with the last beginning that leaves everything as it is."""
        latest = self._length.beginning(plan)
        begin = max((step for step in self._rests if step <= latest), default=0)
        return msgspec.structs.replace(plan, begin=begin)

    def run(self, task: Task) -> Run:
        plan = self.plan(task.plan)  # again: of one that was made smaller the beginning is another
        branches = plan.begin in self._rests and msgspec.structs.replace(task, plan=self._base.plan) == self._base
        try:
            run = self._branched(plan) if branches else None
        except _Cancelled:
            return failed(task, "the check has ended")
        except TimeoutError:
            return failed(task, f"a run did not end within {LONGEST:.0f} s, and was given up")
        except OSError:  # its process is gone, with the worker that began it
            run = None
        return run or self._runner.run(task)

    def _branched(self, plan: Plan) -> Run | None:
        with self._connected(plan.begin) as connection:
            connection.sendall(encode(plan) + b"\n")
            with connection.makefile("rb") as answer:
                line = answer.readline()
        return decode_run(line) if line.endswith(b"\n") else None

    @contextmanager
    def _connected(self, step: int) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(LONGEST)
            connection.connect(str(path_of(self._folder, step)))
            with self._changing:
                self._under_way.add(connection)
            try:
                yield connection
            finally:
                with self._changing:
                    self._under_way.discard(connection)
                    was_cancelled = connection in self._cancelled
                    self._cancelled.discard(connection)
                if was_cancelled:
                    raise _Cancelled

    def cancel(self) -> None:
        """End the runs that other threads have under way: a branch ends with its connection."""
        with self._changing:
            for connection in self._under_way:
                self._cancelled.add(connection)
                with suppress(OSError):  # its process has ended by itself
                    connection.shutdown(socket.SHUT_RDWR)
