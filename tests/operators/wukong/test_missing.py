"""What a cluster lacks: a clear condition, and work as soon as it is installed. And what the API server refuses."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Client, Recording, Static
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.kinds import DataVolume, VirtualMachine
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import Wukong
from konverge.sim.cluster import Cluster
from konverge.sim.faults import Faulty, Plan
from konverge.sim.kubevirt import PARTS, QUICK, SimulatedKubeVirt
from tests.operators.wukong.test_snapshots import take, until_phase
from tests.operators.wukong.world import NAME, SPACE, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-14")]

DISKS = [{"name": "system", "size": "10Gi", "storageClassName": "fast"}]
FAULTS = ("429", "500", "503", "lost-before", "slow", "cut", "late", "twice")
AMOUNTS = {"cut": "(2)", "slow": "(3)", "late": "(5)"}
LAN = [{"name": "default"}, {"name": "lan", "type": "bridge", "bridgeName": "br-lan"}]


@pytest.mark.spec("W-04", "W-09")
async def test_parts_that_are_missing_at_the_start_and_come_one_by_one() -> None:
    assert {"kubevirt", "cdi", "multus"} <= set(PARTS)
    async with world(parts=(), timings=QUICK) as w:
        await w.create("plain", disks=DISKS)
        await w.create("filled")
        await w.create("wired", disks=DISKS, networks=LAN)
        await w.until_condition("VirtualMachineReady", "False", "KubeVirtMissing", "plain")
        await w.until_condition("VolumesBound", "False", "CDIMissing", "filled")
        await w.until_condition("NetworksConfigured", "False", "MultusMissing", "wired")
        assert await w.message("VirtualMachineReady", "plain") == "the cluster has no KubeVirt: install it"
        assert w.manager.engines["wukong"].numbers.errors == 0
        await w.kubevirt.install("kubevirt")
        await w.phase("Running", "plain")
        await w.kubevirt.install("multus")
        await w.phase("Running", "wired")
        assert (await w.wukong("filled")).status.phase == "Creating"
        await w.kubevirt.install("cdi")
        await w.phase("Running", "filled")


async def test_snapshots_that_the_cluster_cannot_take_yet() -> None:
    async with world(parts=("kubevirt",), timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "early")
        assert "snapshot.kubevirt.io" in (await until_phase(w, "early", "Failed")).status.error
        await w.change(restoreFromSnapshot="early")
        await w.until_condition("RestoreInProgress", "False", "SnapshotsMissing")
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.delete()
        await w.gone(Wukong, NAME)


@pytest.mark.spec("W-11")
@pytest.mark.parametrize(
    "plan",
    ["409", "lost-after", *(pytest.param(item, marks=pytest.mark.long) for item in FAULTS)],
)
async def test_whatever_happens_to_a_call_there_is_one_child_of_each_sort(plan: str) -> None:
    """Every tenth exchange of the operator goes wrong, until the machine runs."""
    faults = Plan.read(" ".join(f"{plan}{AMOUNTS.get(plan, '')}@{number}" for number in range(20, 220, 10)))
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        faulty = Faulty(cluster.server.transport, faults.faults)
        async with (
            Client(faulty, credentials=Static.bearer(cluster.server.token)) as client,
            operating(client) as manager,
        ):
            w = World(cluster, kubevirt, manager, Recording(client))
            await w.running(networks=LAN)
            for kind in (VirtualMachine, DataVolume, PersistentVolumeClaim):
                assert len((await cluster.client.list(kind, SPACE)).items) == 1
            await w.delete()
            await w.gone(Wukong, NAME)
            assert faulty.happened
            await asyncio.sleep(20)
            assert (await cluster.client.list(PersistentVolumeClaim, SPACE)).items == []


@pytest.mark.spec("W-11")
async def test_a_refusal_of_the_api_server_is_told() -> None:
    async with world(timings=QUICK) as w:
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tight", "namespace": SPACE},
                 "spec": {"hard": {"persistentvolumeclaims": "0"}}}  # fmt: skip
        await w.client.create(quota)
        await asyncio.sleep(5)
        await w.create(disks=DISKS)
        result = await w.phase("Error")
        assert "exceeded quota" in result.status.message
        assert await w.condition("Ready") == ("False", "Refused")
        await w.client.delete("resourcequotas", "tight", SPACE)
        await w.phase("Running")
