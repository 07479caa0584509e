"""Which process pods have a network of their own, what they are given for it, and what they reach in it.

A pod has one if all of its containers that are processes have a rule with `network: pod`, unless it asks for a certain
address; who asks for the node's (`hostNetwork`) shares that with others of the node. Where this machine does not allow
it, `why_not` says so, and these pods are on this machine's network as all others.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.cache import Change
from konverge.objects.kinds.core_v1 import Node, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.runtime import Context, Controller, Request, Watches
from konverge.runtime.predicates import ChangePredicate
from konverge.sim.applications.names.resolver import Resolver
from konverge.sim.applications.names.zone import Names, Source
from konverge.sim.kubelet.behaviour import ADDRESS
from konverge.sim.podnet import resolving
from konverge.sim.podnet.network import NetworkPlace, PodNetwork
from konverge.sim.podnet.proxies import Proxies
from konverge.sim.podnet.services import LABEL, behind, host_ports
from konverge.sim.processes.roots import RESOLVER
from konverge.sim.processes.rules import ProcessRule

log = logging.getLogger("konverge.sim.processes")

RULE = "pod"
NAMES_PORT = 53

Ruled = Callable[[Pod], Mapping[str, ProcessRule | None]]
"""The rules of a pod's containers."""


class Networking:
    """The pod network of one cluster, if a rule asks for it."""

    def __init__(self, rules: Iterable[ProcessRule], ruled: Ruled, objects: Source | None, services: str) -> None:
        """`objects` are those of the API server, `services` is the range of its Services' addresses."""
        self._wanted = any(rule.network == RULE for rule in rules)
        self._ruled = ruled
        self._objects = objects
        self._services = services
        self._network: PodNetwork | None = None
        self._proxies: Proxies | None = None
        self._nodes: frozenset[str] = frozenset()
        self._on_nodes: set[Request] = set()
        """Services with node ports."""
        self.why_not = ""
        """Why pods that should have a network of their own have not."""

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._wanted:
                try:
                    network = await stack.enter_async_context(PodNetwork.at_work(self._services))
                    await self._serve(network, stack)
                    self._network = network
                except OSError as error:
                    self.why_not = str(error)
                    what = "process pods have no network of their own: %s; see docs/process-pods.md"
                    log.warning(what, self.why_not)
            try:
                yield
            finally:
                self._network = self._proxies = None

    async def _serve(self, network: PodNetwork, stack: AsyncExitStack) -> None:
        """Names, and what listens on the addresses of Services."""
        proxies = Proxies(network)
        stack.push_async_callback(proxies.aclose)
        if self._objects is not None:
            resolver = await stack.enter_async_context(Resolver(Names(self._objects, proxied=True)))
            place = (network.gateway, NAMES_PORT)
            await resolver.serve(await network.make_socket("tcp", place), await network.make_socket("udp", place))
        self._proxies = proxies

    # -------------------------------------------------------------- pods

    def concerns(self, pod: Pod) -> bool:
        """Whether a pod is in this network, by itself or on its node."""
        if self._network is None or ADDRESS in pod.metadata.annotations:
            return False
        if pod.spec.host_network and pod.spec.node_name not in self._network.nodes():
            return False
        own = {spec.name for spec in (*pod.spec.init_containers, *pod.spec.containers)}  # ephemeral ones come later
        rules = [rule for name, rule in self._ruled(pod).items() if rule is not None and name in own]
        return bool(rules) and all(rule.network == RULE for rule in rules)

    def address(self, pod: Pod) -> str:
        """Of a pod in this network; empty for others."""
        if self._network is None or not self.concerns(pod):
            return ""
        if pod.spec.host_network:
            return self._network.node_address(pod.spec.node_name or "")
        return self._network.address(pod.metadata.uid, pod.status.pod_ip or "")

    async def attach(self, pod: Pod) -> NetworkPlace | None:
        """Raises OSError."""
        if self._network is None or not self.concerns(pod):
            return None
        if pod.spec.host_network:
            return await self._network.attach_node(pod.spec.node_name or "")
        place = await self._network.attach(pod.metadata.uid)
        wanted = host_ports(pod, self.address(pod))
        if wanted and self._proxies is not None and pod.spec.node_name in self._network.nodes():
            await self._proxies.set(_ports_of(pod.metadata.uid), wanted)
        return place

    async def detach(self, uid: str) -> None:
        """All processes of the pod have ended."""
        if self._proxies is not None:
            self._proxies.forget(_ports_of(uid))
        if self._network is not None:
            await self._network.detach(uid)

    def node_address(self, name: str, known: str) -> str:
        """Of a node, which may be known to have one; empty where there is no network."""
        return "" if self._network is None else self._network.node_address(name, known)

    def resolv_conf(self, pod: Pod) -> str:
        """The text for a pod in this network; empty for others."""
        if self._network is None or not self.concerns(pod):
            return ""
        machine = RESOLVER.read_text(encoding="utf-8", errors="replace") if RESOLVER.exists() else ""
        return resolving.resolv_conf(pod, self._network.gateway, machine)

    # -------------------------------------------------------------- services

    def controllers(self) -> list[Controller[Any]]:
        if self._proxies is None:
            return []
        slices = Watches(EndpointSlice, requests=_owner)
        nodes = Watches(Node, requests=lambda _: self._on_nodes, when=ChangePredicate(self._are_others))
        return [
            Controller(
                Service,
                self._reconcile,
                name="pod-network",
                when=ChangePredicate(self._is_there),
                watches=[slices, nodes],
            )
        ]

    def _is_there(self, change: Change) -> bool:
        """What listens for a Service ends with it."""
        if change.new is None and change.old is not None and self._proxies is not None:
            self._proxies.forget((change.old.meta.namespace, change.old.meta.name))
            self._on_nodes.discard(Request(change.old.meta.namespace, change.old.meta.name))
        return change.new is not None

    def _are_others(self, change: Change) -> bool:
        """Whether nodes have come or gone since this was asked last. One that is gone has no network any more."""
        if self._network is None:
            return False
        if change.new is None and change.old is not None:
            self._network.forget_node(change.old.meta.name)
        before, self._nodes = self._nodes, self._network.nodes()
        return self._nodes != before

    async def _reconcile(self, ctx: Context[Service]) -> None:
        meta = ctx.obj.metadata
        if self._proxies is None or self._network is None:
            return
        if any(port.node_port for port in ctx.obj.spec.ports):
            self._on_nodes.add(ctx.request)
        slices = await ctx.list(EndpointSlice, meta.namespace)
        await self._proxies.set((meta.namespace, meta.name), behind(ctx.obj, slices, self._network.nodes()))


def _owner(part: EndpointSlice) -> list[Request]:
    name = part.metadata.labels.get(LABEL)
    return [Request(part.metadata.namespace, name)] if name else []


def _ports_of(uid: str) -> tuple[str, str]:
    """The key of what listens for a pod on its node; no Service has one without a namespace."""
    return "", uid
