"""`kubectl apply` of a Nacos on `konverge up --processes`: the operator at work, and real Nacos servers in the pods."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.client import Client, Kubeconfig, MergePatch
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.server import PORT, HttpNacosServers, over_sockets
from konverge.wire.message import Request
from tests.operators.nacos.world import is_ready
from tests.real.clients import programs
from tests.real.embedded import Tool, konverge_process
from tests.real.nacos import PATIENCE
from tests.sim.processes.support import PYTHON

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "nacos/nacos-server:v2.1.1"
_PROBE = {"httpGet": {"path": "/nacos/v1/core/cluster/nodes", "port": 8848}, "periodSeconds": 5, "timeoutSeconds": 10}
PROBES = {
    # What Maven Central has is a server without its console, and so without the paths for health.
    "startupProbe": {**_PROBE, "failureThreshold": 100},
    "readinessProbe": {**_PROBE, "failureThreshold": 6},
    "livenessProbe": {**_PROBE, "failureThreshold": 20},
}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a cluster whose Nacos pods are real servers."""
    if sys.platform != "linux":
        pytest.skip("servers need loopback addresses of their own, which only Linux has without being asked")
    entrypoint = [sys.executable, "-m", "tests.real.nacos_entrypoint", str(programs.nacos_home())]
    rule = {
        "image": "nacos/nacos-server:*",
        "command": [*entrypoint, "{root}", "{pod_ip}", "{hosts}"],
        "env": {"PYTHONPATH": str(ROOT), "HOSTNAME": "{hostname}"},
        "mounts": ["/home/nacos"],
        "files": [*PYTHON, str(programs.nacos_home())],
    }
    rules, path = tmp_path / "rules.yaml", tmp_path / "kubeconfig"
    rules.write_text(yaml.safe_dump([rule]))
    up = ["up", "--processes", str(rules), "--operators", "nacos", "--no-samples", "--output", "json"]
    with konverge_process(*up, "--kubeconfig", str(path), stop=signal.SIGINT) as line:
        assert json.loads(line)
        yield path


async def _until(client: Client, name: str, holds: Callable[[Nacos], bool]) -> Nacos:
    listing = await client.list(Nacos, "default")
    seen: Any = listing.items
    for nacos in listing.items:
        if nacos.metadata.name == name and holds(nacos):
            return nacos
    try:
        async with (
            asyncio.timeout(PATIENCE),
            aclosing(client.watch(Nacos, "default", resource_version=listing.metadata.resource_version)) as events,
        ):
            async for event in events:
                seen = event.object
                if event.type == "MODIFIED" and seen.metadata.name == name and holds(seen):
                    assert isinstance(seen, Nacos)
                    return seen
    except TimeoutError:
        pass
    raise AssertionError(f"{name} does not reach the expected state: {seen}")


def _runs(nacos: Nacos) -> bool:
    return nacos.status.phase == "Running"


async def _shrink(client: Client, servers: HttpNacosServers, name: str) -> None:
    """From three to two: the server that leaves, possibly the leader, is removed from the raft groups first."""
    await client.patch(Nacos, name, MergePatch({"spec": {"replicas": 2, "allowSmallClusters": True}}), "default")
    nacos = await _until(client, name, lambda seen: seen.status.replicas == 2 and is_ready(seen))
    address = next(node.instance for node in nacos.status.servers if node.type == "leader")
    members = await servers.nodes(address, timeout=60)
    assert {member.host.partition(".")[0] for member in members} == {f"{name}-0", f"{name}-1"}
    own = next(member for member in members if member.host.startswith(f"{nacos.status.leader}."))
    led = [peers for group, peers in own.groups.items() if (own.leaders or {})[group].address == own.raft_address]
    assert {len(peers) for peers in led} == {2}


@pytest.mark.spec("N-15", "N-19")
@pytest.mark.limit(600)  # begins first: real servers take minutes, most of them waiting
@pytest.mark.parametrize(("name", "replicas"), [("single", 1), ("trio", 3)])
async def test_the_operator_runs_real_servers_in_the_pods(
    kubeconfig: Path, kubectl: Path, tmp_path: Path, name: str, replicas: int
) -> None:
    spec = {
        "type": "standalone" if replicas == 1 else "cluster",
        "image": IMAGE,
        "replicas": replicas,
        "database": {"type": "embedded"},
        **PROBES,
    }
    nacos = {
        "apiVersion": "nacos.io/v1alpha1",
        "kind": "Nacos",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }
    tool = Tool(kubectl, kubeconfig, tmp_path)
    await asyncio.to_thread(tool, "apply", "-f", "-", stdin=json.dumps(nacos))
    servers = HttpNacosServers()
    async with Client.connect(Kubeconfig.read(str(kubeconfig)).config()) as client:
        running = await _until(client, name, _runs)
        assert running.status.version == "2.1.1"
        pods = (await client.list(Pod, "default", label_selector=f"app={name}")).items
        assert len(pods) == replicas
        for pod in pods:
            members = await servers.nodes(pod.status.pod_ip or "", timeout=60)
            assert len(members) == replicas
            connection = over_sockets(pod.status.pod_ip or "", PORT)
            state = await connection.send(Request("GET", "/nacos/v1/console/server/state"))
            await connection.aclose()
            assert state.status == 404, "a simulated server would know its state"
        assert "2.1.1" in await asyncio.to_thread(tool, "get", "nacos", name)
        if replicas > 1:
            await _shrink(client, servers, name)
