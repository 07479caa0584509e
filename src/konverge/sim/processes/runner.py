"""One pod whose containers are processes: carries out the orders of its machine, and reports what happens to it.

A `Run` is one run of a container: its process, from the first hook to the last signal.

Each container's run is a task from its preparation to its end; stopping and probing are tasks of their own. All end
with the pod.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from konverge.client import ClientError
from konverge.objects.kinds.core_v1 import Container, LifecycleHandler, Pod, Probe
from konverge.sim.kubelet.containers import Note
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.kubelet.process_containers import LiveContainer, Look, Start, Stop
from konverge.sim.loop import end
from konverge.sim.processes import disk, local_storage
from konverge.sim.processes.disk import MountError
from konverge.sim.processes.environment import ConfigError, DownwardError
from konverge.sim.processes.handlers import HandlerError, hook, probe
from konverge.sim.processes.logfile import LogFile
from konverge.sim.processes.permitted import Refused
from konverge.sim.processes.plan import Plan
from konverge.sim.processes.process import Output, Process, Spawner, StartError
from konverge.sim.processes.terminal import Terminal
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
        self.terminal: Terminal | None = None
        """Of a container with `tty`."""
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
            self.process = await (self._start_in_terminal() if plan.spec.tty else self._start_with_pipes())
        except OSError as error:
            raise StartError(f"cannot start {plan.command[0]!r}: {error.strerror or error}") from error
        return self.process

    async def _start_with_pipes(self) -> Process:
        plan = self.plan
        return await self._spawner.start(
            plan.command, plan.env, plan.cwd, self._said, stdin=bool(plan.spec.stdin), view=plan.view
        )

    async def _start_in_terminal(self) -> Process:
        """What it says is one stream, as a terminal shows it."""
        plan, (ours, theirs) = self.plan, os.openpty()
        self.terminal = Terminal(ours)
        self.terminal.say_to(lambda data: self._said(1, data))
        try:
            env = {"TERM": "xterm", **plan.env}
            return await self._spawner.start(
                plan.command, env, plan.cwd, lambda fd, data: None, terminal=theirs, view=plan.view
            )
        finally:
            os.close(theirs)

    async def post_start(self) -> str:
        """Run the hook; why it failed, or nothing."""
        lifecycle = self.plan.spec.lifecycle
        return await self._hook(lifecycle.post_start if lifecycle is not None else None, float("inf"))

    async def _hook(self, action: LifecycleHandler | None, seconds: float) -> str:
        if action is None or seconds <= 0:
            return ""
        try:
            await hook(action, self.plan.spec, self._address, self.run_command, seconds)
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
            self.end()

    def end(self) -> None:
        """Of all that it said."""
        if self.terminal is not None:
            self.terminal.rest()
            self.terminal.close()
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
        lifecycle = self.plan.spec.lifecycle
        failure = await self._hook(lifecycle.pre_stop if lifecycle is not None else None, seconds)
        if self.process is not None:
            own = lifecycle.stop_signal if lifecycle is not None else None
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
            process = await self._spawner.start(
                plan.own_arguments(command), plan.env, plan.cwd, keep, view=plan.view, beside=self.process
            )
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


log = logging.getLogger("konverge.sim.processes")

AGAIN = 2.0
"""Seconds until a container that could not be prepared is tried again."""
_START_ERROR = 128
_MESSAGE = 4096
_LAST_LINES, _LAST_BYTES = 80, 2048


class Preparing(Protocol):
    """Makes plans: the part that knows the API."""

    async def plan(self, pod: Pod, name: str, pod_ip: str, host_ip: str) -> Plan:
        """Raises Refused, MountError, ConfigError, DownwardError, StartError."""


class Kubelet(Protocol):
    def now(self) -> float: ...

    def look_at(self, pod: Pod) -> None: ...


class PodRunner:
    """The processes of one pod."""

    def __init__(
        self, machine: PodMachine, home: Path, kubelet: Kubelet, preparing: Preparing, spawner: Spawner
    ) -> None:
        self.machine = machine
        self.home = home
        self.pod_ip = self.host_ip = ""
        self.runs: dict[str, Run] = {}
        """The latest run of each container that has begun."""
        self._kubelet = kubelet
        self._preparing = preparing
        self._spawner = spawner
        self._lives: dict[str, asyncio.Task[None]] = {}
        self._preparations: set[str] = set()
        """Containers whose next run has no process yet."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping: set[Run] = set()
        self._mount_errors: dict[str, str] = {}
        self._watching: asyncio.Task[None] | None = None
        """Of what its volumes hold; ends with the pod."""

    @property
    def pod(self) -> Pod:
        return self.machine.pod

    # -------------------------------------------------------------- orders

    def obey(self, pod_ip: str, host_ip: str) -> None:
        self.pod_ip, self.host_ip = pod_ip, host_ip
        for order in self.machine.orders():
            match order:
                case Start(name):
                    if self._watching is None and local_storage.limits(self.pod):
                        self._watching = self._spawn(self._watch_volumes(), "volumes")
                    self._preparations.add(name)
                    self._lives[name] = self._spawn(self._live(name), f"container {name}")
                case Stop(name, deadline):
                    self._stop(name, deadline)
                case Look():
                    self._spawn(self._look(order), f"{order.probe} probe of {order.container}")

    def _spawn(self, work: Coroutine[Any, Any, None], what: str) -> asyncio.Task[None]:
        meta = self.pod.metadata
        task = asyncio.create_task(work, name=f"{meta.namespace}/{meta.name}: {what}")
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=error)

    async def close(self, seconds: float) -> None:
        """End all processes, by force after so many seconds, and all tasks."""
        lives = [life for life in self._lives.values() if not life.done()]
        for run in self.runs.values():
            if run.process is not None and seconds > 0:
                run.process.signal(signal.SIGTERM)
        if lives and seconds > 0:
            await asyncio.wait(lives, timeout=seconds)
        await end(self._tasks)

    # -------------------------------------------------------------- a run

    async def _live(self, name: str) -> None:
        spec = self.machine.spec(name)
        try:
            plan = await self._preparing.plan(self.pod, name, self.pod_ip, self.host_ip)
        except MountError as error:
            message = str(error)
            self._report(name, lambda container, t: self._not_mounted(container, t, message))
            return
        except Refused as error:
            message = str(error)
            self._report(name, lambda container, t: container.refused("CreateContainerError", message, t + AGAIN))
            return
        except (ConfigError, DownwardError, ClientError, OSError) as error:
            message = str(error)
            self._report(name, lambda container, t: container.refused("CreateContainerConfigError", message, t + AGAIN))
            return
        except Exception as error:  # such as a path with a NUL; the container is not to wait without a word
            message = str(error) or type(error).__name__
            self._report(name, lambda container, t: container.refused("CreateContainerError", message, t + AGAIN))
            return
        run = self.runs[name] = Run(plan, self.log(name, self.machine.live[name].runs + 1), self._spawner, self.pod_ip)
        self._preparations.discard(name)
        try:
            await self._through(run, name, spec)
        finally:
            if run.process is not None and run.process.running:
                await run.process.end()
            run.end()

    async def _through(self, run: Run, name: str, spec: Container) -> None:
        try:
            process = await run.start()
        except StartError as error:
            cause = str(error)
            self._report(name, lambda container, t: self._never_ran(container, t, spec, cause))
            return
        failure = await run.post_start()
        if failure:
            process.kill()
            note = Note("Warning", "FailedPostStartHook", f"PostStartHook failed: {failure}", name)
            self._report(name, lambda container, t: [*container.launched(t, spec), note])
        else:
            self._report(name, lambda container, t: container.launched(t, spec))
        watching = self._watch_memory(run, spec)
        code = await run.finish()
        if watching is not None:
            watching.cancel()
        message = _termination_message(run, spec, code)
        self._forget_old_logs(name)
        reason = "OOMKilled" if run.out_of_memory else ""
        self._report(name, lambda container, t: container.exited(t, code, reason, message))

    def _watch_memory(self, run: Run, spec: Container) -> asyncio.Task[None] | None:
        limit = spec.resources.limits.get("memory") if spec.resources is not None else None
        if limit is None or not run.plan.rule.enforce_memory:
            return None
        return self._spawn(run.watch_memory(int(limit)), f"memory of {spec.name}")

    def _not_mounted(self, live_container: LiveContainer, t: float, message: str) -> list[Note]:
        live_container.refused(live_container.creating, "", t + AGAIN)
        known = self._mount_errors.get(live_container.name) == message
        self._mount_errors[live_container.name] = message
        return [] if known else [Note("Warning", "FailedMount", message, live_container.name)]

    def _never_ran(self, live_container: LiveContainer, t: float, spec: Container, message: str) -> list[Note]:
        live_container.launched(t, spec)
        live_container.exited(t, _START_ERROR, "StartError", message)
        return [Note("Warning", "Failed", f"Error: {message}", live_container.name)]

    def _report(self, name: str, what: Callable[[LiveContainer, float], list[Note] | None]) -> None:
        """Notify the machine, and have the kubelet look at it."""
        now = self._kubelet.now()
        self.machine.advance(now)
        self.machine.notes += what(self.machine.live[name], now) or []
        self._kubelet.look_at(self.pod)

    async def _watch_volumes(self) -> None:
        excess = await local_storage.excess(self.pod, self.home / "volumes")
        self.machine.evict(self._kubelet.now(), excess)
        self._kubelet.look_at(self.pod)

    # -------------------------------------------------------------- stopping

    def _stop(self, name: str, deadline: float) -> None:
        run, life = self.runs.get(name), self._lives.get(name)
        if life is None or life.done():
            return
        if name in self._preparations or run is None or run.process is None:
            life.cancel()  # not begun yet
            return
        left = max(deadline - self._kubelet.now(), 0.0)
        run.kill_at(asyncio.get_running_loop().time() + left)
        if run not in self._stopping:
            self._stopping.add(run)
            self._spawn(self._ask(run, name, left), f"stop of {name}")

    async def _ask(self, run: Run, name: str, left: float) -> None:
        failure = await run.ask_to_end(left)
        if failure:
            note = Note("Warning", "FailedPreStopHook", f"PreStopHook failed: {failure}", name)
            self._report(name, lambda container, t: [note])

    # -------------------------------------------------------------- probes

    async def _look(self, look: Look) -> None:
        run, spec = self.runs[look.container], self.machine.spec(look.container)
        declared: Probe | None = getattr(spec, f"{look.probe}_probe")
        asked, output = self._kubelet.now(), ""
        if declared is None:
            return
        try:
            await probe(declared, spec, self.pod_ip, run.run_command)
        except Exception as error:  # one that ends this task is the last of its probe
            output = str(error) or "failed"
            if not isinstance(error, HandlerError):
                log.exception("%s probe of %s could not be made", look.probe, look.container)
        self._report(look.container, lambda container, t: container.probed(look, asked, t, not output, output, spec))

    # -------------------------------------------------------------- logs

    def log(self, name: str, number: int) -> LogFile:
        """The log of a run; the very one that is written, if it is."""
        path, run = self.home / "containers" / name / f"{number}.log", self.runs.get(name)
        return run.log if run is not None and run.log.path == path else LogFile(path)

    def _forget_old_logs(self, name: str) -> None:
        """The present run's and the one before it are kept."""
        gone = self.machine.live[name].runs - 2
        if gone > 0:
            self.log(name, gone).remove()

    def remove_files(self) -> None:
        disk.remove(self.home)


def _termination_message(run: Run, spec: Container, code: int) -> str:
    """The message of a container's end: the end of its file, or (if asked for, after a failure) of its log.

    Upstream: getTerminationMessage and readLastStringFromContainerLogs (pkg/kubelet/kuberuntime).
    """
    text = disk.read_private(run.plan.mounts.home / "termination-log", _MESSAGE)
    if not text and code != 0 and spec.termination_message_policy == "FallbackToLogsOnError":
        text = run.log.last(_LAST_LINES, _LAST_BYTES)
    return text.decode("utf-8", "replace")
