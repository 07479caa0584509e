"""One process: a session of its own, its output line by line to a callback, its end as an exit code.

`Spawner` starts processes and registers each with the warden. Exit codes are those of a shell: 128 and the signal's
number for a process that a signal ended.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from konverge.sim.processes import warden
from konverge.sim.processes.isolation import TRAMPOLINE, View
from konverge.sim.processes.trampoline import PREFIX

_WARDEN = (sys.executable, "-I", "-S", str(Path(__file__).with_name("warden.py")))
MARK = "KONVERGE_CONTAINER"
"""The variable that every process of a container has, to be known by."""
OUTPUT_TIME = 2.0
"""Seconds for the last output after the end: a pipe may be held by a process that escaped."""

Output = Callable[[int, bytes], None]
"""(file descriptor, bytes) -> None"""


class StartError(Exception):
    """The program cannot be run; the message is that of a container engine."""


class Process(asyncio.SubprocessProtocol):
    """A running program."""

    def __init__(self, output: Output) -> None:
        loop = asyncio.get_running_loop()
        self._output = output
        self._transport: asyncio.SubprocessTransport
        self._exited: asyncio.Future[int] = loop.create_future()
        self._silent: asyncio.Future[None] = loop.create_future()
        self._writable = asyncio.Event()
        self._writable.set()
        self.pid = 0
        self.on_end: Callable[[int], None] = lambda session: None

    # -------------------------------------------------------------- asyncio.SubprocessProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._output(fd, data)

    def process_exited(self) -> None:
        code = self._transport.get_returncode()
        self._writable.set()
        warden.kill_session(self.pid)  # what it started does not outlive it, as in a container
        self.on_end(self.pid)
        if not self._exited.done():
            self._exited.set_result(1 if code is None else code if code >= 0 else 128 - code)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._silent.done():
            self._silent.set_result(None)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -------------------------------------------------------------- for its owner

    @property
    def running(self) -> bool:
        return not self._exited.done()

    def signal(self, number: int) -> None:
        """To the first process alone, as a container engine does: it passes on what it wants its children to know."""
        if self.running:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        if self.running:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def write(self, data: bytes) -> None:
        pipe = self._stdin()
        if pipe is not None and not pipe.is_closing():
            pipe.write(data)

    async def drain(self) -> None:
        """Until it has read most of what was written, or has ended."""
        while self.running and not self._writable.is_set():
            await self._writable.wait()

    def hold_output(self, held: bool) -> None:
        """Let it wait with what it wants to say."""
        for fd in (1, 2):
            pipe = cast("asyncio.ReadTransport | None", self._transport.get_pipe_transport(fd))
            if pipe is not None and not pipe.is_closing():
                (pipe.pause_reading if held else pipe.resume_reading)()

    def write_eof(self) -> None:
        pipe = self._stdin()
        if pipe is not None and pipe.can_write_eof():
            pipe.write_eof()

    def _stdin(self) -> asyncio.WriteTransport | None:
        return cast("asyncio.WriteTransport | None", self._transport.get_pipe_transport(0))

    async def wait(self) -> int:
        """Until it has ended and its output is complete."""
        code = await asyncio.shield(self._exited)
        with suppress(TimeoutError):
            async with asyncio.timeout(OUTPUT_TIME):
                await asyncio.shield(self._silent)
        self._transport.close()
        return code

    async def end(self) -> None:
        """Kill it and wait for the end."""
        self.kill()
        await self.wait()


class _Status:
    """A pipe on which a trampoline says what went wrong, and which it closes when its program is about to run."""

    def __init__(self) -> None:
        self._ours, self.theirs = os.pipe()
        os.set_blocking(self._ours, False)

    def give_away(self) -> None:
        theirs, self.theirs = self.theirs, -1
        os.close(theirs)

    async def read(self) -> str:
        loop, readable, said = asyncio.get_running_loop(), asyncio.Event(), b""
        loop.add_reader(self._ours, readable.set)
        try:
            while True:
                await readable.wait()
                readable.clear()
                with suppress(BlockingIOError):
                    data = os.read(self._ours, 4096)
                    said += data
                    if not data:
                        return said.decode("utf-8", "replace")
        finally:
            loop.remove_reader(self._ours)

    def close(self) -> None:
        if self.theirs >= 0:  # there is no process to give it to
            self.give_away()
        os.close(self._ours)


class Spawner:
    """Starts processes that do not outlive us; `temporary` are folders that do not either."""

    def __init__(self) -> None:
        self.temporary: tuple[str, ...] = ()  # no Sequence: a text is one too, and its first letter is "/"
        self._abandoned: set[asyncio.Task[None]] = set()
        self._warden: subprocess.Popen[bytes] | None = None

    async def start(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        output: Output,
        *,
        stdin: bool = False,
        terminal: int | None = None,
        view: View | None = None,
        beside: Process | None = None,
    ) -> Process:
        """`terminal` is the process's end of a pseudo terminal; `view` is what it sees if it is isolated, and `beside`
        the process whose namespaces it is to share then. Raises StartError.
        """
        process, status = Process(output), None
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        plain: dict[str, Any] = {"stdin": pipe if stdin else none, "stdout": pipe, "stderr": pipe}
        streams: dict[str, Any] = plain if terminal is None else dict.fromkeys(plain, terminal)
        options: dict[str, Any] = {"parent": os.getpid(), "terminal": terminal is not None}
        try:
            rooted = view is not None and view.root is not None
            program = command[0] if rooted else resolved(command, env, cwd, view)
            if view is not None:
                new = {"view": view.options(), "target": view.target}
                inside = new if beside is None else {"join": beside.pid}
                status = _Status()
                options |= {"cwd": str(cwd), "status": status.theirs, **view.place(), **inside}
                streams["pass_fds"] = (status.theirs, *view.descriptors)
            await self._run(
                process,
                *TRAMPOLINE,
                json.dumps(options),
                program,
                *command,
                env={MARK: env.get(MARK, ""), **{PREFIX + name: value for name, value in env.items()}},
                cwd="/" if view is not None else cwd,
                start_new_session=True,
                **streams,
            )
            if status is not None:
                status.give_away()
                await self._until_inside(process, status)
        except (OSError, ValueError) as error:  # too long, a NUL in it, no more processes or descriptors
            why = error.strerror if isinstance(error, OSError) else None
            raise StartError(f'exec: "{"".join(command[:1])}": {why or error}') from error
        finally:
            if status is not None:
                status.close()
        return process

    async def _run(self, process: Process, *arguments: str, **how: Any) -> None:
        starting: asyncio.Future[Any] = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(lambda: process, *arguments, **how)
        )
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:  # a process that is not registered must not be left behind
            abandoned = asyncio.create_task(_abandon(starting, process), name="end of a process, not wanted any more")
            self._abandoned.add(abandoned)
            abandoned.add_done_callback(self._abandoned.discard)
            raise
        self._tell(b"+%d\n" % process.pid)
        process.on_end = lambda session: self._tell(b"-%d\n" % session)
        if not process.running:
            process.on_end(process.pid)

    async def _until_inside(self, process: Process, status: _Status) -> None:
        try:
            failure = await status.read()
        except asyncio.CancelledError:
            await process.end()
            raise
        if failure:
            await process.end()
            raise StartError(failure if failure.startswith("exec:") else f"cannot isolate the process: {failure}")

    def _tell(self, line: bytes) -> None:
        if self._warden is None:
            command = [*_WARDEN, *self.temporary]
            self._warden = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True, env={}, cwd="/", bufsize=0,
            )  # fmt: skip
        assert self._warden.stdin is not None
        with suppress(BrokenPipeError):
            self._warden.stdin.write(line)

    async def aclose(self) -> None:
        """End the warden; all processes have ended before."""
        if self._abandoned:
            await asyncio.wait(self._abandoned)
        warden, self._warden = self._warden, None
        if warden is not None and warden.stdin is not None:
            warden.stdin.close()
            await asyncio.to_thread(warden.wait)


async def _abandon(starting: asyncio.Future[Any], process: Process) -> None:
    with suppress(OSError, ValueError):
        await starting
        await process.end()


def resolved(command: Sequence[str], env: Mapping[str, str], cwd: Path, view: View | None = None) -> str:
    """The program of a command, as its own PATH finds it. Raises StartError."""
    name = command[0] if command else ""
    if "/" in name:
        path = cwd / name
        if view is not None and view.hides(path):
            return str(path)  # what is there for the process, and only that, is seen by it
        if not path.is_file():
            raise StartError(f'exec: "{name}": stat {name}: no such file or directory')
        if not os.access(path, os.X_OK):
            raise StartError(f'exec: "{name}": permission denied')
        return str(path)
    program = shutil.which(name, path=env.get("PATH", "")) if name else None
    if program is None:
        raise StartError(f'exec: "{name}": executable file not found in $PATH')
    program = str(Path(program).absolute())
    if view is not None and view.hides(program):
        folder = Path(program).resolve().parent
        raise StartError(f'exec: "{name}": {folder} is hidden; name it in `files` of the image\'s process rule')
    return program
