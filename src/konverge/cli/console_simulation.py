"""The simulation of `konverge up`, for its console: lost nodes, pods that crash, an API server that is away."""

from __future__ import annotations

import asyncio
from typing import Any

from konverge import clock
from konverge.client import NotFound
from konverge.console.simulation import Fault, Parameter
from konverge.objects.kinds.core_v1 import Node, Pod
from konverge.sim.cluster import Cluster
from konverge.sim.loop import VirtualLoop

_SECONDS = Parameter("seconds", "Seconds", "number", default=10.0)
_JUMP = Parameter("seconds", "Seconds, negative to go back", "number", default=3600.0)


class UpSimulation:
    """See `konverge.console.simulation.Simulation`. `close` ends what is still going wrong."""

    def __init__(self, cluster: Cluster, operators: list[str], seed: int = 0) -> None:
        self.operators = operators
        self._seed = seed
        self._cluster = cluster
        self._tasks: set[asyncio.Task[None]] = set()
        self._late = 0.0

    async def state(self) -> dict[str, Any]:
        nodes = (await self._cluster.client.list(Node)).items
        virtual = isinstance(asyncio.get_running_loop(), VirtualLoop)
        return {
            "nodes": [
                {
                    "name": node.metadata.name,
                    "lost": node.metadata.name in self._cluster.kubelet.lost,
                    "ready": any(entry.type == "Ready" and entry.status == "True" for entry in node.status.conditions),
                    "unschedulable": bool(node.spec.unschedulable),
                }
                for node in nodes
            ],
            "clock": {"virtual": virtual, "now": clock.now(), "ahead": self._cluster.clock_ahead},
            "seed": self._seed,
            "late": self._late,
        }

    async def faults(self) -> list[Fault]:
        names = sorted(self._cluster.node_names)
        lost = [name for name in names if name in self._cluster.kubelet.lost]
        kept = [name for name in names if name not in lost]
        return [
            Fault("lose-node", "Lose a node", [Parameter("node", "Node", "select", kept)]),
            Fault("recover-node", "Recover a node", [Parameter("node", "Node", "select", lost)]),
            Fault("crash-pod", "Crash a pod", [Parameter("namespace", "Namespace"), Parameter("pod", "Pod")]),
            Fault("cut-api", "Cut the operators off from the API server", [_SECONDS]),
            Fault("delay-watch", "Delay the events of the operators (0 ends it)", [_SECONDS]),
            Fault("forget-history", "Forget the history: watches have to list again"),
            Fault("jump-clock", "Jump the clock", [_JUMP]),
        ]

    async def inflict(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        cluster = self._cluster
        match name:
            case "lose-node":
                cluster.lose_node(values["node"])
            case "recover-node":
                await cluster.recover_node(values["node"])
            case "crash-pod":
                return await self._crash(values["pod"], values["namespace"])
            case "cut-api":
                self._begin(_positive(values["seconds"]))
            case "delay-watch":
                self._late = _positive(values["seconds"])
                cluster.delay_watches(self._late)
            case "forget-history":
                cluster.server.store.compact(cluster.server.store.revision)
            case "jump-clock":
                cluster.jump_clock(values["seconds"])
        return values

    async def _crash(self, name: str, namespace: str) -> dict[str, Any]:
        try:
            pod = await self._cluster.client.get(Pod, name, namespace)
        except NotFound as error:
            raise ValueError(f"there is no pod {name} in namespace {namespace}") from error
        if not self._cluster.crash_pod(name, namespace):
            raise ValueError(f"no simulated container of pod {name} runs")
        # The names of most pods are random: in a test, the labels find them.
        chosen = {key: value for key, value in pod.metadata.labels.items() if "hash" not in key}
        owned = any(owner.kind == "ReplicaSet" for owner in pod.metadata.owner_references)
        return {"pod": name, "namespace": namespace, "labels": chosen if owned else {}}

    def _begin(self, seconds: float) -> None:
        task = asyncio.create_task(self._cluster.cut_api(seconds), name="konverge.console.cut-api")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        self._cluster.delay_watches(0.0)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))


def _positive(seconds: float) -> float:
    if seconds < 0:
        raise ValueError("seconds must not be negative")
    return float(seconds)
