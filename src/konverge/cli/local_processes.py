"""Processes of this machine: whether one still runs, how much memory it has, and how to end it.

A number is not enough to know a process by: numbers come again. So a process is named by its number and by when it was
started, as the system writes that down; the text is compared, never read.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from konverge import clock

POLL = 0.05
KILLED_WITHIN = 10.0


def start_mark(pid: int) -> str:
    """When a process was started, in a form to compare; empty if there is no such process, or only its remains."""
    with suppress(FileNotFoundError, ProcessLookupError):
        # The name is in parentheses and may contain anything, also spaces and parentheses.
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    if Path("/proc/self/stat").exists():
        return ""
    state, _, started = _ps(pid, "stat=,lstart=").partition(" ")
    return "" if state.startswith("Z") else started.strip()


def is_running(pid: int, mark: str) -> bool:
    """Whether the process of this number is the one that was started then."""
    return pid > 0 and mark != "" and start_mark(pid) == mark


def resident_bytes(pid: int) -> int:
    """The memory of a process; 0 if it is not known."""
    with suppress(OSError):
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    kilobytes = _ps(pid, "rss=")
    return int(kilobytes) * 1024 if kilobytes.isdecimal() else 0


def end(pid: int, mark: str, *, within: float) -> str:
    """Ask a process to end, and wait: `ended`, `killed` if it did not in time, or `gone` if there was none."""
    if not is_running(pid, mark):
        return "gone"
    _send(pid, signal.SIGTERM)
    if ends(pid, mark, within=within):
        return "ended"
    _send(pid, signal.SIGKILL)
    ends(pid, mark, within=KILLED_WITHIN)
    return "killed"


def ends(pid: int, mark: str, *, within: float) -> bool:
    """Whether a process ends in so many seconds."""
    deadline = clock.monotonic() + within
    while is_running(pid, mark):
        if clock.monotonic() > deadline:
            return False
        time.sleep(POLL)
    return True


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _ps(pid: int, columns: str) -> str:
    """Where there is no /proc."""
    # A time is written in the language and the zone of whoever asks, and marks of others are compared with it.
    environment = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
    command = ["ps", "-o", columns, "-p", str(pid)]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    except FileNotFoundError:
        return ""
    return asked.stdout.strip()
