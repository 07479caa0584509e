"""What makes a cluster of an API server: controllers, scheduler, nodes with their kubelets, volumes, load balancers.

All of it speaks to the API server through a client, so it works on ours in this process and on any other:

    async with Client.connect(load_config()) as client, Parts(Kubelet()).at_work(client, nodes=3):
        ...
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

from konverge import kube
from konverge.client import Client, MergePatch, ServerWarning
from konverge.objects.kinds.core_v1 import Node, Service
from konverge.observe.events import EventRecorder
from konverge.runtime import Context, Controller, Result
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.network import BALANCERS, Addresses
from konverge.sim.nodes import Nodes
from konverge.sim.nodes import make as make_nodes
from konverge.sim.observations import Observations
from konverge.sim.scheduler import Scheduler
from konverge.sim.supervisor import Supervised, running
from konverge.sim.volumes import Volumes, create_classes


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
            kube.all_controllers(root_ca=self.root_ca, announced=self.nodes.heartbeats)
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
