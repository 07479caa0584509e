"""What keeps a machine from running is named, and what was not looked at is not called fine."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Event
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import SPACE, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-09")]

PLAIN: dict[str, Any] = {"name": "system", "size": "1Gi", "storageClassName": "fast"}
LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]


async def test_an_instance_type_that_there_is_not_is_an_error_until_it_comes() -> None:
    async with world(timings=QUICK) as w:
        await w.create(disks=[PLAIN], cpu=None, memory=None, instancetype={"name": "large"})
        result = await w.phase("Error")
        assert "large" in result.status.message
        assert await w.condition("Ready") == ("False", "FailedFindInstancetype")
        assert await w.condition("VirtualMachineReady") == ("False", "FailedFindInstancetype")
        await asyncio.sleep(200)
        about = "reason=FailedFindInstancetype,involvedObject.kind=Wukong"
        assert sum(event.count or 1 for event in await w.client.list(Event, SPACE, field_selector=about)) == 1
        made = {"apiVersion": "instancetype.kubevirt.io/v1beta1", "kind": "VirtualMachineClusterInstancetype",
                "metadata": {"name": "large"}, "spec": {"cpu": {"guest": 2}, "memory": {"guest": "2Gi"}}}  # fmt: skip
        await w.client.create(made)
        await w.phase("Running")


async def test_steps_that_were_not_reached_are_not_called_fine() -> None:
    async with world(timings=QUICK) as w:
        theirs = {"apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
                  "metadata": {"name": "web-lan-nad", "namespace": SPACE}, "spec": {"config": "{}"}}  # fmt: skip
        await w.client.create(theirs)
        await w.create(disks=[PLAIN], networks=LAN)
        await w.phase("Error")
        assert await w.condition("VolumesBound") == ("Unknown", "NotReached")
        await w.client.delete("network-attachment-definitions.k8s.cni.cncf.io", "web-lan-nad", SPACE)
        await w.phase("Running")
        assert await w.condition("VolumesBound") == ("True", "VolumesReady")
        assert await w.message("VolumesBound") == "1 volume"
        assert await w.message("NetworksConfigured") == "2 networks"
        await w.client.create(theirs | {"metadata": {"name": "web-more-nad", "namespace": SPACE}})
        await w.change(networks=[*LAN, {"name": "more", "type": "bridge", "bridgeName": "br-more"}])
        await w.phase("Error")
        assert await w.condition("VolumesBound") == ("True", "VolumesReady"), "what was known stays"
