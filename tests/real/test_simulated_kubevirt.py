"""The simulated KubeVirt on the real kube-apiserver: it takes the definitions, and a machine runs there as on ours."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, Invalid, MergePatch, load_config
from konverge.objects.resource import Resource
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.sim.parts import Parts
from tests.real.clients.waiting import LIMIT
from tests.sim.kubevirt.conftest import DV, SPACE, VM, VMI, data_volume, machine
from tools.control_plane import ControlPlane

pytestmark = pytest.mark.spec("S-22")


async def until(client: Client, kind: Resource, name: str, phase: str) -> dict[str, Any]:
    async with asyncio.timeout(LIMIT):
        async for event in client.watch(kind, SPACE, field_selector=f"metadata.name={name}"):
            if event.type != "BOOKMARK" and event.object.get("status", {}).get("phase") == phase:
                return event.object
    raise AssertionError(f"{kind.kind} {name} never became {phase}")


async def gone(client: Client, kind: Resource, name: str) -> None:
    """Delete it, and wait until nothing holds it any more."""
    version = (await client.list(kind, SPACE)).metadata.resource_version
    await client.delete(kind, name, SPACE)
    async with asyncio.timeout(LIMIT):
        async for event in client.watch(kind, SPACE, resource_version=version):
            if event.type == "DELETED":
                return


@pytest.mark.parametrize("way", ["populator", "legacy"])
async def test_a_machine_runs_on_the_real_server(real_server: ControlPlane, way: Any) -> None:
    name = f"web-{way}"
    config = load_config(kubeconfig=str(real_server.kubeconfig))
    async with (
        Client.connect(config) as client,
        Parts(Kubelet()).at_work(client, nodes=2),
        SimulatedKubeVirt(client, cdi=way, timings=QUICK),
    ):
        await client.create(data_volume(name, kind="standard-wait"))
        await client.create(machine(name, name))
        instance = await until(client, VMI, name, "Running")
        assert instance["status"]["nodeName"].startswith("node-")
        assert (await client.get(DV, name, SPACE))["status"]["phase"] == "Succeeded"
        with pytest.raises(Invalid, match="Cannot update DataVolume Spec"):
            await client.patch(DV, name, MergePatch({"spec": {"source": {"blank": {}}}}), SPACE)
        with pytest.raises(Invalid, match="mutually exclusive"):
            await client.patch(VM, name, MergePatch({"spec": {"running": True}}), SPACE)
        await gone(client, VM, name)
