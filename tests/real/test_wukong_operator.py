"""The Wukong operator on the real kube-apiserver, as its own service account with the roles that are made for it.

KubeVirt and CDI are the simulated ones, whose controllers need nothing but a client; nodes and volumes as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from konverge.cli.installation import Installation
from konverge.client import Client, Config, NotFound, Static, TlsSettings, load_config
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Secret
from konverge.operators.wukong.kinds import DataVolume, NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import Wukong
from konverge.runtime import Manager, controller_of
from konverge.runtime.rbac import permissions
from konverge.sim.kubelet.agent import Kubelet
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.sim.parts import Parts
from tests.real.clients.waiting import LIMIT, until_allowed
from tools.control_plane import ControlPlane

SPACE = "default"
SPEC: dict[str, Any] = {
    "cpu": 2,
    "memory": "2Gi",
    "disks": [{"name": "system", "size": "10Gi", "storageClassName": "standard", "image": "https://example.com/a.img"}],
    "networks": [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}],
}


async def own_account(client: Client, config: Config) -> Config:
    """The operator's service account with what `konverge manifests` grants it, and a configuration for it."""
    access = Installation(operators=[OPERATOR], namespace=SPACE).access()
    for obj in access:
        await client.create(obj)
    token = await client.request_token(access[0]["metadata"]["name"], SPACE)
    plain = TlsSettings(ca_file=config.tls.ca_file, ca_data=config.tls.ca_data)
    return Config(server=config.server, tls=plain, credentials=Static.bearer(token.token))


def has_an_address(wukong: Wukong) -> bool:
    return wukong.status.phase == "Running" and wukong.status.primary_ip != ""


async def until(client: Client, name: str, holds: Callable[[Wukong], Any]) -> Wukong:
    async with asyncio.timeout(LIMIT):
        async for event in client.watch(Wukong, SPACE, field_selector=f"metadata.name={name}"):
            if event.type != "BOOKMARK" and holds(event.object):
                return event.object
    raise AssertionError(f"{name} never became what is expected")


@pytest.mark.spec("W-02", "W-10", "W-12")
@pytest.mark.limit(600)
async def test_a_machine_is_created_and_deleted_on_the_real_server(real_server: ControlPlane) -> None:
    config = load_config(kubeconfig=str(real_server.kubeconfig))
    async with Client.connect(config) as client:
        for definition in OPERATOR.definitions():
            await client.create(definition)
        async with (
            Parts(Kubelet()).at_work(client, nodes=2),
            SimulatedKubeVirt(client, timings=QUICK),
            Client.connect(await own_account(client, config)) as own,
        ):
            manager = Manager(own, name=OPERATOR.identity)
            for controller in controllers(Options()):
                manager.add(controller)
            await until_allowed(own, permissions(manager.controllers))
            async with manager.running():
                made = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong",
                        "metadata": {"name": "web", "namespace": SPACE}, "spec": SPEC}  # fmt: skip
                await client.create(made)
                wukong = await until(client, "web", has_an_address)
                for kind, name in (
                    (VirtualMachine, "web-vm"),
                    (DataVolume, "web-system"),
                    (NetworkAttachmentDefinition, "web-lan-nad"),
                    (Secret, "web-cloudinit"),
                ):
                    owner = controller_of(await client.get(kind, name, SPACE))
                    assert owner is not None
                    assert owner.uid == wukong.metadata.uid
                version = (await client.list(Wukong, SPACE)).metadata.resource_version
                await client.delete(Wukong, "web", SPACE)
                async with asyncio.timeout(LIMIT):
                    async for event in client.watch(Wukong, SPACE, resource_version=version):
                        if event.type == "DELETED":
                            break
                with pytest.raises(NotFound):
                    await client.get(VirtualMachine, "web-vm", SPACE)
                with pytest.raises(NotFound):
                    await client.get(PersistentVolumeClaim, "web-system", SPACE)
            numbers = manager.engines["wukong"].numbers
            assert (numbers.panics, numbers.terminal_errors) == (0, 0)
