"""From an image to a running machine and away again, in both ways of CDI."""

from __future__ import annotations

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod
from konverge.sim import run
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import PARTS, SimulatedKubeVirt
from tests.sim.kubevirt.conftest import (
    CONTROLLERS,
    DV,
    SPACE,
    VM,
    VMI,
    claim,
    condition,
    data_volume,
    machine,
    nad,
    playing,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("S-22")]
WAYS = pytest.mark.parametrize("way", ["populator", "legacy"])


@WAYS
async def test_a_machine_runs_from_an_imported_image(way: str) -> None:
    async with playing(cdi=way) as play:
        await play.client.create(data_volume("root"))
        seen = await play.until(DV, "root", "Succeeded")
        assert seen[-3:] == ["ImportScheduled", "ImportInProgress", "Succeeded"]
        await play.client.create(machine("web-vm", "root"))
        assert (await play.until(VMI, "web-vm", "Running"))[-4:] == ["Pending", "Scheduling", "Scheduled", "Running"]
        await play.after(1)
        assert await play.shown() == "Running"
        result = await play.status(VMI)
        assert result["nodeName"] in play.cluster.node_names
        assert result["interfaces"][0]["ipAddress"]
        assert condition(result, "Ready") == ("True", "")
        assert condition(await play.status(VM), "Ready")[0] == "True"


@pytest.mark.parametrize(("way", "waits"), [("populator", "PendingPopulation"), ("legacy", "WaitForFirstConsumer")])
async def test_a_class_that_waits_is_filled_when_the_machine_is_there(way: str, waits: str) -> None:
    async with playing(cdi=way) as play:
        await play.client.create(data_volume("root", kind="standard-wait"))
        await play.after(60)
        assert (await play.phase(DV, "root"), await play.bound("root")) == (waits, "Pending")
        await play.client.create(machine("web-vm", "root"))
        await play.after(4)
        assert await play.shown() in ("WaitingForVolumeBinding", "Starting")  # of a claim KubeVirt knows no import
        await play.until(VMI, "web-vm", "Running")
        assert (await play.phase(DV, "root"), await play.bound("root")) == ("Succeeded", "Bound")
        pods = await play.client.list(Pod, SPACE)
        assert len(pods) == 1


async def test_an_agent_answers_some_time_after_the_guest_runs() -> None:
    async with playing() as play:
        await play.client.create(nad("lan"))
        await play.client.create(machine("web-vm", networks={"lan": "lan"}))
        await play.until(VMI, "web-vm", "Running")
        early = await play.status(VMI)
        assert condition(early, "AgentConnected") == ("", "")
        assert "ipAddress" not in early["interfaces"][1]
        await play.after(31)
        late = await play.status(VMI)
        assert condition(late, "AgentConnected")[0] == "True"
        assert late["guestOSInfo"]["id"] == "debian"
        assert [interface["interfaceName"] for interface in late["interfaces"]] == ["enp1s0", "enp2s0"]
        assert late["interfaces"][1]["ipAddress"].startswith("192.168.")


async def test_a_halted_machine_stops_and_starts_again() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        first = (await play.get(VMI))["metadata"]["uid"]
        await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Halted"}})
        await play.after(1)
        assert await play.shown() == "Stopping"
        await play.after(20)
        assert (await play.shown(), await play.find(VMI)) == ("Stopped", None)
        await play.patch(VM, "web-vm", {"spec": {"runStrategy": "Always"}})
        await play.until(VMI, "web-vm", "Running")
        assert (await play.get(VMI))["metadata"]["uid"] != first


async def test_deletion_is_slow_and_in_order() -> None:
    """The instance goes first, its claim is in use until then, and the machine is the last."""
    async with playing() as play:
        await play.client.create(claim("data"))
        await play.client.create(machine("web-vm", "data"))
        await play.until(VMI, "web-vm", "Running")
        await play.client.delete(PersistentVolumeClaim, "data", SPACE)
        await play.client.delete(VM, "web-vm", SPACE)
        order: list[str] = []
        for _ in range(100):
            await play.after(0.25)
            left = [await play.find(VMI), await play.find(PersistentVolumeClaim.resource, "data"), await play.find(VM)]
            names = ("instance", "claim", "machine")
            order += [name for name, item in zip(names, left, strict=True) if item is None and name not in order]
            if left[2] is not None and left[0] is not None:
                assert await play.shown() == "Terminating"
        assert (sorted(order[:2]), order[2:]) == (["claim", "instance"], ["machine"])


async def test_an_instance_deleted_by_hand_comes_back_under_always() -> None:
    async with playing() as play:
        await play.client.create(machine("web-vm"))
        await play.until(VMI, "web-vm", "Running")
        first = (await play.get(VMI))["metadata"]["uid"]
        await play.client.delete(VMI, "web-vm", SPACE)
        await play.after(60)
        vmi = await play.get(VMI)
        assert (vmi["status"]["phase"], vmi["metadata"]["uid"] != first) == ("Running", True)


def test_one_seed_gives_one_history() -> None:
    async def history() -> list[object]:
        async with playing(seed=7) as play:
            await play.client.create(data_volume("root"))
            await play.client.create(machine("web-vm", "root"))
            await play.until(VMI, "web-vm", "Running")
            return (await play.status(VMI))["phaseTransitionTimestamps"]  # type: ignore[no-any-return]

    assert run(history(), seed=7) == run(history(), seed=7)


async def test_all_parts_live_together_and_leave_the_server_as_it_was() -> None:
    async with Cluster(controllers=CONTROLLERS) as cluster:
        before = cluster.server.admission
        async with SimulatedKubeVirt(cluster) as kubevirt:
            assert kubevirt.installed == set(PARTS)
            assert "subresources.kubevirt.io" in cluster.server.registry.groups()
        assert (cluster.server.admission is before, "subresources.kubevirt.io" in cluster.server.registry.groups()) == (
            True,
            False,
        )
        async with SimulatedKubeVirt(cluster):  # once more, on what is there already
            await cluster.client.create(machine("web-vm"))
            await cluster.clock.advance(60)
            assert (await cluster.client.get(VMI, "web-vm", SPACE))["status"]["phase"] == "Running"
        async with SimulatedKubeVirt(cluster):
            await cluster.clock.advance(1)
            assert condition((await cluster.client.get(VMI, "web-vm", SPACE))["status"], "AgentConnected")[0] == "True"


async def test_a_part_that_does_not_exist() -> None:
    async with Cluster(controllers=False) as cluster:
        with pytest.raises(ValueError, match="there is no part xen; there are: cdi"):
            SimulatedKubeVirt(cluster, parts=["xen"])
