"""Edits that would lose data: nothing of them is applied until they are allowed, and the Nacos goes on as it was."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Invalid, JsonPatch, MergePatch, Recording
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim, Pod, Service
from konverge.operators.nacos.resource import ALLOW, Nacos
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.test_ownership import written
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

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-15")]
STORED: dict[str, Any] = {**CLUSTER, "volume": {"enabled": True, "requests": {"storage": "10Gi"}}}
FAST: dict[str, Any] = {**STORED, "volume": {**STORED["volume"], "storageClass": "fast"}}
NEW: dict[str, Any] = {**EMBEDDED, "image": "nacos/nacos-server:v2.5.0"}
TEMPLATE = {"spec": {"resources": {"requests": {"storage": "10Gi"}}}}
TEMPLATED: dict[str, Any] = {**CLUSTER, "volume": {"enabled": True, "volumeClaimTemplate": TEMPLATE}}
ON_MYSQL = MYSQL["database"]
ON_POSTGRES = {"database": POSTGRES["database"], "postgres": POSTGRES["postgres"]}
EDITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "to cluster": (STANDALONE, {"type": "cluster", "replicas": 3}, "type=cluster"),
    "to standalone": (EMBEDDED, {"type": "standalone", "replicas": 1}, "type=standalone"),
    "no volume": (STORED, {"volume": {"enabled": False}}, "volume=none"),
    "empty volume": (STORED, {"volume": {"emptyDir": {}}}, "volume=none"),
    "host path": (STORED, {"volume": {"hostPath": {"path": "/data"}}}, "volume=hostPath:/data"),
    "to mysql": (CLUSTER, {"database": ON_MYSQL}, "database=mysql://my:3306/nacos"),
    "to postgres": (EMBEDDED, ON_POSTGRES, "database=postgresql://pg:5432/nacos"),
    "from mysql": (MYSQL, {"database": {"type": "embedded"}}, "database=embedded"),
    "from postgres": (POSTGRES, {"database": {"type": "embedded"}, "postgres": {"host": ""}}, "database=embedded"),
    "another host": (MYSQL, {"database": {"mysqlHost": "other"}}, "database=mysql://other:3306/nacos"),
    "another name": (POSTGRES, {"postgres": {"database": "two"}}, "database=postgresql://pg:5432/two"),
    "another class": (FAST, {"volume": {"storageClass": "slow"}}, "storageClass=slow"),
    "no class": (FAST, {"volume": {"storageClass": None}}, "storageClass=default"),
    "downgrade": (NEW, {"image": "nacos/nacos-server:v2.4.3"}, "version=2.4.3"),
}


async def prepare(world: World) -> None:
    """Every database and class that the edits name."""
    world.mysql()
    server = await world.postgres()
    server.add("two", "nacos", "word")
    other = world.databases.add_server("other", 3306, "mysql")
    other.add("nacos", "nacos", "word")
    for name in ("fast", "slow"):
        body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
        await world.client.create({**body, "provisioner": "csi", "allowVolumeExpansion": True})


async def children(world: World) -> dict[str, Any]:
    """All that an edit could change, but for statuses."""
    kinds: tuple[type[Any], ...] = (StatefulSet, Service, ConfigMap, Pod, PersistentVolumeClaim)
    listed = [(kind, await world.client.list(kind, SPACE)) for kind in kinds]
    objects = [(kind, item) for kind, items in listed for item in items]
    return {
        f"{kind.__name__} {item.metadata.name}": (item.metadata.uid, getattr(item, "spec", None) or item.data)
        for kind, item in objects
    }


def version(spec: dict[str, Any]) -> str:
    return str(spec["image"]).rpartition(":v")[2]


def restored(spec: dict[str, Any], edit: dict[str, Any]) -> dict[str, Any]:
    """The patch that takes an edit back."""
    back: dict[str, Any] = {}
    for key, value in edit.items():
        old = spec.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            back[key] = restored(old, value)
        else:
            back[key] = old
    return back


@pytest.mark.parametrize("which", EDITS)
async def test_an_edit_that_loses_data_is_held_until_it_is_taken_back(which: str) -> None:
    spec, edit, name = EDITS[which]
    async with a_world() as world:
        await prepare(world)
        world.servers.version = version(spec)
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", spec)
            await world.advance(60.0)
            before = await children(world)
            tables = {key: value.writes for key, value in world.databases.servers.items()}
            client.calls.clear()
            await world.change("nacos", **edit)
            await world.advance(300.0)
            nacos = await world.nacos("nacos")
            assert condition(nacos, "Ready") == ("False", "ChangeHeld"), conditions(nacos)
            assert condition(nacos, "Held") == ("True", "ChangeHeld")
            assert condition(nacos, "Available")[0] == "True"
            (event,) = await world.events("ChangeHeld")
            assert f"'{ALLOW}={name}'" in event
            assert nacos.status.event[-1].code == 301
            assert written(client) == set()
            assert sum(call.resource == Nacos.resource for call in client.writes) <= 3, "one write, not one a minute"
            assert await children(world) == before
            assert {key: value.writes for key, value in world.databases.servers.items()} == tables
            await world.change("nacos", **restored(spec, edit))
            await world.advance(60.0)
            nacos = await world.until("nacos")
            assert condition(nacos, "Held")[0] == "False"
            assert await children(world) == before
            assert written(client) == set()


async def allow(world: World, value: str | None) -> None:
    await world.client.patch(Nacos, "nacos", MergePatch({"metadata": {"annotations": {ALLOW: value}}}), SPACE)


@pytest.mark.parametrize("which", ["to cluster", "no volume", "to mysql", "another class", "downgrade"])
async def test_an_edit_is_allowed_once_and_exactly(which: str) -> None:
    spec, edit, name = EDITS[which]
    async with a_world() as world, world.operating():
        await prepare(world)
        world.servers.version = version(spec)
        await world.up("nacos", spec)
        await world.change("nacos", **edit)
        await world.advance(60.0)
        before = await children(world)
        for wrong in ("true", name.partition("=")[0], f"{name}x", "replicas=9"):
            await allow(world, wrong)
            await world.advance(40.0)
            assert await children(world) == before
        world.servers.version = version({**spec, **edit})
        await allow(world, f"replicas=9,{name}")
        await world.advance(10.0)
        nacos = await world.until("nacos")
        assert nacos.metadata.annotations[ALLOW] == "replicas=9"
        assert condition(nacos, "Held")[0] == "False"
        assert len(await world.events("ChangeAllowed")) == 1
        live = await world.client.get(StatefulSet, "nacos", SPACE)
        container = live.spec.template.spec.containers[0]
        assert container.image == {**spec, **edit}["image"]
        env = {variable.name: variable.value for variable in container.env}
        assert env["MODE"] == {**spec, **edit}["type"]
        assert ("MYSQL_SERVICE_HOST" in env) == (which == "to mysql")
        assert bool(live.spec.volume_claim_templates) == (which in ("to cluster", "another class"))


async def test_an_allowance_does_not_cover_the_way_back() -> None:
    spec, edit, name = EDITS["to cluster"]
    async with a_world() as world, world.operating():
        await world.up("nacos", spec)
        await allow(world, name)
        await world.advance(60.0)
        assert (await world.nacos("nacos")).metadata.annotations[ALLOW] == name, "it waits for its edit"
        await world.update("nacos", **edit)
        assert len(await world.pods()) == 3
        await world.change("nacos", **restored(spec, edit))
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Held") == ("True", "ChangeHeld")
        assert len(await world.pods()) == 3


@pytest.mark.parametrize("which", ["to cluster", "to postgres", "no volume", "downgrade"])
async def test_an_edit_while_no_operator_ran_is_held_by_the_next(which: str) -> None:
    """In two steps, of which the second is harmless."""
    spec, edit, _ = EDITS[which]
    async with a_world() as world:
        await prepare(world)
        world.servers.version = version(spec)
        async with world.operating():
            await world.up("nacos", spec)
        before = await children(world)
        await world.change("nacos", **edit)
        await world.change("nacos", env=[{"name": "A", "value": "b"}])
        async with world.operating():
            await world.advance(60.0)
            assert condition(await world.nacos("nacos"), "Held") == ("True", "ChangeHeld")
            assert await children(world) == before


async def forget_status(world: World) -> None:
    """As after a restore from a backup, or as an older operator left it."""
    patch = JsonPatch([{"op": "remove", "path": "/status"}])
    await world.client.patch(Nacos, "nacos", patch, SPACE, subresource="status")


@pytest.mark.parametrize("which", ["to cluster", "downgrade", "to mysql"])
async def test_the_present_is_read_from_the_children_and_not_from_the_status(which: str) -> None:
    spec, edit, _ = EDITS[which]
    async with a_world() as world:
        await prepare(world)
        world.servers.version = version(spec)
        async with world.operating():
            await world.up("nacos", spec)
        before = await children(world)
        await forget_status(world)
        await world.change("nacos", **edit)
        async with world.operating():
            await world.advance(120.0)
            assert condition(await world.nacos("nacos"), "Held") == ("True", "ChangeHeld")
            assert await children(world) == before


@pytest.mark.parametrize("spec", [STANDALONE, EMBEDDED, MYSQL, POSTGRES, FAST, TEMPLATED], ids=str)
async def test_nothing_is_held_after_an_upgrade_of_the_operator(spec: dict[str, Any]) -> None:
    async with a_world() as world:
        await prepare(world)
        async with world.operating():
            await world.up("nacos", spec)
        before = await children(world)
        await world.client.patch(Nacos, "nacos", MergePatch({"status": {"applied": None}}), SPACE, subresource="status")
        async with world.operating():
            await world.advance(120.0)
            nacos = await world.until("nacos")
            assert condition(nacos, "Held")[0] != "True"
            assert await children(world) == before


async def test_a_stateful_set_that_goes_during_the_hold_does_not_apply_the_edit() -> None:
    spec, edit, _ = EDITS["to cluster"]
    async with a_world() as world, world.operating():
        await world.up("nacos", spec)
        await world.change("nacos", **edit)
        await world.advance(30.0)
        await world.client.delete(StatefulSet, "nacos", SPACE, propagation="Background")
        await world.advance(120.0)
        assert await world.pods() == []
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "ChangeHeld")
        await world.change("nacos", **restored(spec, edit))
        await world.advance(10.0)
        await world.until("nacos")
        assert len(await world.pods()) == 1


async def test_a_stateful_set_that_goes_during_an_allowed_downgrade_is_made_again() -> None:
    """The allowance is used up and the servers still are of the old version: the status knows what is in force."""
    spec, edit, name = EDITS["downgrade"]
    rules = [Rule(image=f"*:v{version(edit)}", behave="image-pull-error")]  # so that the rollout stays where it is
    async with a_world(rules=rules) as world, world.operating():
        await world.up("nacos", spec)
        await allow(world, name)
        await world.change("nacos", **edit)
        while ALLOW in (await world.nacos("nacos")).metadata.annotations:
            await world.advance(1.0)
        assert spec["image"] in {pod.spec.containers[0].image for pod in await world.pods()}
        await world.client.delete(StatefulSet, "nacos", SPACE, propagation="Background")
        await world.advance(60.0)
        assert {pod.spec.containers[0].image for pod in await world.pods()} == {edit["image"]}
        assert not await world.events("ChangeHeld")


@pytest.mark.parametrize(("first", "second"), [(STANDALONE, STORED), (STORED, STANDALONE)], ids=["grown", "shrunk"])
async def test_kept_volumes_of_the_other_type_are_not_used_in_silence(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", first)
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        await world.create("nacos", second)
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "ChangeHeld")
        assert await world.pods() == []
        await allow(world, f"type={second['type']}")
        await world.advance(10.0)
        await world.until("nacos")


async def test_kept_volumes_of_the_same_type_are_used_again() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STORED)
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(120.0)
        await world.up("nacos", {**STORED, "image": "nacos/nacos-server:v2.0.3"})


async def test_nothing_is_held_before_the_servers_were_up() -> None:
    rules = [Rule(image="*:v2.0.9", behave="image-pull-error")]
    async with a_world(rules=rules) as world, world.operating():
        await prepare(world)
        await world.create("nacos", {**STANDALONE, "image": "nacos/nacos-server:v2.0.9"})
        await world.advance(60.0)
        await world.update("nacos", image=CLUSTER["image"], database=ON_MYSQL)


async def test_a_broken_upgrade_is_taken_back_without_a_hold() -> None:
    """No server of the new version has run."""
    rules = [Rule(image="*:v2.0.9", behave="image-pull-error")]
    async with a_world(rules=rules) as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.change("nacos", image="nacos/nacos-server:v2.0.9")
        await world.advance(120.0)
        await world.update("nacos", image=CLUSTER["image"])
        assert not await world.events("ChangeHeld")


async def test_servers_and_passwords_are_looked_after_during_the_hold() -> None:
    async with a_world() as world, world.operating():
        await prepare(world)
        world.servers.version = "2.4.3"
        await world.up("nacos", POSTGRES)
        server = world.databases.servers["pg", 5432]
        await world.change("nacos", database={"type": "embedded"}, postgres={"host": ""})
        await world.advance(60.0)
        await world.replace_secret("admin", username="nacos", password="second")
        await world.client.delete(Service, "nacos-client", SPACE)
        await world.client.delete(Pod, "nacos-1", SPACE)
        await world.advance(60.0)
        assert server.databases["nacos"].accepts("nacos", "second")
        assert await world.client.get(Service, "nacos-client", SPACE)
        assert len(await world.pods()) == 3
        world.servers.fail("nacos-0", "Unreachable")
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "Ready") == ("False", "MembersNotUp")


async def test_a_running_nacos_is_compared_without_a_request() -> None:
    async with a_world() as world:
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", STORED)
            await world.advance(60.0)
            client.calls.clear()
            await world.advance(300.0)
            kinds = {call.resource.kind for call in client.calls if call.resource is not None}
            assert kinds <= {"Lease", "Event"}


# ------------------------------------------------------------------ sizes of volumes


async def test_the_schema_refuses_a_smaller_volume_and_takes_an_idle_edit_back() -> None:
    async with a_world() as world:
        async with world.operating():
            await world.up("nacos", STORED)
            await world.advance(60.0)
            with pytest.raises(Invalid, match="volumes cannot shrink"):
                await world.change("nacos", volume={"requests": {"storage": "5Gi"}})
            with pytest.raises(Invalid, match="volumes cannot shrink"):
                await world.change("nacos", volume={"persistentVolumeSize": "5Gi"})
        await world.change("nacos", volume={"requests": {"storage": "20Gi"}})  # no operator has seen it
        await world.change("nacos", volume={"requests": {"storage": "10Gi"}})
        await world.change("nacos", volume={"requests": {"storage": "10240Mi"}})


async def test_a_smaller_volume_that_gets_past_the_schema_is_held_and_cannot_be_allowed() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", TEMPLATED)
        before = await children(world)
        smaller = {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "5Gi"}}}}}
        await world.change("nacos", volume=smaller)
        await world.advance(10.0)
        await allow(world, "size=5Gi")
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "ChangeHeld")
        assert "volumes cannot shrink from 10Gi to 5Gi" in nacos.status.event[-1].message
        assert await children(world) == before


async def test_volumes_that_cannot_grow_are_reported_and_the_edit_is_taken_back() -> None:
    async with a_world() as world, world.operating():
        body = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "rigid"}}
        await world.client.create({**body, "provisioner": "csi"})
        await world.up("nacos", {**STORED, "volume": {**STORED["volume"], "storageClass": "rigid"}})
        await world.advance(60.0)
        before, asked = await children(world), len(world.servers.calls)
        await world.change("nacos", volume={"requests": {"storage": "20Gi"}})
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "VolumesCannotGrow")
        assert "claim db-nacos-0 does not grow to 20Gi" in nacos.status.event[-1].message
        assert len(world.servers.calls) > asked, "the servers are looked after"
        assert await children(world) == before
        await world.update("nacos", volume={"requests": {"storage": "10Gi"}})
        assert await children(world) == before


async def test_naming_the_class_that_the_volumes_have_is_no_change() -> None:
    async with a_world() as world, world.operating():
        await prepare(world)
        await world.up("nacos", STORED)
        for claim in await world.client.list(PersistentVolumeClaim, SPACE):
            assert claim.spec.storage_class_name, "the default class was filled in"
        name = claim.spec.storage_class_name
        uids = await world.uids()
        await world.update("nacos", volume={"storageClass": name})
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-81")
async def test_a_claim_that_somebodys_scaling_left_does_not_make_a_cluster_of_a_standalone() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STANDALONE)
        scaled = MergePatch({"spec": {"replicas": 2}})
        await world.client.patch(StatefulSet, "nacos", scaled, SPACE)
        await world.advance(60.0)
        assert len(await world.client.list(PersistentVolumeClaim, SPACE)) == 2
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(60.0)
        await world.up("nacos", STANDALONE)


# ------------------------------------------------------------------ growth


async def test_a_cluster_does_not_grow_while_its_rollout_is_broken() -> None:
    rules = [Rule(image="*:v2.0.9", behave="image-pull-error")]
    async with a_world(nodes=5, rules=rules) as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.change("nacos", image="nacos/nacos-server:v2.0.9")
        await world.advance(60.0)
        await world.change("nacos", replicas=5)
        await world.advance(300.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Held") == ("True", "RolloutIncomplete")
        assert condition(nacos, "Ready")[0] == "False"
        live = await world.client.get(StatefulSet, "nacos", SPACE)
        assert live.spec.replicas == 3
        assert len(await world.pods()) == 3
        env = {variable.name: variable.value for variable in live.spec.template.spec.containers[0].env}
        assert env["NACOS_REPLICAS"] == "3"
        nacos = await world.update("nacos", image="nacos/nacos-server:v2.0.5")
        assert len(await world.pods()) == 5
        assert condition(nacos, "Held")[0] == "False"


async def test_growth_is_allowed_by_its_annotation() -> None:
    rules = [Rule(image="*:v2.0.9", behave="image-pull-error")]
    async with a_world(nodes=5, rules=rules) as world, world.operating():
        await world.up("nacos", CLUSTER)
        await world.change("nacos", image="nacos/nacos-server:v2.0.9")
        await world.advance(60.0)
        await world.change("nacos", replicas=5)
        await allow(world, "replicas=5")
        await world.advance(60.0)
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas == 5
        assert ALLOW not in (await world.nacos("nacos")).metadata.annotations
