"""Simulated nodes: whatever Node object there is becomes Ready and stays so, by a Lease that is renewed.

A node that has no capacity gets one; labels, addresses and conditions as a kubelet registers them. `Nodes.lost` are
those whose kubelet is silent: no heartbeat, no pod moves, until they are back. Upstream: pkg/kubelet/nodestatus.

An idle cluster on virtual time would do nothing but renew Leases. So there a renewal is written when a client looks: a
request for a node's Lease first brings it to where it would be by now, and a watch of Leases makes every renewal a
write for as long as it lasts. (Watches of metadata alone, as the garbage collector's, cannot see a renew time.) What is
read is what would have been there; only versions that no client saw were never written. On a real loop, and where
faults may keep a heartbeat from getting through, every renewal is a write at its time.

The node lifecycle controller need not look at a node whose silence would be announced: see `Heartbeats.requests`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from math import floor, inf
from typing import Any

from konverge import clock
from konverge.apiserver import ApiServer
from konverge.apiserver.http.watch import WatchStream
from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION
from konverge.apiserver.request.call import Call
from konverge.client import AlreadyExists, Client, ClientError, MergePatch, NotFound, StrategicPatch
from konverge.objects import times
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.coordination_v1 import Lease, LeaseSpec
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.meta import ObjectMeta, OwnerReference
from konverge.runtime import Context, Controller, Request, Result
from konverge.sim.network import NODES, Addresses, in_pod_network

NAMESPACE = "kube-node-lease"
LEASES = ("coordination.k8s.io", "leases")
LEASE_SECONDS = 40
HEARTBEAT = 10.0
"""A quarter of the lease, as kubelet has it."""


class Heartbeats:
    """Keeps the Leases of the registered nodes, except those whose kubelet is silent."""

    name = "heartbeats"

    def __init__(self) -> None:
        self._alive: dict[str, str] = {}
        """Names and uids of the nodes that are kept alive."""
        self._renewed: dict[str, float] = {}
        """Loop times of their renewals, as far as they are written."""
        self._silent: dict[str, float] = {}
        """Nodes that are not heard of any more, and since when."""
        self._began = 0.0
        self._lazy_server: ApiServer | None = None
        self._client: Client | None = None
        self._watched = asyncio.Event()
        self._fell_silent: asyncio.Queue[Request] = asyncio.Queue()

    def be_lazy(self, server: ApiServer, client: Client) -> None:
        """From now on renewals are written when a client looks."""
        self._lazy_server, self._client = server, client
        server.extensions.before[LEASES] = self._before

    async def keep(self, client: Client, name: str, uid: str) -> None:
        """See to it that a node has a Lease, from now on."""
        if self._alive.get(name) != uid:
            self._alive[name] = uid
            await self._renew(client, name)

    def fall_silent(self, name: str) -> None:
        self._silent.setdefault(name, asyncio.get_running_loop().time())
        self._fell_silent.put_nowait(Request("", name))

    async def recover(self, client: Client, name: str) -> None:
        """The kubelet is back: it says so at once."""
        self._silent.pop(name, None)
        await self._renew(client, name)

    # -------------------------------------------------------------- for the node lifecycle controller

    def __contains__(self, name: str) -> bool:
        """Whether the node will be heard of until `requests` says otherwise."""
        return self._lazy_server is not None and name in self._alive and name not in self._silent

    async def requests(self) -> AsyncIterator[Request]:
        """Nodes that fall silent."""
        while True:
            yield await self._fell_silent.get()

    # -------------------------------------------------------------- at their time

    async def run(self, client: Client) -> None:
        loop = asyncio.get_running_loop()
        self._began = loop.time()
        while True:
            if self._lazy_server is not None and not _is_watched(self._lazy_server):
                self._watched.clear()
                await self._watched.wait()
            await asyncio.sleep(self._last_beat(inf) + HEARTBEAT - loop.time())
            await self._catch_up(client, list(self._alive))

    def _last_beat(self, until: float) -> float:
        """The loop time of the last heartbeat up to now, or up to an earlier time."""
        now = asyncio.get_running_loop().time()
        return self._began + floor((min(now, until) - self._began) / HEARTBEAT) * HEARTBEAT

    async def _catch_up(self, client: Client, names: list[str]) -> None:
        for name in names:
            beat = self._last_beat(self._silent.get(name, inf))
            if name in self._alive and beat > self._renewed.get(name, inf):
                try:
                    await self._renew(client, name, beat)
                except ClientError:
                    continue  # a heartbeat that did not get through is what the lease duration is for

    # -------------------------------------------------------------- when a client looks

    async def _before(self, call: Call) -> None:
        """Called by the API server before it answers a request for Leases."""
        info = call.info
        if self._client is None or info.namespace not in ("", NAMESPACE):
            return
        if info.verb == "watch":
            if "as=PartialObjectMetadata" in call.request.headers.get("accept"):
                return
            self._watched.set()
        await self._catch_up(self._client, [info.name] if info.name else list(self._alive))

    # -------------------------------------------------------------- writing

    async def _renew(self, client: Client, name: str, beat: float | None = None) -> None:
        """Write a renewal: now, or the one of an earlier heartbeat."""
        now = asyncio.get_running_loop().time()
        at = now if beat is None else beat
        self._renewed[name] = at  # before the write, which is itself a request for a Lease
        moment = times.format_micro_time(datetime.fromtimestamp(clock.now() - (now - at), UTC))
        try:
            patch = MergePatch({"spec": {"renewTime": moment}})
            await client.patch(Lease, name, patch, NAMESPACE, field_manager="kubelet")
        except NotFound:
            await self._first(client, name, moment)

    async def _first(self, client: Client, name: str, moment: str) -> None:
        try:
            node = await client.get(Node, name)
        except NotFound:
            self._alive.pop(name, None)
            return
        owner = OwnerReference(api_version="v1", kind="Node", name=name, uid=node.metadata.uid)
        lease = Lease(
            metadata=ObjectMeta(name=name, namespace=NAMESPACE, owner_references=[owner]),
            spec=LeaseSpec(holder_identity=name, lease_duration_seconds=LEASE_SECONDS, renew_time=moment),
        )
        try:
            await client.create(lease, field_manager="kubelet")
        except AlreadyExists:
            return


def _is_watched(server: ApiServer) -> bool:
    """Whether a client watches Leases that can see a renewal."""
    watchers = server.store.table("/".join(LEASES)).watchers
    return any(
        isinstance(watcher, WatchStream) and not watcher.metadata_only
        for scope in watchers.values()
        for watcher in scope
    )


CAPACITY = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110"}
NOT_READY = "node.kubernetes.io/not-ready"

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_INFO = {
    "architecture": "amd64",
    "bootID": "",
    "containerRuntimeVersion": "konverge://sim",
    "kernelVersion": "6.12.0-konverge",
    "kubeProxyVersion": "",
    "kubeletVersion": f"v{KUBERNETES_VERSION}",
    "machineID": "",
    "operatingSystem": "linux",
    "osImage": "Konverge simulated node",
    "systemUUID": "",
}


def make(count: int) -> list[Node]:
    """So many nodes with the names that `konverge up` gives them."""
    return [Node(metadata=ObjectMeta(name=f"node-{number}")) for number in range(1, count + 1)]


class Nodes:
    """The kubelets' other half: registration and heartbeats."""

    name = Heartbeats.name

    def __init__(self, lost: set[str]) -> None:
        self.lost = lost
        self.addresses = Addresses(NODES)
        self.network_address: Callable[[str, str], str] | None = None
        """(name, known address) -> the address of a node in the pod network, or nothing where there is none. Clusters
        without process pods never have one."""
        self.heartbeats = Heartbeats()

    def controllers(self) -> list[Controller[Any]]:
        return [Controller(Node, self.reconcile, name="simulated-nodes")]

    async def register(self, client: Client, nodes: Sequence[Node]) -> None:
        """Make nodes as kubelets register them."""
        for node in nodes:
            name = node.metadata.name
            labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
            node.metadata.labels = {**labels, **node.metadata.labels}
            body = to_dict(node)
            body["status"] = {**body.get("status", {}), **self._status(node)}
            try:
                made = from_dict(Node, await client.create(body, resource=Node.resource, field_manager="kubelet"))
            except AlreadyExists:
                made = await client.get(Node, name)
            await self._keep(client, made)

    async def reconcile(self, ctx: Context[Node]) -> Result | None:
        if ctx.request.name not in self.lost and not ctx.deleting:
            await self._keep(ctx.client, ctx.obj)
        return None

    async def _keep(self, client: Client, node: Node) -> None:
        """Make it Ready, and see to its Lease."""
        name = node.metadata.name
        status = self._status(node)
        if status:
            await client.patch(
                Node, name, StrategicPatch({"status": status}), subresource="status", field_manager="kubelet"
            )
        if any(taint.key == NOT_READY for taint in node.spec.taints):
            # The API server puts it on new nodes; the node lifecycle controller, where there is one, would take it off.
            taints = [taint for taint in node.spec.taints if taint.key != NOT_READY]
            await client.patch(Node, name, MergePatch({"spec": {"taints": taints or None}}), field_manager="kubelet")
        await self.heartbeats.keep(client, name, node.metadata.uid)

    def _status(self, node: Node) -> dict[str, Any]:
        present = {condition.type: condition for condition in node.status.conditions}
        wanted: dict[str, Any] = {}
        if any(name not in present or present[name].status != value for name, value, _, _ in _CONDITIONS):
            now = times.now()
            wanted["conditions"] = [
                {
                    "type": name,
                    "status": value,
                    "reason": reason,
                    "message": message,
                    "lastHeartbeatTime": now,
                    "lastTransitionTime": now,
                }
                for name, value, reason, message in _CONDITIONS
            ]
        if not node.status.allocatable:
            capacity = {key: str(amount) for key, amount in node.status.capacity.items()} or CAPACITY
            wanted |= {"capacity": capacity, "allocatable": capacity}
        elif extended := _extended(node):
            wanted["allocatable"] = extended
        if address := self._new_address(node):
            kinds = (("InternalIP", address), ("Hostname", node.metadata.name))
            wanted["addresses"] = [{"type": kind, "address": value} for kind, value in kinds]
        if node.status.node_info is None or not node.status.node_info.kubelet_version:
            wanted["nodeInfo"] = _INFO
        return wanted

    def _new_address(self, node: Node) -> str:
        """What it has to be given: its first address, or the one of a network that was not there before, or is no more.

        An address that its maker gave it stays.
        """
        name, present = node.metadata.name, node.status.addresses
        if self.network_address is None:
            return "" if present else self.addresses.of(name)
        known = next((entry.address for entry in present if entry.type == "InternalIP"), "")
        networked = in_pod_network(known)
        if present and not networked and not known.startswith("127.0."):
            return ""
        wanted = self.network_address(name, known) or ("" if networked else known) or self.addresses.of(name)
        return wanted if wanted != known else ""

    async def run(self, client: Client) -> None:
        await self.heartbeats.run(client)

    def fall_silent(self, name: str) -> None:
        """No heartbeat, and no pod moves."""
        self.lost.add(name)
        self.heartbeats.fall_silent(name)

    async def recover(self, client: Client, name: str) -> None:
        """The kubelet is back: it says so at once."""
        self.lost.discard(name)
        await self.heartbeats.recover(client, name)
        await self._keep(client, await client.get(Node, name))


def _extended(node: Node) -> dict[str, str | None]:
    """What differs between the extended resources that a node has and those that it offers; None: not any more.

    Whoever announces one writes the capacity alone. Upstream: MachineInfo (pkg/kubelet/nodestatus/setters.go).
    """
    has, offers = ({name: str(amount) for name, amount in amounts.items() if "/" in name}
                   for amounts in (node.status.capacity, node.status.allocatable))  # fmt: skip
    gone = {name: None for name in offers if name not in has}
    return {**gone, **{name: amount for name, amount in has.items() if offers.get(name) != amount}}
