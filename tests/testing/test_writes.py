"""`assert_no_writes`: who wrote what."""

from __future__ import annotations

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Result
from konverge.sim import Cluster
from konverge.testing import assert_no_writes, settled
from konverge.testing.writes import Written

MAP = ConfigMap(metadata=ObjectMeta(name="settings", namespace="default"), data={"mode": "a"})
pytestmark = [pytest.mark.spec("O-48"), pytest.mark.virtual]


def small() -> Cluster:
    return Cluster(controllers=False, scheduler=False, kubelet=False)


async def count_up(ctx: Context[ConfigMap]) -> Result:
    number = int(ctx.obj.data.get("number", "0")) + 1
    await ctx.client.patch(ConfigMap, "settings", MergePatch({"data": {"number": str(number)}}), "default")
    return Result(requeue_after=60)


async def test_a_quiet_cluster_passes_and_leases_and_events_do_not_count() -> None:
    async with Cluster() as cluster:
        await settled(cluster)
        async with assert_no_writes(cluster) as writes:
            await cluster.clock.advance(600)
            await cluster.client.create(Lease(metadata=ObjectMeta(name="mine", namespace="default")))
        assert writes == []


async def test_the_controller_the_key_and_the_difference_are_named() -> None:
    async with small() as cluster:
        await cluster.client.create(MAP)
        manager = Manager(cluster.connect("counting"), name="counting").add(
            Controller(ConfigMap, count_up, name="counter", namespaces=("default",))
        )
        async with manager.running():
            await settled(cluster)
            with pytest.raises(Written) as caught:
                async with assert_no_writes(cluster):
                    await cluster.clock.advance(90)
    assert str(caught.value) == (
        "1 write where there should be none:\n"
        "counter as counting changed configmaps default/settings (in a reconcile of default/settings)\n"
        '  data.number: "1" → "2"'
    )


async def create_and_delete(cluster: Cluster) -> None:
    async with assert_no_writes(cluster):
        await cluster.client.create(MAP, field_manager="by-hand")
        await cluster.client.delete(ConfigMap, "settings", "default")


async def test_creations_and_deletions_by_hand_are_shown() -> None:
    async with small() as cluster:
        with pytest.raises(Written) as caught:
            await create_and_delete(cluster)
    assert [str(write) for write in caught.value.writes] == [
        "by-hand created configmaps default/settings",
        "a client outside of a reconcile deleted configmaps default/settings",
    ]


async def test_one_writer_can_be_asked_for() -> None:
    async with small() as cluster:
        async with assert_no_writes(cluster, by="counter"):
            await cluster.client.create(MAP, field_manager="by-hand")
        with pytest.raises(Written, match="1 write where") as caught:
            await patch_by_two(cluster)
    assert [write.changes for write in caught.value.writes] == [('data.mode: "a" → "b"',)]


async def patch_by_two(cluster: Cluster) -> None:
    async with assert_no_writes(cluster, by="by-hand"):
        for manager, mode in (("by-hand", "b"), ("other", "c")):
            body = MergePatch({"data": {"mode": mode}})
            await cluster.client.patch(ConfigMap, "settings", body, "default", field_manager=manager)


async def test_other_resources_can_be_ignored_and_the_observer_goes() -> None:
    async with small() as cluster:
        async with assert_no_writes(cluster, ignore={"/configmaps"}):
            await cluster.client.create(MAP)
        assert cluster.server.store.observers == []


async def write_secrets(cluster: Cluster) -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": '{"stringData":{"new":"s3cr3t"}}'}
    async with assert_no_writes(cluster):
        for body in (
            {"stringData": {"password": "s3cr3t", "new": "s3cr3t"}, "metadata": {"labels": {"tier": "db"}}},
            {"metadata": {"annotations": last}},
            {"data": {"password": None}, "metadata": {"annotations": dict.fromkeys(last, "s3cr3t again")}},
            {"data": None},
        ):
            await cluster.client.patch(Secret, "login", MergePatch(body), "default")


async def test_the_content_of_a_secret_is_not_shown() -> None:
    async with small() as cluster:
        meta = ObjectMeta(name="login", namespace="default", labels={"app": "web"})
        await cluster.client.create(Secret(metadata=meta, string_data={"password": "before"}))
        with pytest.raises(Written) as caught:
            await write_secrets(cluster)
    copy = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"
    assert [set(write.changes) for write in caught.value.writes] == [
        {
            "data.password: (hidden) → (hidden)",
            "data.new: (none) → (hidden)",
            'metadata.labels.tier: (none) → "db"',
        },
        {"metadata.annotations: (none) → (hidden)"},
        {"data.password: (hidden) → (none)", f"{copy}: (hidden) → (hidden)"},
        {"data: (hidden) → (none)"},
    ]


async def fail_after_a_write(cluster: Cluster) -> None:
    async with assert_no_writes(cluster):
        await cluster.client.create(MAP)
        raise ZeroDivisionError


async def test_an_error_of_the_block_is_what_is_raised() -> None:
    async with small() as cluster:
        with pytest.raises(ZeroDivisionError):
            await fail_after_a_write(cluster)
        assert cluster.server.store.observers == []
