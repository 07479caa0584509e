"""`Cluster`: a whole Kubernetes in this process: API server, controllers, scheduler, nodes.

    async with Cluster() as cluster:
        await cluster.client.create(deployment)
        await cluster.settle()

All parts speak to the API server through clients, as they would anywhere; only the sockets are left out. On a
`VirtualLoop` (`konverge.sim.run`) time is simulated too, and one seed gives one history.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from konverge import kube
from konverge.apiserver import ApiServer
from konverge.apiserver.certificates import Certificates
from konverge.apiserver.config import Config
from konverge.client import Client, ServerWarning, Static
from konverge.objects.kinds.core_v1 import Node
from konverge.observe.events import EventRecorder
from konverge.runtime import Controller, Manager
from konverge.sim import nodes as node_objects
from konverge.sim.balancers import Balancers
from konverge.sim.clock import Clock
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.loop import VirtualLoop
from konverge.sim.network import PODS, Addresses
from konverge.sim.nodes import Nodes
from konverge.sim.scheduler import Scheduler
from konverge.sim.settling import settle
from konverge.sim.volumes import Volumes, create_classes
from konverge.wire.message import Transport

MANAGER = "kube-controller-manager"


class Cluster:
    """A simulated cluster. Everything it runs is at work inside the `async with` block, and has ended after it."""

    def __init__(
        self,
        *,
        nodes: int | Sequence[Node] = 3,
        controllers: bool | Collection[str] = True,
        scheduler: bool = True,
        kubelet: bool = True,
        rules: Sequence[Rule] = (),
        hold: Collection[str] = (),
        pod_address: str = "",
        events: bool = True,
        seed: int | None = None,
        data_dir: Path | None = None,
        config: Config | None = None,
    ) -> None:
        """`controllers` may be names of those to run; `hold` names some that wait for `release` or `step`.

        `rules` script pods (see `konverge.sim.kubelet.behaviour`); `pod_address` is given to all pods instead of an
        address of their own; `seed` is for the randomness of a virtual loop.
        """
        self.clock = Clock()
        self.server = ApiServer(config=config or _config(controllers), data_dir=data_dir)
        self.client: Client
        self.manager: Manager
        self.kubelet = Kubelet(rules, addresses=Addresses(PODS, shared=pod_address), events=events)
        self.nodes = Nodes(self.kubelet.lost)
        self.scheduler: Scheduler | None = None
        self._wanted = node_objects.make(nodes) if isinstance(nodes, int) else list(nodes)
        self._controllers = controllers
        self._schedules = scheduler
        self._runs_pods = kubelet
        self._hold = frozenset(hold)
        self._events = events
        self._seed = seed
        self._stack = AsyncExitStack()

    # -------------------------------------------------------------- life

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        if self._seed is not None and isinstance(loop, VirtualLoop):
            loop.rng.seed(self._seed)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.server)
            self.client = await stack.enter_async_context(self._connect(self.server.transport, "konverge"))
            components = await stack.enter_async_context(self._connect(self._transport(), MANAGER))
            await self._start(stack, components)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stack.__aexit__(kind, error, trace)

    def _transport(self) -> Transport:
        return self.server.transport

    def _connect(self, transport: Transport, agent: str) -> Client:
        return Client(transport, credentials=Static.bearer(self.server.token), user_agent=agent, on_warning=_unheard)

    async def _start(self, stack: AsyncExitStack, client: Client) -> None:
        if self._runs_pods:
            await self.nodes.register(client, self._wanted)
            await create_classes(client)
        self.manager = Manager(client, name=MANAGER, check_permissions=False, paused=self._hold)
        for controller in self._declared():
            self.manager.add(controller)
        work = [(service.name, service.run(client)) for service in self._services()]
        if self._runs_pods:
            recorder = EventRecorder(client, "kubelet")
            self.kubelet.record_with(recorder)
            work.append(("kubelet events", recorder.run()))
        await stack.enter_async_context(_running(work))
        await stack.enter_async_context(self.manager.running())

    def _declared(self) -> list[Controller[Any]]:
        found = kube.all_controllers() if self._controllers is not False else []
        if not isinstance(self._controllers, bool):
            found = [one for one in found if one.name in self._controllers]
        if self._runs_pods:
            found += [*self.kubelet.controllers(), *self.nodes.controllers()]
            found += [*Volumes().controllers(), *Balancers().controllers()]
        return found

    def _services(self) -> list[kube.Service]:
        found = kube.services() if self._controllers is not False else []
        if not isinstance(self._controllers, bool):
            found = [one for one in found if one.name in self._controllers]
        if self._runs_pods:
            found.append(self.nodes)
        if self._schedules:
            self.scheduler = Scheduler(events=self._events)
            if self.scheduler.name in self._hold:
                self.scheduler.queue.pause()
            found.append(self.scheduler)
        return found

    # -------------------------------------------------------------- reaching it

    async def listen(self, host: str = "127.0.0.1", port: int = 0, *, tls: bool = False) -> str:
        """Serve on a socket as well; the result is the URL."""
        certificates = self.server.certificates(host) if tls else None
        return await self.server.listen(host, port, tls=certificates.context() if certificates is not None else None)

    def kubeconfig(self, url: str, certificates: Certificates | None = None) -> dict[str, Any]:
        """A kubeconfig for the administrator."""
        return self.server.kubeconfig(url, certificates)

    # -------------------------------------------------------------- time

    async def settle(self, *, quiet: float = 1.0, limit: float = 600.0) -> None:
        """Until nothing has changed for `quiet` seconds (Leases and Events do not count). Raises Unsettled.

        On a virtual loop no time passes when nothing is due within that while.
        """
        await settle(lambda: self.server.store, self._busy, quiet=quiet, limit=limit)

    def _busy(self) -> str:
        """Who has work in hands."""
        queues = {name: engine.queue for name, engine in self.manager.engines.items()}
        if self.scheduler is not None:
            queues[self.scheduler.name] = self.scheduler.queue
        return ", ".join(name for name, queue in queues.items() if queue.unfinished and not queue.paused)

    # -------------------------------------------------------------- nodes

    def lose_node(self, name: str) -> None:
        """Its kubelet falls silent: no heartbeat, and no pod of it moves."""
        self.kubelet.lost.add(name)

    async def recover_node(self, name: str) -> None:
        """It is back; what its pods missed happens now."""
        await self.nodes.recover(self.client, name)
        self.kubelet.recover_node(name)


def _config(controllers: bool | Collection[str]) -> Config:
    """Where not all controllers run, perhaps nobody makes the service accounts that pods would be refused without."""
    left_out = frozenset[str]() if controllers is True else frozenset(("ServiceAccount",))
    return Config(loopback_backends=True, disabled_admission=left_out)


def _unheard(warning: ServerWarning) -> None:
    """The parts of a cluster know what is deprecated, and have to use it."""


@asynccontextmanager
async def _running(work: Sequence[tuple[str, Coroutine[Any, Any, None]]]) -> AsyncIterator[None]:
    """All of this runs inside the block. What fails ends the rest, and is raised when the block is left."""

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            for name, coroutine in work:
                group.create_task(coroutine, name=name)

    task = asyncio.create_task(together(), name="cluster services")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
