"""exec and attach: the streams of real processes, over the channels of a session (`konverge.sim.kubelet.channels`)."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from konverge.sim.kubelet.channels import (
    ENDED,
    OUTCOME,
    RESIZE,
    STDIN,
    STDOUT,
    SUCCESS,
    Channels,
    outcome_of,
)
from konverge.sim.kubelet.sessions import ExecOptions
from konverge.sim.loop import end
from konverge.sim.processes.process import Output, Process, Spawner, StartError
from konverge.sim.processes.runner import Run
from konverge.sim.processes.terminal import Terminal

_AHEAD = 1024 * 1024
"""Bytes of output that wait for the client before the process has to."""
_CHUNK = 32 * 1024


class Outlet:
    """Output on its way to the client. Filled without waiting; a process that says too much is held meanwhile.

    Without a way to hold it, what is too much is left out.
    """

    def __init__(self, socket: Channels, hold: Callable[[bool], None] | None) -> None:
        self._socket = socket
        self._hold = hold
        self._queue: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self._size = 0
        self._held = False

    def put(self, channel: int, data: bytes) -> None:
        if self._size > _AHEAD and self._hold is None:
            return
        self._queue.put_nowait((channel, data))
        self._size += len(data)
        if self._size > _AHEAD and self._hold is not None and not self._held:
            self._held = True
            self._hold(True)

    def listener(self, options: ExecOptions) -> Output:
        """Takes a process's output in, as far as the client asked for it."""
        wanted = {1: options.stdout, 2: options.stderr}

        def said(fd: int, data: bytes) -> None:
            if wanted[fd]:
                self.put(fd, data)

        return said

    def end(self) -> None:
        self._queue.put_nowait(None)

    async def run(self) -> None:
        """Until the end of the output. Raises ConnectionError when the client has gone."""
        while (item := await self._queue.get()) is not None:
            channel, data = item
            for start in range(0, len(data), _CHUNK):
                await self._socket.send(bytes((channel,)) + data[start : start + _CHUNK])
            self._size -= len(data)
            if self._held and self._hold is not None and self._size < _AHEAD // 2:
                self._held = False
                self._hold(False)


async def execute(run: Run, spawner: Spawner, options: ExecOptions, socket: Channels) -> None:
    """Run a command in the container's environment."""
    await socket.send(bytes((STDOUT,)))  # some clients wait for a first message
    begin = _with_terminal if options.tty else _with_pipes
    try:
        outcome = await begin(run, spawner, options, socket)
    except StartError as error:
        message = f"OCI runtime exec failed: {error}"
        outcome = {**SUCCESS, "status": "Failure", "reason": "InternalError", "message": message, "code": 500}
    await socket.send(bytes((OUTCOME,)) + json.dumps(outcome).encode())


async def _with_pipes(run: Run, spawner: Spawner, options: ExecOptions, socket: Channels) -> dict[str, Any]:
    holder: list[Process] = []
    outlet = Outlet(socket, lambda held: holder[0].hold_output(held) if holder else None)
    plan = run.plan
    command = exec_arguments(run, options.command)
    place: dict[str, Any] = {"view": plan.view, "beside": run.process}
    listener = outlet.listener(options)
    process = await spawner.start(command, plan.env, plan.cwd, listener, stdin=options.stdin, **place)
    holder.append(process)
    return await _together(process, outlet, socket, _Pipes(process))


async def _with_terminal(run: Run, spawner: Spawner, options: ExecOptions, socket: Channels) -> dict[str, Any]:
    ours, theirs = os.openpty()
    terminal = Terminal(ours)
    outlet = Outlet(socket, terminal.hold)
    try:
        try:
            env = {"TERM": "xterm", **run.plan.env}
            command = exec_arguments(run, options.command)
            place: dict[str, Any] = {"view": run.plan.view, "beside": run.process}
            process = await spawner.start(command, env, run.plan.cwd, lambda fd, data: None, terminal=theirs, **place)
        finally:
            os.close(theirs)
        terminal.say_to(lambda data: outlet.put(STDOUT, data))
        return await _together(process, outlet, socket, terminal)
    finally:
        terminal.close()


class _Pipes:
    """A process's stdin."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def write(self, data: bytes) -> None:
        self._process.write(data)
        await self._process.drain()

    def end(self) -> None:
        self._process.write_eof()

    def resize(self, columns: int, rows: int) -> None:
        """A pipe has no size."""

    def rest(self) -> None:
        """A process's output is complete when it has ended."""


async def _together(process: Process, outlet: Outlet, socket: Channels, inlet: _Pipes | Terminal) -> dict[str, Any]:
    """Both directions until the process has ended; when the client goes first, the process goes too."""
    reading = asyncio.create_task(_listen(socket, inlet), name="exec: input")
    sending = asyncio.create_task(outlet.run(), name="exec: output")
    waiting = asyncio.create_task(process.wait(), name="exec: process")
    try:
        await asyncio.wait([reading, waiting, sending], return_when=asyncio.FIRST_COMPLETED)
        if socket.closed or sending.done():
            process.kill()
        code = await waiting
        inlet.rest()
        outlet.end()
        await sending
    finally:
        process.kill()
        for task in (reading, sending):
            task.cancel()
        await asyncio.wait([reading, sending, waiting])
    return outcome_of(code)


async def _listen(socket: Channels, inlet: _Pipes | Terminal) -> None:
    while (message := await socket.receive()) is not None:
        channel, data = message[:1], message[1:]
        if channel == bytes((STDIN,)) and data:
            await inlet.write(data)
        elif channel == bytes((ENDED,)) and data == bytes((STDIN,)):
            inlet.end()
        elif channel == bytes((RESIZE,)):
            with suppress(ValueError, KeyError, TypeError, OSError):
                size = json.loads(data)
                inlet.resize(int(size["Width"]), int(size["Height"]))


def exec_arguments(run: Run, command: Any) -> list[str]:
    """A command of the user's, with mount paths replaced by what stands for them.

    `kubectl cp` from a pod runs `tar cf - PATH` and expects that very path in the archive: so the archive is made
    from the container's root, with its links followed.
    """
    arguments = list(command)
    mounts = run.plan.mounts
    if mounts.in_place:
        return arguments
    if arguments[:3] == ["tar", "cf", "-"] and len(arguments) == 4 and mounts.is_mounted(arguments[3]):
        return ["tar", "-C", str(mounts.root), "-chf", "-", arguments[3].lstrip("/")]
    return [mounts.translate(word) for word in arguments]


async def attach(run: Run, options: ExecOptions, socket: Channels) -> None:
    """What the container's process says from now on, and a way to talk to it."""
    process = run.process
    assert process is not None
    await socket.send(bytes((STDOUT,)))
    outlet = Outlet(socket, None)  # one who watches must not hold the process
    inlet = _Pipes(process) if run.terminal is None else run.terminal
    said = outlet.listener(options)
    run.listeners.add(said)
    tasks = [
        asyncio.create_task(_listen(socket, inlet), name="attach: input"),
        asyncio.create_task(outlet.run(), name="attach: output"),
        asyncio.create_task(process.wait(), name="attach: process"),
    ]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if tasks[2].done():
            outlet.end()
            await tasks[1]
            await socket.send(bytes((OUTCOME,)) + json.dumps(SUCCESS).encode())
    finally:
        run.listeners.discard(said)
        await end(tasks)
