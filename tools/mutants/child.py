"""A forked process that runs the tests of a mutant, and what its parent sees of it.

A mutant that hangs is killed in both senses. Time on the clock says little on a busy machine, so a process is ended
when it has used more CPU time than the limit, or when it has used none for a while: then it waits for something that
never comes.
"""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import Any

IDLE = 8.0
"""Seconds without any CPU time after which a process hangs. No test sleeps."""
STEP = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """`limit` is in seconds of CPU time."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._read, self._write = os.pipe()
        self._pid = 0

    def fork(self) -> int:
        """Zero in the child, whose output goes nowhere and whose processes form a group of their own."""
        self._pid = os.fork()
        if self._pid:
            os.close(self._write)
            return self._pid
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.set_inheritable(self._write, False)
        return 0

    def report(self, text: str) -> None:
        os.write(self._write, f"{text}\n".encode())

    def outcome(self, tests: list[str]) -> dict[str, Any]:
        """Waits for the end of the child: killed by which test, survived, timed out, or invalid."""
        lines = self._lines()
        last = lines[-1] if lines else ""
        kind, _, rest = last.partition(" ")
        if kind == "survived":
            return {"outcome": "survived"}
        if kind == "invalid":
            return {"outcome": "invalid", "reason": rest}
        test = tests[int(rest)] if rest.isdigit() else ""
        return {"outcome": "timeout" if kind == "timeout" else "killed", "test": test}

    def _lines(self) -> list[str]:
        text = b""
        timed_out = False
        used, since = -1.0, time.monotonic()
        while True:
            if select.select([self._read], [], [], STEP)[0]:
                data = os.read(self._read, 4096)
                if not data:
                    break
                text += data
                if b"\nfailed" in b"\n" + text or b"survived" in text or b"invalid" in text:
                    break
            now = _cpu_seconds(self._pid)
            if now > used + 0.02:
                used, since = now, time.monotonic()
            if now > self._limit or time.monotonic() - since > IDLE:
                timed_out = True
                break
        self._end()
        lines = text.decode().splitlines()
        if timed_out and lines:
            lines.append(lines[-1].replace("test", "timeout"))
        return lines

    def _end(self) -> None:
        os.close(self._read)
        try:
            os.killpg(self._pid, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self._pid, signal.SIGKILL)  # it has not become the leader of its group yet
        os.waitpid(self._pid, 0)


def _cpu_seconds(pid: int) -> float:
    """What the process has used so far, with its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended, or the system has no /proc: then the clock alone decides
        return 0.0
    return sum(int(value) for value in fields[11:15]) / _TICKS
