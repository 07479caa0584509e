"""Simulated nodes: whatever Node object there is becomes Ready and stays so, by a Lease that is renewed.

A node that has no capacity gets one; labels, addresses and conditions as a kubelet registers them. `Nodes.lost` are
those whose kubelet is silent: no heartbeat, no pod moves, until they are back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.apiserver.kubernetes_version import KUBERNETES_VERSION
from konverge.client import AlreadyExists, Client, MergePatch, StrategicPatch
from konverge.objects import times
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Node
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Result
from konverge.sim.heartbeats import Heartbeats
from konverge.sim.network import NODES, Addresses

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
        if not node.status.addresses:
            address = self.addresses.of(node.metadata.name)
            kinds = (("InternalIP", address), ("Hostname", node.metadata.name))
            wanted["addresses"] = [{"type": kind, "address": value} for kind, value in kinds]
        if node.status.node_info is None or not node.status.node_info.kubelet_version:
            wanted["nodeInfo"] = _INFO
        return wanted

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
