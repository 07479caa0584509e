"""Resources of the public original apply unchanged, and become running machines."""

from __future__ import annotations

import pytest

from konverge.client import Client
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.kinds import NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.kinds.networks import NetworkAttachmentDefinitionSpec
from konverge.operators.wukong.resource import Wukong
from tests.operators.wukong.specs import ORIGINAL
from tests.operators.wukong.test_spec import body
from tests.operators.wukong.world import SPACE, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-01", "W-07")]


async def prepare(client: Client) -> None:
    """What the samples take for granted."""
    for name in ("local-path", "longhorn", "default"):
        meta = ObjectMeta(name=name)
        if name == "default":
            meta.annotations["storageclass.kubernetes.io/is-default-class"] = "true"
        await client.create(StorageClass(metadata=meta, provisioner="konverge.dev/volumes"))
    await client.create(
        NetworkAttachmentDefinition(
            metadata=ObjectMeta(name="sriov-net", namespace=SPACE),
            spec=NetworkAttachmentDefinitionSpec(config='{"cniVersion":"0.3.1","name":"sriov-net","type":"sriov"}'),
        )
    )
    keys = {"id_rsa.pub": "ssh-ed25519 AAAA me"}
    await client.create(Secret(metadata=ObjectMeta(name="keys", namespace=SPACE), string_data=keys))


@pytest.mark.parametrize("case", [case for case in ORIGINAL if case.startswith("its")])
async def test_its_samples_come_up(case: str) -> None:
    async with world() as it:
        await prepare(it.client)
        await it.client.create(body(ORIGINAL[case]), SPACE)
        result = await it.phase("Running")
        assert [volume.bound for volume in result.status.volumes] == [True] * len(ORIGINAL[case]["disks"])


async def test_every_other_field_reaches_kubevirt() -> None:
    """It does not run here: there is no GPU, and `restoreFromSnapshot` names a snapshot that is not there."""
    given = {key: value for key, value in ORIGINAL["every other field it has"].items() if key != "restoreFromSnapshot"}
    async with world() as it:
        await prepare(it.client)
        await it.client.create(body(given), SPACE)

        async def made() -> bool:
            return await it.vm() is not None

        await it.until(made, "the machine")
        vm = await it.client.get(VirtualMachine, "web-vm", SPACE)
        wukong = await it.client.get(Wukong, "web", SPACE)
    template = vm.spec.template.spec
    assert vm.spec.run_strategy == "Halted"
    assert template.node_selector == {"disk": "ssd"}
    assert [gpu.device_name for gpu in template.domain.devices.gpus or []] == ["nvidia.com/gpu"]
    assert [network.name for network in template.networks or []] == ["fast", "ovs"]
    assert wukong.status.volumes[0].type == "DataVolume"
