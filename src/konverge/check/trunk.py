"""An undisturbed run that leaves a process at each of its rests, where other runs branch off.

A run in process has its whole world in memory: cluster, operator, clock and chance. So a fork at a rest is that world
once more, to the byte, and a run that is disturbed later need not repeat what came before. Each process that stays
listens on a socket of its own in the trunk's folder; whoever connects and names a plan gets the Run of it.

All of them end with the folder, and with the worker that began the trunk; a branch ends with its connection.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from konverge.check.model import Plan, Run, Task, encode
from konverge.sim.loop import VirtualLoop

MOST = 24
"""Processes that stay, at most: each keeps what the run has changed since, some 30 MB in those of our operators."""
WAITING = 64
"""Connections that wait for one of them."""
LOOK_EVERY = 2.0
"""Seconds between two looks whether the folder is there."""
_PR_SET_PDEATHSIG = 1
_CHUNK = 1 << 16

decode_plan = msgspec.json.Decoder(Plan).decode


def can_fork() -> bool:
    """Whether this machine has what a trunk needs. Elsewhere every run begins at the first step."""
    return sys.platform == "linux"


class Trunk:
    """What a run asks at each rest: `at` returns None to go on, and in a branch its plan."""

    def __init__(self, task: Task, answers: int) -> None:
        """`answers` is where the undisturbed run is written to."""
        self.plan = task.plan
        """Of this process: that of the trunk, or in a branch its own."""
        self._folder = Path(task.branches)
        self._every = max(1, -(-len(task.steps) // MOST))
        self._answers: int | socket.socket = answers
        self._began, self._used_before = time.perf_counter(), 0.0

    @property
    def _is_branch(self) -> bool:
        return isinstance(self._answers, socket.socket)

    def at(self, number: int) -> Plan | None:
        """At rest before a step. One process goes on, and one stays for as long as its worker lives."""
        if self._is_branch or number % self._every or threading.active_count() > 1:  # a fork has one thread
            return None
        try:
            listener = _listening(path_of(self._folder, number))
        except OSError:  # the path is too long, or the disk is full: from here nothing branches off
            return None
        gc.freeze()  # what there is now stays in this process, and a branch is too short to be collected
        self._used_before += _used()
        if _fork() == 0:
            listener.close()
            return None
        assert isinstance(self._answers, int)
        os.close(self._answers)
        return self._stay(listener)

    def _stay(self, listener: socket.socket) -> Plan:
        """Returns in branches alone."""
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a branch ended
        listener.settimeout(LOOK_EVERY)
        while self._folder.exists():
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            with connection:
                if _fork() == 0:
                    listener.close()
                    return self._branch(connection.dup())
        os._exit(0)

    def _branch(self, connection: socket.socket) -> Plan:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        connection.settimeout(None)
        self._answers, self._began, self._used_before = connection, time.perf_counter(), 0.0
        self.plan = decode_plan(_line(connection))
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        return self.plan

    def deliver(self, run: Run) -> None:
        """The end of this process: the run goes to whoever asked for it."""
        run.seconds, run.cpu = time.perf_counter() - self._began, self._used_before + _used()
        data = encode(run) + b"\n"
        with suppress(OSError):  # nobody is there any more
            if isinstance(self._answers, socket.socket):
                self._answers.sendall(data)
            else:
                with os.fdopen(self._answers, "wb") as answers:
                    answers.write(data)
        os._exit(0)


def path_of(folder: Path, number: int) -> Path:
    """Where the process at rest before this step listens."""
    return folder / str(number)


def grown(task: Task, perform: Callable[[Trunk], Run]) -> bytes:
    """Carry out an undisturbed run in a process of its own, which leaves others behind; the Run as JSON, or nothing.

    `perform` delivers the run itself, in whichever process it comes to its end.
    """
    reading, writing = os.pipe()
    try:
        child = _fork()
    except OSError:  # no more processes are allowed
        os.close(reading)
        os.close(writing)
        return b""
    if child == 0:
        os.close(reading)
        trunk = Trunk(task, writing)
        try:
            trunk.deliver(perform(trunk))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        return answers.read()


def _fork() -> int:
    """As os.fork: the child goes on with a copy of the running loop and of its tasks, and ends with its parent."""
    loop = asyncio._get_running_loop()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended meanwhile
            os._exit(1)
        if isinstance(loop, VirtualLoop):
            loop.forked()
    return child


def _used() -> float:
    """CPU seconds of this process alone."""
    return sum(os.times()[:2])


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        listener.listen(WAITING)
    except OSError:
        listener.close()
        raise
    return listener


def _line(connection: socket.socket) -> bytes:
    parts: list[bytes] = []
    while not parts or not parts[-1].endswith(b"\n"):
        data = connection.recv(_CHUNK)
        if not data:
            os._exit(0)
        parts.append(data)
    return b"".join(parts)


def _end_with(connection: socket.socket) -> None:
    """In a thread: whoever waits for the run may give it up."""
    with suppress(OSError):
        connection.recv(1)
    os._exit(0)
