"""`SimulatedNacos`: connects simulated servers to a cluster's pods, to callers and to time.

A server starts and ends with its container; the container's probes, answered by the server, decide whether the pod is
ready, and a server that exits ends its container. In between nothing runs: a timer wakes the ensemble when an event is
due, and requests are answered from its state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from math import inf
from types import TracebackType
from typing import Any, Self

import msgspec
from msgspec.structs import replace

from konverge import clock
from konverge.objects.kinds.core_v1 import Container, Pod, Probe
from konverge.operators.nacos.server import Connection, over_sockets
from konverge.sim.cluster import Cluster
from konverge.sim.databases import Content, SimulatedDatabases, SimulatedServer, simulated_hash
from konverge.sim.kubelet.behaviour import Behaviour
from konverge.sim.kubelet.containers import Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.loop import VirtualLoop
from konverge.sim.nacos.configs import Configs
from konverge.sim.nacos.disk import Disks
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.faults import AnswerFaults, Fault
from konverge.sim.nacos.handler import NacosHandler
from konverge.sim.nacos.jobs import SimulatedJobs
from konverge.sim.nacos.member import Member, Timings
from konverge.sim.nacos.settings import (
    Settings,
    environment,
    followed_list,
    is_nacos,
    listed_in,
    read_settings,
)
from konverge.sim.nacos.sockets import Sockets
from konverge.sim.nacos.users import Users
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Request, Response


class _Run(msgspec.Struct):
    """A server in one run of its container."""

    number: int
    handler: NacosHandler
    reported: tuple[Any, ...] = ()
    """What the kubelet last saw of it."""

    @property
    def member(self) -> Member:
        return self.handler.member


class SimulatedNacos:
    """All simulated servers of a cluster, and methods to break them. Pods are given by name."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        databases: SimulatedDatabases | None = None,
        timings: Timings | None = None,
        seed: int = 0,
        fault_rate: float = 0.0,
        sockets: bool | None = None,
    ) -> None:
        """`databases` hold the users of servers with an external database; `fault_rate` is the fraction of answers that
        fail, chosen by `seed`; with `sockets` servers also listen on their pods' addresses (by default, on real time).
        """
        self._cluster = cluster
        self._databases = databases
        self.ensemble = Ensemble(clock.seeded(seed), timings)
        self.answer_faults = AnswerFaults(clock.seeded(seed + 1), fault_rate)
        self.disks = Disks(self._read)
        self.jobs = SimulatedJobs(cluster.kubelet, databases, self.disks, self._read, self._serving)
        self._unnamed = Content()
        """Of every external database, where none is simulated."""
        self.users = Users(self._external, every=self.ensemble.timings.user_cache)
        self._runs: dict[str, _Run] = {}
        """By the uid of the pod."""
        self._timer: asyncio.TimerHandle | None = None
        self._thawed = asyncio.Event()
        self._changed = asyncio.Event()
        if sockets is None:
            sockets = not isinstance(asyncio.get_running_loop(), VirtualLoop)
        self._sockets = Sockets(self._serve, self._notify) if sockets else None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._cluster.kubelet.directors += [self, self.jobs]
        self._stack.callback(self._leave)
        if self._sockets is not None:
            await self._stack.enter_async_context(self._sockets)
        self._cluster.kubelet.look_again()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def _leave(self) -> None:
        self._cluster.kubelet.directors.remove(self)
        self._cluster.kubelet.directors.remove(self.jobs)
        if self._timer is not None:
            self._timer.cancel()

    # -------------------------------------------------------------- faults

    def freeze(self, pod: str) -> None:
        """The process stops without ending: it accepts connections, and answers nothing."""
        self.ensemble.freeze(self.member(pod), self._now())
        self.refresh()

    def thaw(self, pod: str) -> None:
        self.ensemble.freeze(self.member(pod), self._now(), frozen=False)
        self._thawed.set()
        self._thawed = asyncio.Event()
        self.refresh()

    def kill(self, pod: str) -> None:
        """The process ends with 137; its kubelet starts it again."""
        member = self.member(pod)
        member.exit_code = 137
        self.ensemble.stop(member, self._now())
        self.refresh()

    def split(self, *sides: Iterable[str]) -> None:
        """Pods of different sides do not reach each other; the operator still reaches all."""
        addresses = [[self.member(pod).address for pod in side] for side in sides]
        for index, side in enumerate(addresses):
            for other in addresses[index + 1 :]:
                self.ensemble.cut(side, other, self._now())
        self.refresh()

    def heal(self) -> None:
        self.ensemble.heal(self._now())
        self.refresh()

    def lag(self, pod: str, seconds: float) -> None:
        """Every answer takes so long. An empty name is for all pods."""
        self.answer_faults.lags[pod] = seconds

    def spoil(self, pod: str, fault: Fault) -> None:
        """Every answer fails like this. An empty name is for all pods."""
        self.answer_faults.faults[pod] = fault

    def mend(self) -> None:
        """End all lags and faults of answers."""
        self.answer_faults.faults.clear()
        self.answer_faults.lags.clear()
        self.answer_faults.rate = 0.0

    # -------------------------------------------------------------- state

    def member(self, pod: str) -> Member:
        """The server that runs in a pod."""
        for run in self._runs.values():
            if run.member.settings.pod == pod:
                return run.member
        known = ", ".join(sorted(run.member.settings.pod for run in self._runs.values()))
        raise LookupError(f"no Nacos runs in a pod {pod!r}; known are: {known}")

    async def opened(self, *pods: str) -> None:
        """Wait until the servers in these pods accept connections, on their sockets too."""
        while not all(self._is_open(pod) for pod in pods):
            await self._changed.wait()

    def _is_open(self, pod: str) -> bool:
        for run in self._runs.values():
            if run.member.settings.pod == pod and run.member.open:
                endpoints = [(run.member.settings.ip, port) for port in run.handler.ports]
                return self._sockets is None or self._sockets.settled(endpoints)
        return False

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def leader(self, group: str = "naming_persistent_service_v2") -> str:
        """The pod that leads a group now, as only the simulation knows it; empty: none."""
        self.ensemble.advance(self._now())
        members = self.ensemble.members.values()
        return next((member.settings.pod for member in members if self.ensemble.leader_of(member, group) is member), "")

    # -------------------------------------------------------------- answers

    def connect(self, address: str, port: int) -> Connection:
        """The transport for `HttpNacosServers`: without sockets, on real or virtual time.

        On real time other addresses can be reached too: those of real servers in process pods.
        """
        simulated = any(run.member.settings.ip == address for run in self._runs.values())
        return _Link(self, address, port) if simulated or self._sockets is None else over_sockets(address, port)

    async def exchange(self, address: str, port: int, request: Request) -> Response:
        """One request to the server that listens there. Raises ConnectFailed when none does."""
        run = self._listening(address, port)
        if run is None:
            raise ConnectFailed(f"nothing listens on {address}:{port}; is the server still starting?")
        while run.member.frozen:
            await self._thawed.wait()
        faulty = await self.answer_faults.before(run.member.settings.pod)
        self.refresh()
        return faulty or run.handler.answer(port, request)

    def _listening(self, address: str, port: int) -> _Run | None:
        self.refresh()
        for run in self._runs.values():
            if run.member.open and run.member.settings.ip == address and port in run.handler.ports:
                return run
        return None

    async def _serve(self, address: str, port: int, request: Request) -> Response:
        """For requests that came over a socket."""
        try:
            return await self.exchange(address, port, request)
        except ConnectFailed as error:
            return Response(503, body=str(error).encode())

    def _serving(self, host: str) -> Configs | None:
        """Behind the Service of a Nacos that programs use."""
        name, namespace = host.split(".")[:2]
        for run in self._runs.values():
            settings = run.member.settings
            app = settings.pod.rpartition("-")[0]
            if settings.namespace == namespace and name in (app, f"{app}-client") and run.member.open:
                return run.handler.configs
        return None

    def _external(self, settings: Settings) -> Content | None:
        host, port, name = settings.database
        if self._databases is None:
            return self._unnamed
        for (known, number), server in self._databases.servers.items():
            if known == host and (number == port or not port) and connects(server, settings):
                database = server.databases.get(name)
                return None if database is None else database.content
        return None

    # -------------------------------------------------------------- the kubelet's director

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        container = self._server_in(pod)
        if container is None or container.name not in scripts:
            return scripts
        run, base = self._runs.get(pod.metadata.uid), scripts[container.name]
        handler, number = (None, 0) if run is None else (run.handler, run.number)
        return scripts | {container.name: _behaviour(pod, container, base, handler, number)}

    def lived(self, machine: PodMachine, address: str) -> None:
        pod = machine.pod
        container = self._server_in(pod)
        if container is None:
            return
        state, run = machine.mains[container.name], self._runs.get(pod.metadata.uid)
        if run is not None and (state.mode is not Mode.RUNNING or state.runs != run.number):
            self._end(pod.metadata.uid)
            self._cluster.kubelet.look_at(pod)  # before the next run, which begins with closed ports
        if state.mode is Mode.RUNNING and pod.metadata.uid not in self._runs:
            env = environment(pod, container, address, self._read)
            meta = pod.metadata
            settings = read_settings(meta.namespace, meta.name, meta.uid, address, container.image or "", env)
            member = self.ensemble.start(settings, self._now(), self.disks.of(pod, container, state.runs))
            self._follow_list(pod, container, member)
            configs = Configs(self.ensemble, member, self._external)
            handler = NacosHandler(self.ensemble, member, self.users, configs, _matches)
            self._runs[meta.uid] = _Run(state.runs, handler, _reported(handler))
            self.refresh()

    def _follow_list(self, pod: Pod, container: Container, member: Member) -> None:
        """A mounted list that changes under the server. A ConfigMap that is gone leaves the file as it was."""
        source = followed_list(pod, container)
        if source is None or member.settings.standalone:
            return
        (name, key), namespace = source, pod.metadata.namespace

        def read() -> list[str]:
            data = (self._read("configmaps", namespace, name) or {}).get("data") or {}
            return listed_in(data.get(key, ""), member.settings.port)

        self.ensemble.follow(member, read)

    def _server_in(self, pod: Pod) -> Container | None:
        """The container with a server, unless it runs as a real process."""
        runtime = self._cluster.kubelet.runtime
        real = runtime.lives(pod) if runtime is not None else ()
        servers = (c for c in pod.spec.containers if is_nacos(c.image or "") and c.name not in real)
        return next(servers, None)

    def forgotten(self, uid: str) -> None:
        self._end(uid)
        self.disks.forget(uid)

    def _end(self, uid: str) -> None:
        """The process is over."""
        run = self._runs.pop(uid, None)
        if run is not None:
            self.ensemble.stop(run.member, self._now())
            self.users.forget(run.member)
            self.refresh()

    def _read(self, plural: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self._cluster.server.objects.get("", plural, namespace, name)

    # -------------------------------------------------------------- time

    def _now(self) -> float:
        return self._cluster.kubelet.now()

    def refresh(self) -> None:
        """Run the events that are due, and pass their effects on to the kubelet and the sockets."""
        self.ensemble.advance(self._now())
        changed = set()
        for uid, run in self._runs.items():
            reported = _reported(run.handler)
            if reported != run.reported:
                run.reported = reported
                changed.add(uid)
        if changed:
            self._cluster.kubelet.look_again(lambda pod: pod.metadata.uid in changed)
        if self._sockets is not None:
            open_runs = [run for run in self._runs.values() if run.member.open]
            self._sockets.listen((run.member.settings.ip, port) for run in open_runs for port in run.handler.ports)
        self._set_timer()
        self._notify()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.ensemble.due
        if due < inf:
            self._timer = asyncio.get_running_loop().call_later(max(due - self._now(), 0.0), self.refresh)


def connects(server: SimulatedServer, settings: Settings) -> bool:
    """Whether a database accepts a server with these settings; certificates are not looked at."""
    never, always = settings.database_tls == "never", settings.database_tls == "always"
    return not (server.down or (never and server.insists_on_tls) or (always and not server.tls))


def _reported(handler: NacosHandler) -> tuple[Any, ...]:
    """What the kubelet acts on."""
    member = handler.member
    return member.open, member.frozen, member.exit_code, member.open and handler.unready()


class _Link:
    """A connection to an address of the simulation."""

    def __init__(self, nacos: SimulatedNacos, address: str, port: int) -> None:
        self._nacos = nacos
        self._address = address
        self._port = port

    async def send(self, request: Request) -> Response:
        return await self._nacos.exchange(self._address, self._port, request)

    async def aclose(self) -> None:
        """Nothing stays open."""


def _matches(password: str, hashed: str) -> bool:
    """Against a hash of the simulated databases, or a real one from a Secret."""
    if hashed == simulated_hash(password):
        return True
    import bcrypt

    try:  # on the loop: there are no threads in virtual time
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:  # a simulated hash looks like bcrypt, but is not
        return False


def _behaviour(pod: Pod, container: Container, base: Behaviour, handler: NacosHandler | None, run: int) -> Behaviour:
    """The container's behaviour by the results of its probes at the server. `base` comes from annotations and rules;
    a healthy server adds nothing to it. `run` is the number of the run.
    """
    if handler is not None and handler.member.exit_code is not None and base.exit_code is None:
        return replace(base, exit_code=handler.member.exit_code, exit_after=0.0, exit_times=run, ready_after=inf)
    startup, readiness, liveness = container.startup_probe, container.readiness_probe, container.liveness_probe
    if startup is not None and not _started(pod, container.name) and not _passes(startup, container, handler):
        return replace(base, ready_after=inf)
    if liveness is not None and not _passes(liveness, container, handler):
        return replace(base, ready_after=inf)
    if readiness is not None and not _passes(readiness, container, handler):
        return replace(base, ready_after=None)
    return base


def _started(pod: Pod, name: str) -> bool:
    return any(status.name == name and status.started for status in pod.status.container_statuses)


def _passes(probe: Probe, container: Container, handler: NacosHandler | None) -> bool:
    if handler is None or not handler.member.open or handler.member.frozen:
        return False
    if probe.http_get is not None:
        port = _number(probe.http_get.port, container)
        return port in handler.ports and 200 <= handler.status(port, probe.http_get.path or "/") < 400
    if probe.tcp_socket is not None:
        return True
    return not handler.unready()


def _number(port: int | str, container: Container) -> int:
    if isinstance(port, str) and not port.isdecimal():
        return next((entry.container_port for entry in container.ports if entry.name == port), 0)
    return int(port)
