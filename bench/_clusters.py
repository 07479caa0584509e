"""Whole clusters under test: `konverge up`, and kube-apiserver with etcd, controllers, scheduler and the nodes of kwok.

Both serve TLS on loopback, keep their state in memory or without waiting for the disk, and have as many nodes. The real
controllers and scheduler have no limit to their requests: with the usual ones they would mostly wait for themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._apiservers import Running, konverge
from bench._server import binaries
from bench._workload import each
from konverge.client import Client
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Node, ServiceAccount
from tools import real_binaries
from tools.control_plane import HOST, ControlPlane, free_port

REAL = "kubernetes + kwok"
UNLIMITED = ("--kube-api-qps", "10000", "--kube-api-burst", "10000")
ROOM = {"cpu": "32", "memory": "256Gi", "pods": "110"}
SPACE = "default"
REPLICAS = 3
WRITERS = 16
STARTED = 120.0
LIMIT = 1800.0


@dataclass
class WholePlane(ControlPlane):
    """A real control plane with a scheduler and simulated nodes."""

    nodes: int = 3

    def _start_controllers(self, kubeconfig: Path) -> None:
        self._start(
            "kube-controller-manager", "--kubeconfig", str(kubeconfig), "--leader-elect=false", "--secure-port", "0",
            "--service-account-private-key-file", str(self.pki.folder / "sa.key"), "--root-ca-file", str(self.ca_file),
            *UNLIMITED,
        )  # fmt: skip
        self._start(
            "kube-scheduler", "--kubeconfig", str(kubeconfig), "--leader-elect=false", "--secure-port", "0", *UNLIMITED
        )
        port = free_port()
        self._start(
            "kwok", "--config", str(self.binaries / "kwok-stages.yaml"), "--kubeconfig", str(kubeconfig),
            "--manage-all-nodes", "--node-ip", HOST, "--node-port", str(port), "--server-address", f"{HOST}:{port}",
            "--cidr", "10.244.0.0/16", "--node-lease-duration-seconds", "40",
        )  # fmt: skip


@contextmanager
def real(nodes: int) -> Iterator[Running]:
    folder = binaries()
    if folder is None or not (folder / "kwok").exists():
        raise SystemExit(f"no Kubernetes with kwok to compare with: {real_binaries.find()[1]}")
    began = time.monotonic()
    with WholePlane(folder, controllers=True, nodes=nodes) as plane:
        yield Running(plane.kubeconfig, plane.processes, time.monotonic() - began)


@contextmanager
def ours(nodes: int) -> Iterator[Running]:
    with konverge("up", "--nodes", str(nodes)) as running:
        yield running


CLUSTERS = {"konverge": ours, REAL: real}


# ------------------------------------------------------------------ the workload


async def create_nodes(client: Client, nodes: int) -> None:
    """Create the nodes unless they exist, and wait until pods can run on all of them."""
    for number in range(nodes if not len(await client.list(Node)) else 0):
        labels = {"kubernetes.io/hostname": f"node-{number}", "kubernetes.io/os": "linux", "type": "kwok"}
        meta = {"name": f"node-{number}", "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": {"allocatable": ROOM, "capacity": ROOM}}
        await client.create(node)
    async with asyncio.timeout(STARTED):
        while not await _ready_for_pods(client, nodes):  # noqa: ASYNC110 - another process decides
            await asyncio.sleep(0.2)


async def _ready_for_pods(client: Client, nodes: int) -> bool:
    """Whether all nodes take pods, and pods can be created: there is a service account for them."""
    ready = [node for node in await client.list(Node) if not node.spec.taints and _is_ready(node)]
    accounts = [account.metadata.name for account in await client.list(ServiceAccount, SPACE)]
    return len(ready) >= nodes and "default" in accounts


def _is_ready(node: Node) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)


async def converge(client: Client, count: int) -> float:
    """Create so many Deployments of three pods; the seconds until all of them are ready."""
    version = (await client.list(Deployment, SPACE, limit=1)).metadata.resource_version
    ready: set[str] = set()

    async def observe() -> None:
        async for event in client.watch(Deployment, SPACE, resource_version=version):
            if event.object.status.ready_replicas == REPLICAS:
                ready.add(event.object.metadata.name)
                if len(ready) == count:
                    return

    async def create(number: int) -> None:
        await client.create(deployment(f"web-{number:05d}"))

    began = time.monotonic()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        group.create_task(observe())
        group.create_task(each(range(count), WRITERS, create))
    return time.monotonic() - began


def deployment(name: str) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx:1"}]}}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SPACE}, "spec": spec}
