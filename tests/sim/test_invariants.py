"""The invariants are strict: what may not happen is noticed, and what may is not taken for it."""

from __future__ import annotations

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import ConfigMap, Pod
from konverge.objects.meta import ObjectMeta
from konverge.sim.cluster import Cluster
from konverge.sim.invariants import Invariants, Violation
from tests.sim.conftest import SPACE, pod

pytestmark = [pytest.mark.spec("S-20"), pytest.mark.virtual]

HOLD = "example.com/hold"


async def watched(cluster: Cluster) -> Invariants:
    """With a ConfigMap that a finalizer holds."""
    meta = ObjectMeta(name="kept", namespace=SPACE, finalizers=[HOLD])
    await cluster.client.create(ConfigMap(metadata=meta))
    watching = Invariants(cluster)
    watching.follow()
    return watching


async def test_the_write_that_takes_the_last_finalizer_may_end_an_object(cluster: Cluster) -> None:
    watching = await watched(cluster)
    await cluster.client.delete(ConfigMap, "kept", SPACE)
    await cluster.client.patch(ConfigMap, "kept", MergePatch({"metadata": {"finalizers": None}}), SPACE)
    assert not await cluster.client.list(ConfigMap, SPACE, field_selector="metadata.name=kept")
    watching.check()


async def test_a_deletion_may_take_off_the_finalizer_of_its_own_policy(cluster: Cluster) -> None:
    watching = await watched(cluster)
    meta = ObjectMeta(name="parent", namespace=SPACE, finalizers=["foregroundDeletion"])
    await cluster.client.create(ConfigMap(metadata=meta))
    await cluster.client.delete(ConfigMap, "parent", SPACE, propagation="Background")
    assert not await cluster.client.list(ConfigMap, SPACE, field_selector="metadata.name=parent")
    watching.check()


async def test_nothing_else_may_although_it_is_being_deleted(cluster: Cluster) -> None:
    watching = await watched(cluster)
    await cluster.client.delete(ConfigMap, "kept", SPACE)
    cluster.server.objects.delete("", "configmaps", SPACE, "kept")
    with pytest.raises(Violation, match=f"configmaps {SPACE}/kept went although {HOLD} held it"):
        watching.check()


async def test_an_update_ends_no_pod_that_still_has_time(cluster: Cluster) -> None:
    held = pod("held")
    held.metadata.finalizers = [HOLD]
    await cluster.client.create(held)
    await cluster.settle()
    watching = Invariants(cluster)
    watching.follow()
    await cluster.client.delete(Pod, "held", SPACE)
    await cluster.client.patch(Pod, "held", MergePatch({"metadata": {"finalizers": None}}), SPACE)
    assert (await cluster.client.get(Pod, "held", SPACE)).metadata.deletion_grace_period_seconds
    await cluster.settle()
    assert not await cluster.client.list(Pod, SPACE)
    watching.check()
