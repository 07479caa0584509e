"""Changes that reach a running guest, where KubeVirt's rollout strategy is LiveUpdate, and those that wait."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import SPACE, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-25")]

SYSTEM = {"name": "system", "size": "10Gi", "storageClassName": "fast"}
MORE = {"name": "more", "size": "1Gi", "storageClassName": "fast", "hotpluggable": True, "bus": "scsi"}
LAN = {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}
DMZ = {"name": "dmz", "type": "bridge", "bridgeName": "br-dmz"}
INSTANCES = "virtualmachineinstances.kubevirt.io"


async def instance(w: World) -> dict[str, Any]:
    return await w.client.get(INSTANCES, "web-vm", SPACE)


async def started(w: World, **spec: Any) -> str:
    """The uid of the instance of a machine that runs."""
    await w.running(disks=[SYSTEM], **spec)
    await asyncio.sleep(30)
    uid: str = (await instance(w))["metadata"]["uid"]
    return uid


async def restart_required(w: World) -> str:
    return (await w.condition("RestartRequired"))[0]


async def test_processors_memory_disks_and_networks_reach_a_running_guest() -> None:
    async with world(timings=QUICK, rollout="LiveUpdate") as w:
        uid = await started(w, networks=[{"name": "default"}, LAN])
        await w.change(cpu=4, memory="4Gi")
        await asyncio.sleep(20)
        seen = await instance(w)
        assert seen["status"]["currentCPUTopology"]["sockets"] == 4
        assert seen["status"]["memory"]["guestCurrent"] == "4Gi"
        await w.change(disks=[SYSTEM, MORE], networks=[{"name": "default"}, LAN, DMZ])
        await asyncio.sleep(30)
        seen = await instance(w)
        assert "more" in [volume["name"] for volume in seen["status"]["volumeStatus"]]
        assert [interface["name"] for interface in seen["status"]["interfaces"]] == ["default", "lan", "dmz"]
        assert [network.name for network in (await w.wukong()).status.networks] == ["default", "lan", "dmz"]
        assert (seen["metadata"]["uid"], await restart_required(w)) == (uid, "False")
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []


async def test_a_first_network_beside_that_of_the_pods_waits_for_a_restart() -> None:
    """From two interfaces on, cloud-init is told about them, and the disk that it reads cannot change in a guest."""
    async with world(timings=QUICK, rollout="LiveUpdate") as w:
        uid = await started(w)
        await w.change(networks=[{"name": "default"}, LAN])
        await w.until_condition("RestartRequired", "True", "PendingChanges")
        assert (await instance(w))["metadata"]["uid"] == uid


async def test_a_disk_is_unplugged_and_its_claim_stays() -> None:
    async with world(timings=QUICK, rollout="LiveUpdate") as w:
        uid = await started(w)
        await w.change(disks=[SYSTEM, MORE])
        await asyncio.sleep(20)
        assert "more" in [volume["name"] for volume in (await instance(w))["spec"]["volumes"]]
        await w.change(disks=[SYSTEM])
        await asyncio.sleep(20)
        seen = await instance(w)
        assert "more" not in [volume["name"] for volume in seen["spec"]["volumes"]]
        assert (seen["metadata"]["uid"], await restart_required(w)) == (uid, "False")
        assert await w.find(PersistentVolumeClaim, "web-more") is not None


async def test_a_disk_grows_while_the_guest_runs() -> None:
    async with world(timings=QUICK, rollout="LiveUpdate") as w:
        uid = await started(w)
        await w.change(disks=[SYSTEM | {"size": "20Gi"}])
        await asyncio.sleep(30)
        volumes = {volume.name: volume for volume in (await w.wukong()).status.volumes}
        assert volumes["system"].capacity == "20Gi"
        assert ((await instance(w))["metadata"]["uid"], await restart_required(w)) == (uid, "False")


@pytest.mark.parametrize("rollout", ["Stage", "LiveUpdate"])
async def test_what_cannot_reach_the_guest_is_shown_until_a_restart(rollout: Any) -> None:
    async with world(timings=QUICK, rollout=rollout) as w:
        uid = await started(w)
        await w.change(hostname="other")
        await w.until_condition("RestartRequired", "True", "PendingChanges")
        assert (await w.wukong()).status.pending_changes
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.change(cpu=4)
        await asyncio.sleep(20)
        seen = await instance(w)
        assert (seen["metadata"]["uid"], seen["spec"]["domain"]["cpu"]["sockets"]) == (uid, 2), "nothing goes past it"
        await w.change(restartAt="now")

        async def up_to_date() -> bool:
            return await restart_required(w) == "False" and (await w.wukong()).status.phase == "Running"

        await w.until(up_to_date, "the restart")
        assert (await instance(w))["spec"]["domain"]["cpu"]["sockets"] == 4


@pytest.mark.parametrize("chosen", ["bios", "efi", "secureBoot"])
async def test_a_firmware_that_is_taken_back_leaves_the_board_its_identity(chosen: str) -> None:
    """The uuid and the serial number are KubeVirt's, beside our loader: licences of guests go by them."""
    async with world(timings=QUICK) as w:

        async def board() -> dict[str, Any]:
            machine = await w.client.get("virtualmachines.kubevirt.io", "web-vm", SPACE)
            return dict(machine["spec"]["template"]["spec"]["domain"]["firmware"])

        await started(w)
        before = await board()
        assert before.keys() == {"uuid", "serial"}
        for _ in range(2):
            await w.change(firmware=chosen)
            await asyncio.sleep(30)
            assert (await board()).keys() == {"uuid", "serial", "bootloader"}
            await w.change(firmware=None)
            await asyncio.sleep(30)
            assert await board() == before
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []
