"""Several workers at once: runs on real time mostly wait, so more of them than there are processors pay."""

from __future__ import annotations

import os
import queue
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, Self

from konverge.check import isolation
from konverge.check.model import Run, Task, decode_run, encode
from konverge.check.performing import failed
from konverge.check.real_rest import BUSY, LIMIT
from konverge.check.run import PASSES
from konverge.check.spare_time import SpareTime
from konverge.check.worker import READY

PER_PROCESSOR, MOST_PER_PROCESSOR = 6, 24
"""Runs at once: of the seconds of one, six in seven are waits for rest. Of an operator that looks at its objects every
half minute it is many more, and as many runs as fill the processors are better than the same few for longer."""
FILLED = 0.5
"""The part of the processors that undisturbed runs may fill: those with a fault wait less."""
ROOM = 0.15
"""The part of the processors that is idle when more runs at once are begun, a quarter of those that there are."""
MEMORY = 256 << 20
"""Bytes that a worker and its operator may need: those of redis, rabbitmq and cass have 130 MB."""
START_TIME = 120.0
SPARE = 60.0
"""Seconds for a run beyond the limits of its steps; then its worker is killed."""
_SHOWN = 2000
_CHUNK = 1 << 16


def usual_jobs() -> int:
    """How many runs at once suit this machine: its processors, and the memory that is free."""
    return max(1, min(PER_PROCESSOR * _processors(), _free_memory() // MEMORY))


def fitting_jobs(share: float) -> int:
    """The same where it is known what part of a processor an undisturbed run needs."""
    most = min(MOST_PER_PROCESSOR * _processors(), _free_memory() // MEMORY)
    return min(most, int(FILLED * _processors() / share)) if share > 0 else most


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _free_memory() -> int:
    """Bytes; where that is not known, enough."""
    with suppress(OSError, ValueError, IndexError), open("/proc/meminfo", encoding="ascii") as file:  # noqa: PTH123
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 1 << 40


class Workers:
    """A pool. `run` may be called from several threads, and carries out up to `jobs` tasks at once.

    with Workers(4) as workers:
        run = workers.run(task)
    """

    def __init__(self, jobs: int = 0, *, isolated: bool | None = None) -> None:
        """`jobs`: how many at once; 0 is what suits this machine. `isolated`: whether each worker has namespaces of
        its own; by default where this machine allows it.
        """
        why = isolation.why_not() if isolated is None else "" if isolated else "it was not asked for"
        self.isolated = not why
        self.notes: list[str] = []
        """What the report has to say."""
        if why:
            self.notes.append(f"runs came one after the other, since they cannot be isolated from each other: {why}")
        self.jobs = (jobs or usual_jobs()) if self.isolated else 1
        self._grows = self.isolated and not jobs
        self._growing = threading.Lock()
        self._spare = SpareTime()
        self._workers = [_Worker(self.isolated) for _ in range(self.jobs)]
        self._ended = False
        self._busy: set[_Worker] = set()
        self._idle: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)

    def run(self, task: Task) -> Run:
        """Carry out a task; a worker that dies or hangs gives a Run with that problem."""
        worker = self._idle.get()
        self._busy.add(worker)
        try:
            run = failed(task, "the check has ended") if self._ended else worker.run(task)
            all_busy = self._idle.empty()
        finally:
            self._busy.discard(worker)
            self._idle.put(worker)
        if self._grows and task.snapshots and run.seconds and not run.problem:  # an undisturbed run of a program
            self._grow(fitting_jobs(run.cpu / run.seconds))
        elif self._grows:
            self._fill(all_busy)
        return run

    def cancel(self) -> None:
        """End the runs that other threads have under way; each of them gets a failed one."""
        for worker in tuple(self._busy):
            worker.kill()

    def _grow(self, jobs: int) -> None:
        """To so many at once, if that is more."""
        with self._growing:
            self._add(jobs - self.jobs)

    def _fill(self, all_busy: bool) -> None:
        """More at once, if all of them are at work and leave processors idle."""
        with self._growing:
            if not all_busy:
                self._spare.restart()  # it says nothing of a time with fewer runs
            elif (self._spare.share() or 0.0) > ROOM:
                most = MOST_PER_PROCESSOR * _processors() - self.jobs
                self._add(min(max(1, self.jobs // 4), most, _free_memory() // MEMORY))

    def _add(self, workers: int) -> None:
        for _ in range(workers):
            worker = _Worker(self.isolated)
            self._workers.append(worker)
            self._idle.put(worker)
            self.jobs += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True  # threads that still wait for a run must not start another worker
        for worker in self._workers:
            worker.end()


class _Died(Exception):
    """The message says why."""


class _Worker:
    """One process, started when it is first needed and again when it has died."""

    def __init__(self, isolated: bool) -> None:
        self._isolated = isolated
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._folder = ""
        """Of its temporary files: what it has made in a run is left there when it is killed."""
        self._rest = b""

    def run(self, task: Task) -> Run:
        steps = len(task.plan.steps or task.steps) + len(task.plan.perturbations)
        limit = (task.limit or LIMIT) * (steps + BUSY) + PASSES * task.patience + SPARE
        try:
            self._start()
            self._write(encode(task) + b"\n")
            return decode_run(self._line(limit))
        except _Died as error:
            self.end()
            return failed(task, str(error))
        except BaseException:  # an interrupt: its answer would be taken for that of the next task
            self.end()
            raise

    def _start(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._folder = tempfile.mkdtemp(prefix="konverge-check-")
        command = [sys.executable, "-m", "konverge.check.worker", *(["--isolated"] if self._isolated else [])]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, "TMPDIR": self._folder},
            start_new_session=True,
        )
        if self._line(START_TIME) + b"\n" != READY:
            raise _Died("a worker did not start as expected")

    def _write(self, data: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise _Died(f"a worker died: {self._said()}") from None

    def _line(self, limit: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        descriptor, deadline = self._process.stdout.fileno(), time.monotonic() + limit
        parts = [self._rest]
        while b"\n" not in parts[-1]:
            ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                raise _Died(f"a run did not end within {limit:.0f} s, and its worker was killed")
            data = os.read(descriptor, _CHUNK)
            if not data:
                raise _Died(f"a worker died: {self._said()}")
            parts.append(data)
        line, _, self._rest = b"".join(parts).partition(b"\n")
        return line

    def _said(self) -> str:
        code = self._process.wait() if self._process is not None else 0
        if self._errors is None:
            return f"exit code {code}"
        self._errors.seek(max(self._errors.seek(0, os.SEEK_END) - _SHOWN, 0))
        return f"exit code {code}: {self._errors.read().decode(errors='replace').strip()}"

    def kill(self) -> None:
        """From another thread: the one that waits for it hears that it died."""
        process = self._process
        if process is not None:
            process.kill()

    def end(self) -> None:
        process, self._process, self._rest = self._process, None, b""
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
