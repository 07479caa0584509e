"""Hibernation: no servers, everything else stays, and the same members come back."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import JsonPatch, MergePatch, NotFound, Recording
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Secret, Service
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget
from konverge.operators.nacos import names
from konverge.operators.nacos.operator import NacosReconciler
from konverge.operators.nacos.resource import ALLOW, PAUSE, AnyNacos, Nacos
from konverge.runtime import Context, Result
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.test_held import STORED, allow
from tests.operators.nacos.test_ownership import written
from tests.operators.nacos.test_status import kstatus, plain, wait_is_over
from tests.operators.nacos.world import (
    CLUSTER,
    EMBEDDED,
    MYSQL,
    POSTGRES,
    SPACE,
    STANDALONE,
    World,
    a_world,
    condition,
    conditions,
)

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-44")]
SECURED: dict[str, Any] = {**STORED, "image": "nacos/nacos-server:v2.4.3", "certification": {"enabled": True}}
SLOW = [Rule(image="*nacos-server*", behave="ready after 20s")]
KEPT: tuple[type[Any], ...] = (Service, ConfigMap, Secret, PersistentVolumeClaim)


async def hibernate(world: World) -> Nacos:
    await world.change("nacos", hibernate=True)
    return await world.until("nacos", "Hibernated")


async def wake(world: World, **edit: Any) -> Nacos:
    await world.change("nacos", hibernate=None, **edit)
    await world.advance(2.0)
    return await world.until("nacos")


async def stateful_set(world: World) -> StatefulSet:
    return await world.client.get(StatefulSet, "nacos", SPACE)


async def kept(world: World) -> dict[str, str]:
    """What has to outlive the servers, by uid."""
    listed = [(kind, await world.client.list(kind, SPACE)) for kind in KEPT]
    return {f"{kind.__name__} {item.metadata.name}": item.metadata.uid for kind, items in listed for item in items}


@pytest.mark.parametrize("spec", [STANDALONE, STORED, SECURED], ids=["standalone", "cluster", "secured"])
async def test_servers_end_and_everything_else_stays_until_they_wake(spec: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        world.servers.version = str(spec["image"]).rpartition(":v")[2]
        await world.up("nacos", spec)
        await world.advance(60.0)
        before, count = await kept(world), len(await world.pods())
        template = (await stateful_set(world)).spec.template
        nacos = await hibernate(world)
        assert await world.pods() == []
        assert (nacos.status.replicas, nacos.status.ready_replicas, nacos.status.leader) == (0, 0, "")
        assert (nacos.status.healthy, nacos.status.servers) == (False, [])
        assert condition(nacos, "Hibernated") == ("True", "Hibernated")
        assert condition(nacos, "Available") == ("False", "Hibernated")
        assert condition(nacos, "Degraded")[0] == "False"
        assert await kept(world) == before
        assert (await stateful_set(world)).spec.template == template
        with pytest.raises(NotFound):
            await world.client.get(PodDisruptionBudget, "nacos", SPACE)
        nacos = await wake(world)
        assert len(await world.pods()) == count == len(nacos.status.servers)
        assert condition(nacos, "Hibernated") == ("False", "Awake")
        assert await kept(world) == before
        assert names.HIBERNATED_REPLICAS not in (await stateful_set(world)).metadata.annotations
        assert [len(await world.events(reason)) for reason in ("Hibernating", "Hibernated", "Waking")] == [1, 1, 1]
        await world.advance(60.0)
        if spec is not STANDALONE:
            assert await world.client.get(PodDisruptionBudget, "nacos", SPACE)


async def test_kubectl_wait_and_kstatus_take_it_for_settled_and_not_for_ready() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STORED)
        await world.change("nacos", hibernate=True)
        seen = set()
        while (now := kstatus(await plain(world))) != "Current":
            seen.add((now, wait_is_over(await plain(world)), wait_is_over(await plain(world), "Hibernated")))
            await world.advance(1.0)
        assert seen == {("InProgress", False, False)}
        assert not wait_is_over(await plain(world)), "nobody is served"
        assert wait_is_over(await plain(world), "Hibernated")
        await world.change("nacos", hibernate=False)
        phases = set()
        while not wait_is_over(await plain(world)):
            assert kstatus(await plain(world)) == "InProgress"
            phases.add((await world.nacos("nacos")).status.phase)
            await world.advance(1.0)
        assert kstatus(await plain(world)) == "Current"
        assert phases == {"Hibernated", "Creating"}, "the first before the operator has seen it"


async def test_nothing_is_asked_written_or_reported_while_it_sleeps(monkeypatch: pytest.MonkeyPatch) -> None:
    reconciles, reconcile = [], NacosReconciler.reconcile

    async def counted(self: NacosReconciler, ctx: Context[AnyNacos]) -> Result | None:
        reconciles.append(ctx.request)
        return await reconcile(self, ctx)

    monkeypatch.setattr(NacosReconciler, "reconcile", counted)
    async with a_world() as world:
        server = await world.postgres()
        client = Recording(world.client)
        async with world.operating(client=client):
            world.servers.version = "2.4.3"
            await world.up("nacos", POSTGRES)
            await hibernate(world)
            await world.advance(60.0)
            server.down = True  # the database may be switched off too
            client.calls.clear()
            reconciles.clear()
            asked = len(world.servers.calls)
            version = (await world.nacos("nacos")).metadata.resource_version
            await world.advance(3600.0)
            assert written(client) == set()
            assert len(world.servers.calls) == asked
            assert len(reconciles) <= 1, "not every few seconds"
            nacos = await world.nacos("nacos")
            assert (nacos.status.phase, nacos.metadata.resource_version) == ("Hibernated", version)
            assert condition(nacos, "DatabaseReady") == ("Unknown", "Hibernated")
            await world.change("nacos", hibernate=False)
            await world.advance(60.0)
            assert condition(await world.nacos("nacos"), "Ready") == ("False", "DatabaseUnreachable")
            assert await world.pods() == [], "the database comes first, as for a new Nacos"
            server.down = False
            await world.until("nacos")


async def test_the_password_follows_its_secret_when_it_wakes() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        world.servers.version = "2.4.3"
        await world.up("nacos", POSTGRES)
        await hibernate(world)
        await world.replace_secret("admin", username="nacos", password="second")
        await world.advance(120.0)
        assert server.databases["nacos"].accepts("nacos", "first")
        await wake(world)
        assert server.databases["nacos"].accepts("nacos", "second")


async def test_a_nacos_in_trouble_can_be_put_to_sleep() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        world.servers.version = "2.4.3"
        await world.up("nacos", POSTGRES)
        server.down = True
        await world.until("nacos", "Failed")
        assert condition(await world.nacos("nacos"), "Degraded")[0] == "True"
        await world.client.patch(Pod, "nacos-0", MergePatch({"metadata": {"finalizers": ["test.dev/held"]}}), SPACE)
        await world.change("nacos", hibernate=True)
        await world.advance(5.0)
        nacos = await world.nacos("nacos")
        assert (nacos.status.failing_since, condition(nacos, "Degraded")) == ("", ("False", "Progressing"))
        await world.client.patch(Pod, "nacos-0", MergePatch({"metadata": {"finalizers": None}}), SPACE)
        nacos = await world.until("nacos", "Hibernated")
        assert (nacos.status.failing_since, condition(nacos, "Stalled")[0]) == ("", "False")
        assert await world.pods() == []


async def test_one_that_is_created_asleep_makes_nothing_before_it_wakes() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", {**STORED, "hibernate": True})
        await world.until("nacos", "Hibernated")
        assert (await world.client.list(StatefulSet, SPACE)).items == []
        await wake(world)
        assert len(await world.pods()) == 3


async def test_a_pause_holds_it_off_and_keeps_it_asleep() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STORED)
        paused = MergePatch({"metadata": {"annotations": {PAUSE: "true"}}})
        resumed = MergePatch({"metadata": {"annotations": {PAUSE: None}}})
        await world.client.patch(Nacos, "nacos", paused, SPACE)
        await world.change("nacos", hibernate=True)
        await world.advance(60.0)
        assert len(await world.pods()) == 3
        await world.client.patch(Nacos, "nacos", resumed, SPACE)
        await world.until("nacos", "Hibernated")
        await world.client.patch(Nacos, "nacos", paused, SPACE)
        await world.change("nacos", hibernate=False)
        await world.advance(60.0)
        assert await world.pods() == []
        await world.client.patch(Nacos, "nacos", resumed, SPACE)
        await world.until("nacos")


async def test_it_is_taken_back_on_the_way() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STORED)
        for seconds in (0.2, 1.0, 5.0, 31.0):
            await world.change("nacos", hibernate=True)
            await world.advance(seconds)
            await wake(world)
            assert len(await world.pods()) == 3


async def test_servers_that_others_start_are_ended_again() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.up("nacos", STORED)
        await hibernate(world)
        await world.client.patch(StatefulSet, "nacos", MergePatch({"spec": {"replicas": 1}}), SPACE)
        await world.advance(60.0)
        assert await world.pods() == []
        assert (await world.nacos("nacos")).status.phase == "Hibernated"
        await world.change("nacos", replicas=5)
        await world.change("nacos", hibernate=False)
        await world.advance(5.0)
        assert (await stateful_set(world)).spec.replicas == 3, "with the members that it had, not with one"
        await world.until("nacos")


async def test_pods_whose_set_is_being_recreated_are_ended_with_the_new_one() -> None:
    async with a_world() as world:
        async with world.operating():
            await world.up("nacos", STORED)
        uids = await world.uids()
        await world.client.delete(StatefulSet, "nacos", SPACE, propagation="Orphan")
        await world.advance(5.0)
        assert await world.uids() == uids
        await world.change("nacos", hibernate=True)
        async with world.operating():
            await world.until("nacos", "Hibernated")
            assert await world.pods() == []
            await wake(world)
            assert len(await world.pods()) == 3


# ------------------------------------------------------------------ edits


async def test_a_rollout_under_way_ends_with_the_sleep() -> None:
    rules = [Rule(image="*:v2.0.9", behave="image-pull-error")]
    async with a_world(rules=rules) as world, world.operating():
        await world.up("nacos", STORED)
        await world.change("nacos", image="nacos/nacos-server:v2.0.9")
        await world.advance(60.0)
        await hibernate(world)
        await wake(world, image="nacos/nacos-server:v2.0.5")
        images = {pod.spec.containers[0].image for pod in await world.pods()}
        assert images == {"nacos/nacos-server:v2.0.5"}


@pytest.mark.parametrize("replicas", [4, 5])
async def test_a_size_that_grew_meanwhile_comes_after_the_wake(replicas: int) -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", STORED)
        await hibernate(world)
        await world.change("nacos", replicas=replicas)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert (nacos.status.phase, condition(nacos, "Held")[0]) == ("Hibernated", "")
        await world.change("nacos", hibernate=False)
        sizes = set()
        while not wait_is_over(await plain(world)):
            sizes.add((await stateful_set(world)).spec.replicas)
            await world.advance(1.0)
        assert sizes == {0, 3, replicas}
        assert len(await world.pods()) == replicas


async def test_a_stateful_set_that_goes_meanwhile_comes_back_with_its_members() -> None:
    async with a_world(nodes=5) as world, world.operating():
        await world.up("nacos", {**STORED, "replicas": 5})
        await hibernate(world)
        await world.client.delete(StatefulSet, "nacos", SPACE)
        await world.change("nacos", replicas=3)
        await world.advance(60.0)
        assert (await world.nacos("nacos")).status.phase == "Hibernated"
        await world.change("nacos", hibernate=False)
        await world.advance(4.0)
        assert (await stateful_set(world)).spec.replicas == 5
        await world.until("nacos")
        assert len(await world.pods()) == 3


async def test_volumes_that_grew_meanwhile_recreate_the_set_with_its_members() -> None:
    async with a_world(nodes=5) as world, world.operating():
        await world.up("nacos", {**STORED, "replicas": 5})
        await hibernate(world)
        await wake(world, replicas=3, volume={"requests": {"storage": "20Gi"}})
        assert await world.events("Recreating")
        claims = await world.client.list(PersistentVolumeClaim, SPACE)
        sizes = {str(claim.spec.resources.requests["storage"]) for claim in claims if claim.spec.resources}
        assert sizes == {"20Gi"}


async def test_a_type_that_changes_on_a_database_takes_effect_when_it_wakes() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.up("nacos", {**MYSQL, "type": "standalone", "replicas": 1})
        await hibernate(world)
        await wake(world, type="cluster", replicas=3)
        assert len(await world.pods()) == 3


async def test_the_tables_of_another_line_come_before_its_servers() -> None:
    """The Job is not complete: nothing of the servers is started meanwhile."""
    rules = [Rule(image="mysql:*", behave="crash")]
    async with a_world(rules=rules) as world, world.operating():
        world.mysql()
        await world.up("nacos", {**MYSQL, "type": "standalone", "replicas": 1})
        await hibernate(world)
        await world.change("nacos", hibernate=False, mysqlInitImage="mysql:8")
        await world.advance(120.0)
        assert (await stateful_set(world)).spec.replicas == 0
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "Waking"), "not a complaint about its size"


# ------------------------------------------------------------------ data


@pytest.mark.parametrize("volume", [{}, {"enabled": True, "emptyDir": {}}], ids=["none", "emptyDir"])
@pytest.mark.parametrize("base", [STANDALONE, CLUSTER], ids=["standalone", "cluster"])
async def test_data_without_a_volume_is_not_given_up_in_silence(base: dict[str, Any], volume: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**base, "volume": volume})
        uids = await world.uids()
        await world.change("nacos", hibernate=True)
        await world.advance(120.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "ChangeHeld")
        assert f"'{ALLOW}=hibernate=true'" in nacos.status.event[-1].message
        assert (nacos.status.phase, condition(nacos, "Available")[0]) == ("Running", "True")
        assert await world.uids() == uids
        await wake(world)  # taken back
        assert await world.uids() == uids
        await allow(world, "hibernate=true")
        await hibernate(world)
        assert await world.pods() == []
        await wake(world)
        assert ALLOW not in (await world.nacos("nacos")).metadata.annotations
        await world.change("nacos", hibernate=True)
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "ChangeHeld"), "it was allowed once"


async def test_a_database_or_a_folder_of_the_node_keeps_the_data() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.create("nacos", MYSQL)
        await world.until("nacos")
        await hibernate(world)
        await wake(world)
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(60.0)
        await world.up("nacos", {**EMBEDDED, "volume": {"enabled": True, "hostPath": {"path": "/data"}}})
        await hibernate(world)
        assert await world.events("ChangeHeld") == []


async def test_an_edit_that_loses_data_is_held_in_its_sleep_too() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STANDALONE)
        await hibernate(world)
        await world.change("nacos", type="cluster", replicas=3)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "ChangeHeld"), conditions(nacos)
        assert (nacos.status.phase, condition(nacos, "Available")) == ("Hibernated", ("False", "Hibernated"))
        version = nacos.metadata.resource_version
        await world.advance(600.0)
        assert (await world.nacos("nacos")).metadata.resource_version == version
        await world.change("nacos", hibernate=False)
        await world.advance(60.0)
        assert await world.pods() == [], "nothing of the change is applied"
        await world.change("nacos", type="standalone", replicas=1)
        await world.until("nacos")
        assert len(await world.pods()) == 1


async def test_an_edit_is_held_when_only_the_sleeping_set_tells_of_the_data() -> None:
    async with a_world() as world:
        async with world.operating():
            await world.up("nacos", STANDALONE)
            await hibernate(world)
        await world.client.patch(
            Nacos, "nacos", JsonPatch([{"op": "remove", "path": "/status"}]), SPACE, subresource="status"
        )
        await world.change("nacos", type="cluster", replicas=3, hibernate=False)
        async with world.operating():
            await world.advance(60.0)
            assert condition(await world.nacos("nacos"), "Held") == ("True", "ChangeHeld")
            assert await world.pods() == []


# ------------------------------------------------------------------ deletion


@pytest.mark.spec("N-16")
@pytest.mark.parametrize("first", ["Delete", "Retain"])
@pytest.mark.parametrize("then", ["Delete", "Retain"])
async def test_it_is_deleted_in_its_sleep_and_the_claims_go_by_the_last_policy(first: str, then: str) -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**STORED, "volume": {**STORED["volume"], "deletionPolicy": first}})
        await hibernate(world)
        await world.change("nacos", volume={"deletionPolicy": then})
        await world.advance(10.0)
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        assert (await world.client.list(StatefulSet, SPACE)).items == []
        claims = (await world.client.list(PersistentVolumeClaim, SPACE)).items
        assert len(claims) == (3 if then == "Retain" else 0)
