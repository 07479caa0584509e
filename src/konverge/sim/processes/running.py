"""One run of a container: its process, from the first hook to the last signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

from konverge.sim.processes.handlers import HandlerError, hook
from konverge.sim.processes.logfile import LogFile
from konverge.sim.processes.plan import Plan
from konverge.sim.processes.process import Output, Process, Spawner, StartError
from konverge.sim.processes.warden import resident

_OUTPUT = 64 * 1024
"""Bytes of a command's output that are kept."""
MEMORY_PERIOD = 0.5


class Run:
    """A container's process at work."""

    def __init__(self, plan: Plan, log: LogFile, spawner: Spawner, address: str) -> None:
        self.plan = plan
        self.log = log
        self.process: Process | None = None
        self.out_of_memory = False
        self.listeners: set[Output] = set()
        """Those who are attached."""
        self._spawner = spawner
        self._address = address
        self._deadline: asyncio.TimerHandle | None = None

    async def start(self) -> Process:
        """Raises StartError."""
        self.log.open()
        plan = self.plan
        try:
            self.process = await self._spawner.start(
                plan.command, plan.env, plan.cwd, self._said, stdin=bool(plan.spec.stdin)
            )
        except OSError as error:
            raise StartError(f"cannot start {plan.command[0]!r}: {error.strerror or error}") from error
        return self.process

    async def post_start(self) -> str:
        """Run the hook; why it failed, or nothing."""
        action = self.plan.spec.lifecycle.post_start if self.plan.spec.lifecycle is not None else None
        if action is None:
            return ""
        try:
            await hook(action, self.plan.spec, self._address, self.run_command, float("inf"))
        except HandlerError as error:
            return str(error)
        return ""

    async def finish(self) -> int:
        """Until the process has ended; its exit code."""
        assert self.process is not None
        try:
            return await self.process.wait()
        finally:
            if self._deadline is not None:
                self._deadline.cancel()
            self.log.end()

    async def watch_memory(self, limit: int) -> None:
        """Kill it when it holds more than this; until it ends."""
        while self.process is not None and self.process.running:
            if resident(self.process.pid) > limit:
                self.out_of_memory = True
                self.process.kill()
                return
            await asyncio.sleep(MEMORY_PERIOD)

    # -------------------------------------------------------------- ending

    def kill_at(self, moment: float) -> None:
        """By force at this time of the loop, or earlier if that was said before."""
        if self._deadline is not None:
            if self._deadline.when() <= moment:
                return
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_at(moment, self._kill)

    def _kill(self) -> None:
        if self.process is not None and self.process.running:
            self.process.kill()

    async def ask_to_end(self, seconds: float) -> str:
        """The hook, then the signal; why the hook failed, or nothing."""
        spec, failure = self.plan.spec, ""
        action = spec.lifecycle.pre_stop if spec.lifecycle is not None else None
        if action is not None and seconds > 0:
            try:
                await hook(action, spec, self._address, self.run_command, seconds)
            except HandlerError as error:
                failure = str(error)
        if self.process is not None:
            own = spec.lifecycle.stop_signal if spec.lifecycle is not None else None
            self.process.signal(signal.Signals[_known(own) or self.plan.rule.stop_signal])
        return failure

    # -------------------------------------------------------------- beside it

    async def run_command(self, command: Sequence[str], seconds: float) -> tuple[int, bytes]:
        """A command of the container's own, in its environment: exit code and output. Raises HandlerError."""
        kept = bytearray()

        def keep(fd: int, data: bytes) -> None:
            kept.extend(data[: _OUTPUT - len(kept)])

        plan = self.plan
        try:
            process = await self._spawner.start(plan.own_words(command), plan.env, plan.cwd, keep)
        except (StartError, OSError) as error:
            raise HandlerError(str(error)) from error
        try:
            async with asyncio.timeout(None if seconds == float("inf") else seconds):
                code = await process.wait()
        except TimeoutError:
            raise HandlerError(f"command timed out after {seconds:g}s") from None
        finally:
            await process.end()
        return code, bytes(kept)

    def _said(self, fd: int, data: bytes) -> None:
        self.log.write(fd, data)
        for listener in tuple(self.listeners):
            listener(fd, data)


def _known(name: str | None) -> str:
    return name if name and name in signal.Signals.__members__ else ""
