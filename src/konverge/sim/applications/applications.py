"""`Applications`: the stand-ins of a simulate file at work in a cluster.

    async with Cluster(simulation=load_simulation(path)) as cluster:
        cluster.applications.servers["zookeeper"].fault = "refuse"
        state = cluster.applications.export()

A stand-in's server begins and ends with its container and listens on the pod's address. `export` and `restore` are for
runs that begin at an old revision: the API server's objects alone would not bring the application's data back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.objects.codec import to_dict
from konverge.objects.kinds.core_v1 import Pod
from konverge.sim.applications.application import (
    FAULTS,
    Application,
    ExecAnswer,
    HttpApplication,
    Member,
    Obj,
    Surroundings,
)
from konverge.sim.applications.commands import Commands
from konverge.sim.applications.groups import Groups
from konverge.sim.applications.kinds import application_class
from konverge.sim.applications.listeners import Listener, answer
from konverge.sim.applications.owners import Owners
from konverge.sim.applications.simulation import ServerRule, Simulation
from konverge.sim.applications.values import Absent, fill_in
from konverge.sim.applications.writes import Writes
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import Behaviour
from konverge.sim.kubelet.containers import Mode
from konverge.sim.kubelet.machine import PodMachine
from konverge.sim.loop import VirtualLoop
from konverge.sim.parts import Supervised
from konverge.wire.message import Handler

_EXEC = "exec"
"""The key of the commands' counts in a snapshot."""


class Server:
    """All servers of one rule of the simulate file."""

    def __init__(self, rule: ServerRule) -> None:
        self.rule = rule
        self.name = rule.title
        self.kind = application_class(rule)
        self.selector = rule.selector
        self._fault = ""
        self._only = ""
        self.places: dict[str, Place] = {}
        """By the uid of the pod."""
        self.on_connection: list[Callable[[], None]] = []
        """Called before a connection to one of them is served."""

    @property
    def supported(self) -> tuple[str, ...]:
        """The faults that it can show."""
        return self.kind.faults

    @property
    def pods(self) -> list[str]:
        """The pods in which it runs."""
        return sorted(place.member.name for place in self.places.values() if place.run)

    @property
    def fault(self) -> str:
        """The fault of all of them; empty: none. Set it to switch one on or off."""
        return self._fault

    @fault.setter
    def fault(self, fault: str) -> None:
        self.break_down(fault)

    def break_down(self, fault: str, pod: str = "") -> None:
        """Switch a fault on, for one pod or for all; an empty one ends it. Raises ValueError."""
        if fault and fault not in self.supported:
            text = ", ".join(f"{name} ({FAULTS[name]})" for name in self.supported)
            raise ValueError(f"server {self.name} has no fault {fault!r}; it has: {text}")
        self._fault, self._only = fault, pod
        for place in self.places.values():
            self.show_fault(place)

    def connected(self) -> None:
        for call in self.on_connection:
            call()

    def show_fault(self, place: Place) -> None:
        fault = self._fault if self._only in ("", place.member.name) else ""
        if place.member.fault != fault:
            place.member.fault = fault
            for listener in place.listeners:
                listener.obey()


class Place:
    """A server in one pod: its member of the group, and its sockets while its container runs."""

    def __init__(self, server: Server, container: str, member: Member, key: str, application: Application) -> None:
        self.server = server
        self.container = container
        self.member = member
        self.key = key
        self.application = application
        self.run = 0
        """The number of the container's run; 0: it does not run."""
        self.listeners: list[Listener] = []


class Applications:
    """What a simulate file asks for, in one cluster. `Cluster(simulation=…)` makes it."""

    def __init__(self, server: ApiServer, kubelet: Kubelet, simulation: Simulation) -> None:
        self.simulation = simulation
        self.servers: dict[str, Server] = {}
        for rule in simulation.servers:
            made = Server(rule)
            name = made.name
            number = 2
            while name in self.servers:
                name, number = f"{made.name}-{number}", number + 1
            made.name = name
            self.servers[name] = made
        self._kubelet = kubelet
        self._owners = Owners(server)
        around = Surroundings(read=server.objects.get, look_at=self._look_at)
        self._groups = Groups(around, lambda: server.store.revision)
        self.commands = Commands(simulation.exec, self._ask, self._counted)
        self._writes = Writes(simulation.writes, self._owners)
        self._closing: set[asyncio.Task[None]] = set()
        self._real = True
        self._stack = AsyncExitStack()

    # -------------------------------------------------------------- life

    async def start(self, client: Client) -> Self:
        """Begin before the cluster's kubelet does; `client` is for what programs in pods write."""
        self._real = not isinstance(asyncio.get_running_loop(), VirtualLoop)
        self._kubelet.rules[:0] = self.simulation.rules
        self._kubelet.scripted = self.commands
        self._kubelet.directors.append(self)
        self._stack.push_async_callback(self._leave)
        if self.simulation.writes:
            managers = Supervised(client, lambda: [self._writes.controller()], paused=(), elected=False)
            await self._stack.enter_async_context(managers.running())
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    async def _leave(self) -> None:
        self._kubelet.directors.remove(self)
        self._kubelet.scripted = None
        for server in self.servers.values():
            for place in server.places.values():
                self._end(place)
        await asyncio.gather(*self._closing)

    # -------------------------------------------------------------- snapshots

    def export(self, at: int | None = None) -> Obj:
        """The applications' data as JSON: now, or as it was when the store's revision `at` was written."""
        return self._groups.export(at)

    def restore(self, document: Obj) -> None:
        """Begin with exported data. To be called before pods of these applications run."""
        rest = dict(document)
        self.commands.counts = dict(rest.pop(_EXEC, {}))
        self._groups.restore(rest)

    def _counted(self) -> None:
        self._groups.write(_EXEC, self.commands.counts)

    # -------------------------------------------------------------- the kubelet's director

    def direct(self, pod: Pod, scripts: dict[str, Behaviour]) -> dict[str, Behaviour]:
        """A container whose server is not ready answers its probe so."""
        unready: dict[str, Behaviour] = {}
        for server in self.servers.values():
            place = self._place(server, pod)
            if place is not None and not place.application.ready(place.member):
                script = scripts.get(place.container, Behaviour())
                unready[place.container] = replace(script, ready_after=None)
        return scripts | unready if unready else scripts

    def lived(self, machine: PodMachine, address: str) -> None:
        for server in self.servers.values():
            place = server.places.get(machine.pod.metadata.uid)
            if place is None:
                continue
            state = {**machine.inits, **machine.mains}.get(place.container)
            run = state.runs if state is not None and state.mode is Mode.RUNNING else 0
            if run == place.run:
                continue
            if place.run:
                self._end(place)
            if run:
                place.member.pod = to_dict(machine.pod)
                place.member.address = address
                self._begin(place, run)

    def forgotten(self, uid: str) -> None:
        for server in self.servers.values():
            place = server.places.pop(uid, None)
            if place is not None:
                self._end(place)
                self._groups.gone(place.key, uid)

    def _place(self, server: Server, pod: Pod) -> Place | None:
        meta = pod.metadata
        place = server.places.get(meta.uid)
        if place is not None:
            return place
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            if server.selector.matches(meta, container.name, container.image or ""):
                break
        else:
            return None
        whole = to_dict(pod)
        try:
            name = fill_in(server.rule.group, self._owners.references(whole))
        except Absent:
            name = meta.name
        key = f"{server.rule.kind or server.rule.python}/{meta.namespace}/{name}"
        member = Member(pod=whole, address="", server=server.name, settings=server.rule.settings)
        group = self._groups.get(key, partial(_make, server))
        self._groups.come(key, meta.uid)
        place = server.places[meta.uid] = Place(server, container.name, member, key, group.application)
        return place

    # -------------------------------------------------------------- servers

    def _begin(self, place: Place, run: int) -> None:
        rule, member = place.server.rule, place.member
        place.run = run
        place.application.members[f"{member.server}/{member.name}"] = member
        self._groups.mounts(place.key, member)
        place.server.show_fault(place)
        place.application.joined(member)
        if self._real:
            ports = ports_of(rule, place.server.kind, member.pod, place.container)
            place.listeners = [
                Listener(place.application, member, port, slow=rule.slow, connected=place.server.connected)
                for port in ports
            ]

    def _end(self, place: Place) -> None:
        if not place.run:
            return
        place.run = 0
        place.application.members.pop(f"{place.member.server}/{place.member.name}", None)
        place.application.left(place.member)
        listeners, place.listeners = place.listeners, []
        for listener in listeners:
            listener.hang_up()
        if listeners:
            task = asyncio.get_running_loop().create_task(_close(listeners), name="stand-in sockets")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    def _look_at(self, member: Member) -> None:
        machine = self._kubelet.machines.get(member.pod["metadata"]["uid"])
        if machine is not None:
            self._kubelet.look_at(machine.pod)

    def handler(self, address: str, port: int) -> Handler | None:
        """What answers HTTP requests to an address within this process; None where no stand-in does.

        For operators in this process on a virtual loop, which has no sockets.
        """
        for server in self.servers.values():
            for place in server.places.values():
                if place.run and place.member.address == address and isinstance(place.application, HttpApplication):
                    ports = ports_of(server.rule, server.kind, place.member.pod, place.container)
                    if port in ports and place.member.fault != "refuse":
                        return partial(answer, place.application, place.member)
        return None

    # -------------------------------------------------------------- commands

    def _ask(self, name: str, pod: Obj, command: list[str]) -> ExecAnswer | None:
        place = self.servers[name].places.get(pod["metadata"]["uid"])
        if place is None or not place.run:
            return None
        if place.member.fault:
            return ExecAnswer(stderr=f"the stand-in was asked to fail ({place.member.fault})\n", exit=1)
        return place.application.exec(place.member, command)


def _make(server: Server, around: Surroundings) -> Application:
    made = server.kind(around)
    made.configure(server.rule)
    return made


async def _close(listeners: list[Listener]) -> None:
    for listener in listeners:
        await listener.close()


def ports_of(rule: ServerRule, kind: type[Application], pod: Obj, container: str) -> list[int]:
    """The numbers of a rule's ports in a pod; a name that the container does not have is left out."""
    containers = (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))
    spec = next(entry for entry in containers if entry["name"] == container)
    named: dict[Any, int] = {port.get("name"): port["containerPort"] for port in spec.get("ports") or ()}
    asked = rule.ports or kind.ports
    numbers = [port if isinstance(port, int) else named.get(port) for port in asked]
    return [number for number in numbers if number is not None]
