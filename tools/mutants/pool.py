"""The pytest processes that run mutants, one for each job."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from tools.mutants.choice import Choice
from tools.mutants.coverage_map import FAST
from tools.mutants.source import Mutant

SLOWER = 8.0
"""How many times longer than recorded the tests of a mutant may take, in CPU time, before it counts as hanging."""
START = 3.0
"""Seconds of CPU time in any case."""


class Listener(Protocol):
    def done(self, mutant: Mutant, outcome: str, test: str) -> None: ...


class Pool:
    def __init__(
        self, root: Path, source: str, tests: list[str], modules: list[str], choice: Choice, start: float = START
    ) -> None:
        self._root = root
        self._source = source
        self._tests = tests
        self._modules = modules
        self._choice = choice
        self._start = start
        self._good: dict[str, bool] = {}
        """Tests that have killed something, and whether they pass in a forked process without any mutant."""
        self._lock = threading.Lock()

    def run(self, mutants: list[Mutant], jobs: int, listener: Listener) -> None:
        queue: SimpleQueue[Mutant] = SimpleQueue()
        for mutant in mutants:
            queue.put(mutant)
        errors: list[BaseException] = []
        threads = [
            threading.Thread(target=self._work, args=(queue, listener, errors), name=f"mutants {number}")
            for number in range(max(1, min(jobs, len(mutants))))
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException as error:  # Ctrl-C: the mutants that run now are the last ones
            errors.append(error)
            raise
        if errors:
            raise errors[0]

    def _work(self, queue: SimpleQueue[Mutant], listener: Listener, errors: list[BaseException]) -> None:
        try:
            with tempfile.TemporaryDirectory(prefix="mutants") as folder, _Process(self, Path(folder)) as process:
                while not errors:
                    mutant = queue.get_nowait()
                    outcome, test = self._outcome(process, mutant)
                    with self._lock:
                        listener.done(mutant, outcome, test)
        except Empty:
            return
        except BaseException as error:
            errors.append(error)

    def _outcome(self, process: _Process, mutant: Mutant) -> tuple[str, str]:
        with self._lock:
            tests = [name for name in self._choice.tests(mutant) if self._good.get(name, True)]
        while tests:
            answer = process.ask(mutant, tests, self._start + SLOWER * self._choice.seconds(tests))
            test = answer.get("test", "")
            if not test or self._passes_alone(process, test):
                if answer["outcome"] == "killed" and test:
                    self._choice.killed(mutant, test)
                return answer["outcome"], test
            tests = [name for name in tests if name != test]
        return "no test", ""

    def _passes_alone(self, process: _Process, test: str) -> bool:
        if test not in self._good:
            answer = process.ask(None, [test], self._start + SLOWER * self._choice.seconds([test]))
            self._good[test] = answer["outcome"] == "survived"
            if not self._good[test]:
                print(f"\nleft out, because it fails in a forked process without any mutant: {test}", flush=True)
        return self._good[test]

    def command(self, descriptor: int, folder: Path) -> list[str]:
        options = ["-q", "-s", "-m", FAST, "-p", "no:xdist", "-p", "no:cacheprovider", "-p", "tools.mutants.server"]
        options += ["--basetemp", str(folder / "tmp"), "--mutants-socket", str(descriptor)]
        return [sys.executable, "-m", "pytest", *options, "--mutants-source", self._source, *self._tests]


class _Process:
    def __init__(self, pool: Pool, folder: Path) -> None:
        self._pool = pool
        self._folder = folder

    def __enter__(self) -> _Process:
        ours, theirs = socket.socketpair()
        with theirs, (self._folder / "output").open("w") as output:
            self._process = subprocess.Popen(
                self._pool.command(theirs.fileno(), self._folder),
                cwd=self._pool._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
            )
        self._socket = ours
        self._stream = ours.makefile("rw", encoding="utf-8")
        self._exchange({"modules": self._pool._modules})
        return self

    def __exit__(self, *exc: object) -> None:
        self._stream.close()
        self._socket.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def ask(self, mutant: Mutant | None, tests: list[str], limit: float) -> dict[str, Any]:
        request: dict[str, Any] = {"tests": tests, "limit": limit}
        if mutant is not None:
            request |= {"file": mutant.file, "number": mutant.number}
        return self._exchange(request)

    def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        self._stream.write(json.dumps(request) + "\n")
        self._stream.flush()
        line = self._stream.readline()
        if not line:
            raise SystemExit(f"pytest ended:\n{(self._folder / 'output').read_text()[-4000:]}")
        answer: dict[str, Any] = json.loads(line)
        return answer
