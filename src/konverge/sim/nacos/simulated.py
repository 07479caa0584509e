"""`SimulatedNacos`: joins simulated servers to a cluster's pods, to callers and to time.

A server begins with its container and ends with it; what the container's probes would find at the server decides
whether the pod is ready, and a server that gives up ends its container. In between nothing runs: a timer wakes the
ensemble when something is due, and questions are answered from its state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from konverge import clock
from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.operators.nacos.server import Connection, over_sockets
from konverge.sim.cluster import Cluster
from konverge.sim.kubelet.behaviour import Behaviour
from konverge.sim.kubelet.containers import Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.loop import VirtualLoop
from konverge.sim.nacos import directing
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.environment import environment
from konverge.sim.nacos.faults import Fault, Mischief
from konverge.sim.nacos.handler import NacosHandler
from konverge.sim.nacos.member import Member
from konverge.sim.nacos.settings import Settings, is_nacos
from konverge.sim.nacos.settings import read as read_settings
from konverge.sim.nacos.sockets import Sockets
from konverge.sim.nacos.timings import Timings
from konverge.sim.nacos.users import Users
from konverge.wire.errors import ConnectFailed
from konverge.wire.message import Request, Response

if TYPE_CHECKING:
    from konverge.sim.databases import SimulatedDatabases


@dataclass(slots=True)
class _Run:
    """A server in a run of its container."""

    number: int
    handler: NacosHandler
    shown: tuple[Any, ...] = ()
    """What the kubelet was last told."""

    @property
    def member(self) -> Member:
        return self.handler.member


class SimulatedNacos:
    """All simulated servers of a cluster, and the switches for what goes wrong. Pods are given by name."""

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
        """`databases` are asked for the users of servers with an external one; `fault_rate` is the part of all answers
        that goes wrong, by `seed`; with `sockets` servers listen on their pods' addresses as well (unless told
        otherwise, they do so on real time)."""
        self._cluster = cluster
        self._databases = databases
        self.ensemble = Ensemble(clock.seeded(seed), timings)
        self.mischief = Mischief(clock.seeded(seed + 1), fault_rate)
        self.users = Users(self._user_table, every=self.ensemble.timings.user_cache)
        self._runs: dict[str, _Run] = {}
        """By the uid of the pod."""
        self._timer: asyncio.TimerHandle | None = None
        self._thawed = asyncio.Event()
        self._changed = asyncio.Event()
        if sockets is None:
            sockets = not isinstance(asyncio.get_running_loop(), VirtualLoop)
        self._sockets = Sockets(self._serve, self._tell) if sockets else None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        self._cluster.kubelet.directors.append(self)
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
        if self._timer is not None:
            self._timer.cancel()

    # -------------------------------------------------------------- switches

    def freeze(self, pod: str) -> None:
        """The process stops without ending: connections are taken, and nothing is answered."""
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
        """Pods of one side and those of the others do not reach each other; all can still be asked."""
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
        self.mischief.lags[pod] = seconds

    def spoil(self, pod: str, fault: Fault) -> None:
        """Every answer is like this. An empty name is for all pods."""
        self.mischief.faults[pod] = fault

    def mend(self) -> None:
        """No lag and no fault any more."""
        self.mischief.faults.clear()
        self.mischief.lags.clear()
        self.mischief.rate = 0.0

    # -------------------------------------------------------------- looking

    def member(self, pod: str) -> Member:
        """The server that runs in a pod."""
        for run in self._runs.values():
            if run.member.settings.pod == pod:
                return run.member
        known = ", ".join(sorted(run.member.settings.pod for run in self._runs.values()))
        raise LookupError(f"no Nacos runs in a pod {pod!r}; there are: {known}")

    async def opened(self, *pods: str) -> None:
        """Until the servers in these pods take connections, on their sockets too."""
        while not all(self._is_open(pod) for pod in pods):
            await self._changed.wait()

    def _is_open(self, pod: str) -> bool:
        for run in self._runs.values():
            if run.member.settings.pod == pod and run.member.open:
                places = [(run.member.settings.ip, port) for port in run.handler.ports]
                return self._sockets is None or self._sockets.done_with(places)
        return False

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def leader(self, group: str = "naming_persistent_service_v2") -> str:
        """The pod that leads a group now, as only a simulation can know it; empty: none."""
        self.ensemble.advance(self._now())
        members = self.ensemble.members.values()
        return next((one.settings.pod for one in members if self.ensemble.leader_of(one, group) is one), "")

    # -------------------------------------------------------------- answers

    def connect(self, address: str, port: int) -> Connection:
        """The transport for `HttpNacosServers`: no sockets, and any kind of time.

        On real time whatever else has an address can be asked too: a real server in a process pod.
        """
        simulated = any(run.member.settings.ip == address for run in self._runs.values())
        return _Link(self, address, port) if simulated or self._sockets is None else over_sockets(address, port)

    async def exchange(self, address: str, port: int, request: Request) -> Response:
        """One request to whatever listens there. Raises ConnectFailed when nothing does."""
        run = self._listening(address, port)
        if run is None:
            raise ConnectFailed(f"nothing listens on {address}:{port}; is the server still starting?")
        while run.member.frozen:
            await self._thawed.wait()
        instead = await self.mischief.before(run.member.settings.pod, request)
        self.refresh()
        return instead or run.handler.answer(port, request)

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

    def _user_table(self, settings: Settings) -> Mapping[str, str] | None:
        host, port, name = settings.database
        if self._databases is None:
            return {}
        for (known, number), server in self._databases.servers.items():
            if known == host and (number == port or not port) and not server.down:
                database = server.databases.get(name)
                return None if database is None else {user: row[0] for user, row in database.content.users.items()}
        return None

    # -------------------------------------------------------------- the kubelet's director

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        container = self._server_in(pod)
        if container is None or container.name not in scripts:
            return scripts
        run, base = self._runs.get(pod.metadata.uid), scripts[container.name]
        handler, number = (None, 0) if run is None else (run.handler, run.number)
        return scripts | {container.name: directing.behaviour(pod, container, base, handler, number)}

    def lived(self, machine: PodMachine, address: str) -> None:
        pod = machine.pod
        container = self._server_in(pod)
        if container is None:
            return
        state, run = machine.mains[container.name], self._runs.get(pod.metadata.uid)
        if run is not None and (state.mode is not Mode.RUNNING or state.runs != run.number):
            self.forgotten(pod.metadata.uid)
            self._cluster.kubelet.look_at(pod)  # before the next run: it begins with closed ports
        if state.mode is Mode.RUNNING and pod.metadata.uid not in self._runs:
            env = environment(pod, container, address, self._read)
            meta = pod.metadata
            settings = read_settings(meta.namespace, meta.name, meta.uid, address, container.image or "", env)
            member = self.ensemble.start(settings, self._now())
            handler = NacosHandler(self.ensemble, member, self.users, _fits)
            self._runs[meta.uid] = _Run(state.runs, handler, self._shown(handler))
            self.refresh()

    def _server_in(self, pod: Pod) -> Container | None:
        """The container with a server, unless it is one that runs as a real process."""
        runtime = self._cluster.kubelet.runtime
        real = runtime.lives(pod) if runtime is not None else ()
        found = (one for one in pod.spec.containers if is_nacos(one.image or "") and one.name not in real)
        return next(found, None)

    def forgotten(self, uid: str) -> None:
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
        """Let happen what is due, and tell the kubelet and the sockets what has changed by it."""
        self.ensemble.advance(self._now())
        changed = set()
        for uid, run in self._runs.items():
            shown = self._shown(run.handler)
            if shown != run.shown:
                run.shown = shown
                changed.add(uid)
        if changed:
            self._cluster.kubelet.look_again(lambda pod: pod.metadata.uid in changed)
        if self._sockets is not None:
            open_runs = [run for run in self._runs.values() if run.member.open]
            self._sockets.want((run.member.settings.ip, port) for run in open_runs for port in run.handler.ports)
        self._set_timer()
        self._tell()

    def _shown(self, handler: NacosHandler) -> tuple[Any, ...]:
        member = handler.member
        return member.open, member.frozen, member.exit_code, member.open and handler.unready()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self.ensemble.due
        if due < inf:
            self._timer = asyncio.get_running_loop().call_later(max(due - self._now(), 0.0), self.refresh)


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


def _fits(password: str, hashed: str) -> bool:
    """Against a hash of the simulated databases, or a real one that a Secret holds."""
    from konverge.sim.databases import simulated_hash

    if hashed == simulated_hash(password):
        return True
    import bcrypt

    try:  # on the loop: virtual time knows no threads
        return bcrypt.checkpw(password.encode(), hashed.encode())
    except ValueError:  # a simulated hash looks like bcrypt, and is none
        return False
