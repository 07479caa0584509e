"""The failure table of the facts file, line by line, with CDI working either way.

Machines that have nothing to do with each other share a cluster: what is simulated is slow to set up.
"""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import MergePatch
from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.kinds import DataVolume, NetworkAttachmentDefinition, VirtualMachine
from konverge.operators.wukong.kinds import VirtualMachineInstance as Instance
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.world import MODES, MODES_IN_TURN, SPACE, SPEC, World, world

pytestmark = pytest.mark.virtual

PLAIN = [{"name": "system", "size": "10Gi", "storageClassName": "fast"}]


async def faults(w: World, **words: str) -> None:
    """`vm__web="crash"` is the fault of machine web; see the simulator's own table."""
    data = {}
    for key, text in words.items():
        kind, _, name = key.partition("__")
        suffix = {"vm": "-vm", "dv": "-system", "pvc": "-system"}.get(kind, "")
        data[f"{kind}.{name}{suffix}"] = text
    if await w.find(ConfigMap, CONFIG_MAP) is None:
        await w.client.create(ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data=data))
    else:
        gone: dict[str, str | None] = dict.fromkeys((await w.client.get(ConfigMap, CONFIG_MAP, SPACE)).data)
        await w.client.patch(ConfigMap, CONFIG_MAP, MergePatch({"data": gone | data}), SPACE)


@pytest.mark.spec("W-05", "W-11", "W-14")
@pytest.mark.parametrize("mode", MODES)
async def test_imports_that_fail(mode: str) -> None:
    async with world(cdi=mode) as w:
        await faults(w, dv__notthere="import-404", dv__broken="import-fatal")
        await w.create("notthere")
        await w.create("broken")
        await w.until_condition("VolumesBound", "False", "ImportFailing", "notthere")
        await w.until_condition("VolumesBound", "False", "ImportFailed", "broken")
        result = await w.wukong("notthere")
        assert result.status.phase == "Creating"
        assert result.status.volumes[0].restarts >= 3
        assert "404" in await w.message("VolumesBound", "notthere")
        assert await w.vm("notthere") is None
        assert (await w.wukong("broken")).status.phase == "Error"
        assert await w.condition("Ready", "broken") == ("False", "ImportFailed")
        await faults(w)
        assert (await w.phase("Running", "notthere")).status.volumes[0].bound


@pytest.mark.spec("W-05", "W-11", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_claims_that_get_no_volume_or_lose_it(mode: str) -> None:
    async with world(cdi=mode) as w:
        nobody = StorageClass(provisioner="kubernetes.io/no-provisioner", volume_binding_mode="Immediate")
        nobody.metadata.name = "nobody"
        await w.client.create(nobody)
        await w.create("pending", disks=[PLAIN[0] | {"storageClassName": "nobody"}])
        await w.create("classless", disks=[PLAIN[0] | {"storageClassName": "unheard-of"}])
        await w.create(
            "imageless", disks=[PLAIN[0] | {"storageClassName": "unheard-of", "image": "http://x.example/i"}]
        )
        await w.running("losing", disks=PLAIN)
        assert (await w.wukong("pending")).status.phase == "Creating"
        assert await w.condition("VolumesBound", "pending") == ("False", "ClaimPending")
        assert "kubernetes.io/no-provisioner" in await w.message("VolumesBound", "pending")
        for name in ("classless", "imageless"):
            assert "there is no storage class unheard-of" in await w.message("VolumesBound", name)
        await asyncio.sleep(60)
        w.writes()
        rounds = w.manager.engines["wukong"].numbers.results["requeue_after"]
        await asyncio.sleep(100)
        assert w.writes() == []
        assert w.manager.engines["wukong"].numbers.results["requeue_after"] - rounds <= 33, "three machines, every 10 s"
        await faults(w, pvc__losing="lost")
        await w.until_condition("VolumesBound", "False", "ClaimLost", "losing")
        assert (await w.wukong("losing")).status.phase == "Error"


@pytest.mark.spec("W-08", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_machines_that_find_no_node_or_crash(mode: str) -> None:
    async with world(cdi=mode) as w:
        await faults(w, vm__soon="unschedulable seconds=20", vm__never="unschedulable", vm__twice="crash times=2",
                     vm__always="crash")  # fmt: skip
        for name in ("soon", "never", "twice", "always"):
            await w.create(name, disks=PLAIN)
        phases: set[str] = set()

        async def soon_runs() -> bool:
            phases.add((await w.wukong("soon")).status.phase)
            return "Running" in phases

        await w.until(soon_runs, "the machine that waits for a node")
        assert phases <= {"", "Pending", "Creating", "Running"}, "what passes by itself is no error"
        await w.until_condition("Ready", "False", "Unschedulable", "never")
        assert (await w.wukong("never")).status.phase == "Creating"
        assert "nodes are available" in await w.message("Ready", "never")
        await w.phase("Running", "twice")
        await w.until_condition("Ready", "False", "CrashLoopBackOff", "always")
        result = await w.phase("Error", "always")
        assert "times in a row" in result.status.message
        await faults(w)
        await w.phase("Running", "always")
        await w.phase("Running", "never")


@pytest.mark.spec("W-08", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_addresses_that_vanish_and_guests_without_an_agent(mode: str) -> None:
    async with world(cdi=mode) as w:
        await faults(w, vm__flicker="ip-vanishes after=20 seconds=3", vm__silent="no-agent")
        await w.create("flicker", disks=PLAIN)
        await w.create("silent", disks=PLAIN)
        await w.phase("Running", "silent")
        address = (await w.phase("Running", "flicker")).status.primary_ip
        assert address
        vanished = False
        for _ in range(90):
            await asyncio.sleep(1)
            seen = await w.vmi("flicker")
            assert seen is not None
            vanished |= not any(interface.ip_address for interface in seen.status.interfaces)
            result = await w.wukong("flicker")
            assert result.status.primary_ip
            assert await w.condition("Ready", "flicker") == ("True", "VMRunning")
        assert vanished
        silent = await w.wukong("silent")
        assert not silent.status.agent_connected
        assert await w.condition("Ready", "silent") == ("True", "VMRunning")


@pytest.mark.spec("W-04", "W-07", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_what_somebody_deletes_or_edits_by_hand(mode: str) -> None:
    lan = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]
    async with world(cdi=mode) as w:
        await w.running(
            networks=lan, disks=[*SPEC["disks"], {"name": "data", "size": "1Gi", "storageClassName": "fast"}]
        )
        first = await w.vmi()
        assert first is not None
        await w.client.delete(Instance, "web-vm", SPACE)

        async def another() -> bool:
            now = await w.vmi()
            return now is not None and now.metadata.uid != first.metadata.uid

        await w.until(another, "another instance")
        await w.phase("Running")
        attachment = await w.client.get(NetworkAttachmentDefinition, "web-lan-nad", SPACE)
        await w.client.patch(NetworkAttachmentDefinition, "web-lan-nad", MergePatch({"spec": {"config": "{}"}}), SPACE)
        await asyncio.sleep(2)
        repaired = await w.client.get(NetworkAttachmentDefinition, "web-lan-nad", SPACE)
        assert repaired.spec.config == attachment.spec.config
        await w.client.delete(NetworkAttachmentDefinition, "web-lan-nad", SPACE)
        await asyncio.sleep(2)
        assert await w.find(NetworkAttachmentDefinition, "web-lan-nad") is not None
        machine = await w.vm()
        await w.client.delete(VirtualMachine, "web-vm", SPACE)

        async def made_again() -> bool:
            now = await w.vm()
            return now is not None and machine is not None and now.metadata.uid != machine.metadata.uid

        await w.until(made_again, "another VirtualMachine")
        await w.phase("Running")


@pytest.mark.spec("W-05", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_a_claim_that_is_deleted_is_not_made_again_in_silence(mode: str) -> None:
    async with world(cdi=mode) as w:
        await w.running(disks=[*PLAIN, {"name": "data", "size": "1Gi", "storageClassName": "fast"}])
        await w.client.delete(PersistentVolumeClaim, "web-data", SPACE)
        await w.until_condition("VolumesBound", "False", "ClaimDeleting")
        assert await w.condition("Ready") == ("True", "VMRunning"), "what is in use stays until it is not"
        await w.client.delete(Instance, "web-vm", SPACE)
        await w.until_condition("VolumesBound", "False", "ClaimLost")
        result = await w.phase("Error")
        assert "Put it back from a backup" in result.status.message
        await w.change(disks=PLAIN)
        await w.phase("Running")
        await w.change(disks=[*PLAIN, {"name": "data", "size": "1Gi", "storageClassName": "fast"}])

        async def there() -> bool:
            claim = await w.find(PersistentVolumeClaim, "web-data")
            return claim is not None and claim.status.phase == "Bound"

        await w.until(there, "a new claim")


@pytest.mark.spec("W-05", "W-14")
@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_a_data_volume_that_was_tidied_up_is_not_made_again(mode: str) -> None:
    async with world(cdi=mode) as w:
        await faults(w, dv__web="collected seconds=5")
        await w.running()
        await w.gone(DataVolume, "web-system")
        await asyncio.sleep(60)
        assert await w.find(DataVolume, "web-system") is None
        result = await w.wukong()
        assert result.status.phase == "Running"
        assert result.status.volumes[0].bound


@pytest.mark.spec("W-05", "W-14")
@pytest.mark.parametrize("mode", MODES)
async def test_a_data_volume_that_is_deleted_half_way_is_imported_anew(mode: str) -> None:
    async with world(cdi=mode) as w:
        await w.create()
        result = None
        while result is None or result.status.phase != "ImportInProgress":
            await asyncio.sleep(1)
            result = await w.find(DataVolume, "web-system")
        await w.client.delete(DataVolume, "web-system", SPACE)
        while (now := await w.find(DataVolume, "web-system")) is None or now.metadata.uid == result.metadata.uid:
            assert await w.vm() is None, "a disk that is half full is no disk"
            await asyncio.sleep(1)
        await w.phase("Running")
