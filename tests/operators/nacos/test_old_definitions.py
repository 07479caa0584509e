"""An operator that is newer than the definitions in the cluster: `helm upgrade` leaves definitions as they are."""

from __future__ import annotations

import pytest

from konverge.objects import crd
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.operators.nacos.resource import Nacos
from konverge.sim.cluster import Cluster
from tests.operators.nacos.world import STANDALONE, World

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-43")]


@pytest.mark.parametrize("versions", [False, True])
async def test_servers_are_kept_up_where_only_the_old_definition_is(versions: bool) -> None:
    async with Cluster() as cluster:
        old = await cluster.client.create(crd(Nacos))
        await cluster.settle()
        world = World(cluster)
        world.versions = versions
        async with world.operating():
            await world.up("nacos", STANDALONE)
            await world.update("nacos", replicas=1, serviceType="NodePort")
        now = await cluster.client.get(CustomResourceDefinition, old.metadata.name)
        assert [version.name for version in now.spec.versions] == ["v1alpha1"]
