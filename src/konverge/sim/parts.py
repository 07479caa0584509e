"""What makes a cluster of an API server: controllers, scheduler, nodes with their kubelets, volumes, load balancers.

All of it speaks to the API server through a client, so it works on ours in this process and on any other:

    async with Client.connect(load_config()) as client, Parts(Kubelet()).at_work(client, nodes=3):
        ...

`Supervised` restarts the manager of the controllers when it had to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any

from konverge import kube
from konverge.client import Client, MergePatch, ServerWarning
from konverge.kube.csrsigning import Authority
from konverge.objects.kinds.core_v1 import Node, Service
from konverge.observe.events import EventRecorder
from konverge.runtime import Context, Controller, LeadershipLost, Manager, Result, Settings
from konverge.runtime.alongside import alongside, ungrouped
from konverge.runtime.manager import LeaderElection
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.network import BALANCERS, Addresses
from konverge.sim.nodes import Nodes
from konverge.sim.nodes import make as make_nodes
from konverge.sim.observations import Observations
from konverge.sim.scheduler import Scheduler
from konverge.sim.volumes import Volumes, create_classes

MANAGER = "kube-controller-manager"


@asynccontextmanager
async def running(work: Sequence[tuple[str, Coroutine[Any, Any, None]]]) -> AsyncIterator[None]:
    """All of this runs inside the block. What fails ends the rest, cancels the block, and is raised."""

    stop = asyncio.Event()

    async def together() -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine, name=name) for name, coroutine in work]
            await stop.wait()
            for task in tasks:
                task.cancel()

    async with alongside(asyncio.create_task(ungrouped(together()), name="cluster services"), stop.set):
        yield


class Supervised:
    """Managers of the same controllers, one after the other: who loses the leadership ends, and another begins."""

    def __init__(
        self,
        client: Client,
        controllers: Callable[[], list[Controller[Any]]],
        *,
        paused: Collection[str],
        elected: bool,
        observations: Observations | None = None,
    ) -> None:
        self._client = client
        self._controllers = controllers
        self._paused = paused
        self._elected = elected
        self._observations = observations
        self._terms = 0
        self.manager: Manager

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve(stop, ready), name="managers")
        async with alongside(serving, stop.set):
            await ready
            yield

    async def _serve(self, stop: asyncio.Event, ready: asyncio.Future[None]) -> None:
        while not stop.is_set():
            self.manager = self._next()
            try:
                await self.manager.serve(stop, ready)
            except LeadershipLost:
                continue

    def _next(self) -> Manager:
        self._terms += 1
        election = None
        if self._elected:
            election = LeaderElection(name=MANAGER, namespace="kube-system", identity=f"{MANAGER}-{self._terms}")
        manager = Manager(
            self._client,
            name=MANAGER,
            settings=Settings(max_retries=0),  # a cluster's own controllers never give up, as kube-controller-manager
            check_permissions=False,
            paused=self._paused,
            leader_election=election,
        )
        for controller in self._controllers():
            manager.add(controller if self._observations is None else self._observations.through(controller))
        return manager


class Balancers:
    """The part of a cloud that Services know."""

    def __init__(self) -> None:
        self.addresses = Addresses(BALANCERS)

    def controllers(self) -> list[Controller[Any]]:
        return [Controller(Service, self.reconcile, name="load-balancers")]

    async def reconcile(self, ctx: Context[Service]) -> Result | None:
        service = ctx.obj
        present = [entry.ip for entry in service.status.load_balancer.ingress] if service.status.load_balancer else []
        wanted: list[str] = []
        if service.spec.type == "LoadBalancer" and not service.spec.load_balancer_class and not ctx.deleting:
            if present and present[0]:
                self.addresses.keep(service.metadata.uid, present[0])
            wanted = [service.spec.load_balancer_ip or self.addresses.of(service.metadata.uid)]
        else:
            self.addresses.release(service.metadata.uid)
        if present != wanted:
            ingress = [{"ip": ip, "ipMode": "VIP"} for ip in wanted] or None
            body = MergePatch({"status": {"loadBalancer": {"ingress": ingress}}})
            meta = service.metadata
            await ctx.client.patch(Service, meta.name, body, meta.namespace, subresource="status")
        return None


class Parts:
    """The parts that are wanted, and how they are put to work."""

    def __init__(
        self,
        kubelet: Kubelet | None,
        *,
        controllers: bool | Collection[str] = True,
        scheduler: bool = True,
        hold: Collection[str] = (),
        events: bool = True,
        root_ca: str = "",
    ) -> None:
        """Without a `kubelet` there are neither nodes nor volumes; `root_ca` is the certificate that pods trust."""
        self.kubelet = kubelet
        self.nodes = Nodes(kubelet.lost if kubelet is not None else set())
        self.scheduler = Scheduler(events=events) if scheduler else None
        self.root_ca = root_ca
        self.authority: Authority | None = None
        """Signs requests for certificates."""
        self._controllers = controllers
        self._hold = frozenset(hold)

    @asynccontextmanager
    async def at_work(
        self,
        client: Client,
        *,
        nodes: int | Sequence[Node] = (),
        setup: Client | None = None,
        elected: bool = False,
        observations: Observations | None = None,
    ) -> AsyncIterator[Supervised]:
        """Register `nodes` and run everything inside the block; gives the keeper of the controllers' manager.

        `setup` makes what has to be there before anything runs, where `client` is one that may fail on purpose;
        `observations` remember what the controllers see.
        """
        if self.kubelet is not None:
            await self.nodes.register(setup or client, make_nodes(nodes) if isinstance(nodes, int) else nodes)
            await create_classes(setup or client)
        if self._controllers is not False:
            await asyncio.to_thread(kube.load)
        work = [(service.name, service.run(client)) for service in self._services()]
        if self.kubelet is not None:
            recorder = EventRecorder(client, "kubelet")
            self.kubelet.record_with(recorder)
            work.append(("kubelet events", recorder.run()))
        managers = Supervised(client, self._declared, paused=self._hold, elected=elected, observations=observations)
        async with running(work), managers.running():
            yield managers

    def _declared(self) -> list[Controller[Any]]:
        declared = (
            kube.all_controllers(root_ca=self.root_ca, announced=self.nodes.heartbeats, authority=self.authority)
            if self._controllers is not False
            else []
        )
        if not isinstance(self._controllers, bool):
            declared = [controller for controller in declared if controller.name in self._controllers]
        if self.kubelet is not None:
            declared += [*self.kubelet.controllers(), *self.nodes.controllers()]
            declared += [*Volumes().controllers(), *Balancers().controllers()]
        return declared

    def _services(self) -> list[kube.Service]:
        services = kube.services() if self._controllers is not False else []
        if not isinstance(self._controllers, bool):
            services = [controller for controller in services if controller.name in self._controllers]
        if self.kubelet is not None:
            services.append(self.nodes)
        if self.scheduler is not None:
            if self.scheduler.name in self._hold:
                self.scheduler.queue.pause()
            services.append(self.scheduler)
        return services


def unheard(warning: ServerWarning) -> None:
    """The parts of a cluster know what is deprecated, and have to use it."""
