"""An operator that is newer than the definitions in the cluster: `helm upgrade` leaves definitions as they are."""

from __future__ import annotations

import asyncio

import pytest

from konverge.client import Recording
from konverge.objects import crd
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import WukongAddress, WukongQuota, WukongSnapshotSchedule, WukongTemplate
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.test_schedules import ready, schedule
from tests.operators.wukong.test_snapshots import take, until_phase
from tests.operators.wukong.world import World, make_classes, operating

NEWER = (WukongSnapshotSchedule, WukongTemplate, WukongQuota, WukongAddress)
"""Kinds that the first release did not have."""

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-26")]


async def test_machines_are_kept_up_without_schedules_which_begin_when_they_are_installed() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        newer = {f"{kind.resource.plural}.{kind.resource.group}" for kind in NEWER}
        for definition in OPERATOR.definitions():
            if definition["metadata"]["name"] not in newer:
                await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        async with operating(Recording(cluster.client)) as manager:
            w = World(cluster, kubevirt, manager, Recording(cluster.client))
            await w.running()
            await take(w, "by-hand")
            await until_phase(w, "by-hand", "Succeeded")
            await asyncio.sleep(600)
            assert (await w.wukong()).status.phase == "Running"
            assert all(engine.numbers.errors == 0 for engine in manager.engines.values())

            for kind in NEWER:
                await cluster.client.create(crd(kind))
            await cluster.settle()
            await schedule(w)
            await asyncio.sleep(600)
            assert await ready(w) == ("True", "Scheduled")
