"""Whose content it is: what exists already, two resources for one content, a Nacos that goes, other namespaces."""

from __future__ import annotations

import pytest

from konverge.client import MergePatch
from konverge.operators.nacos.resource import Nacos
from tests.operators.nacos.content.world import APP, SECOND, a_nacos
from tests.operators.nacos.world import SPACE

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-34")]
CONFIG = "NacosConfig"


async def test_what_exists_already_is_left_alone() -> None:
    async with a_nacos() as content:
        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.config()
        await content.until(CONFIG, "app", "AlreadyExists")
        await content.world.advance(300.0)
        assert await content.content() == "by hand"
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() == "by hand"


async def test_what_exists_is_taken_over_when_asked_and_stays_by_default() -> None:
    async with a_nacos() as content:
        await content.servers.publish(APP, "by hand", "yaml", "")
        await content.config(adopt=True)
        config = await content.until(CONFIG, "app")
        assert config.status.ownership == "Adopted"
        assert await content.content() == "a: 1"
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() == "a: 1"


@pytest.mark.spec("N-82")
async def test_what_is_as_declared_is_taken_over_unasked_and_stays() -> None:
    async with a_nacos() as content:
        await content.config(deletionPolicy="Retain")
        await content.until(CONFIG, "app")
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        await content.config()
        config = await content.until(CONFIG, "app")
        assert config.status.ownership == "Adopted"
        assert content.writes_of() == [("I", "a: 1")], "there was nothing to write"
        await content.change(CONFIG, "app", content="a: 2")
        await content.world.advance(30.0)
        assert await content.content() == "a: 2"
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() == "a: 2"


@pytest.mark.spec("N-82")
@pytest.mark.parametrize("changed", [False, True])
async def test_a_resource_that_has_lost_its_status_goes_on_unless_others_came_between(changed: bool) -> None:
    async with a_nacos() as content:
        await content.config()
        config = await content.until(CONFIG, "app")
        if changed:
            await content.change(CONFIG, "app", driftPolicy="Report")
            await content.servers.publish(APP, "by hand", "yaml", "")
        forgotten = dict.fromkeys(("ownership", "applied", "applying", "nacosUid", "conditions", "appliedTime"))
        patch = MergePatch({"status": forgotten})
        await content.world.client.patch(type(config), "app", patch, SPACE, subresource="status")
        await content.until(CONFIG, "app", "AlreadyExists" if changed else "Applied")
        assert await content.content() == ("by hand" if changed else "a: 1")


@pytest.mark.parametrize(("policy", "left"), [("Delete", None), ("Retain", "a: 1")])
async def test_the_deletion_policy_counts(policy: str, left: str | None) -> None:
    async with a_nacos() as content:
        await content.config(deletionPolicy=policy)
        await content.until(CONFIG, "app")
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() == left


@pytest.mark.spec("N-35")
async def test_of_two_resources_for_one_content_the_older_writes() -> None:
    async with a_nacos() as content:
        await content.config("first")
        await content.until(CONFIG, "first")
        await content.config("second", content="b: 1")
        await content.until(CONFIG, "second", "Conflict")
        await content.world.advance(300.0)
        assert content.writes_of() == [("I", "a: 1")]
        await content.delete(CONFIG, "first")
        await content.until(CONFIG, "second")
        assert await content.content() == "b: 1"


@pytest.mark.spec("N-35")
async def test_the_later_of_two_owners_deletes_nothing() -> None:
    async with a_nacos() as content:
        await content.config("first")
        first = await content.until(CONFIG, "first")
        await content.config("second")
        await content.until(CONFIG, "second", "Conflict")
        client = content.world.client
        paused = MergePatch({"metadata": {"annotations": {"nacos.io/pause-reconciliation": "true"}}})
        await client.patch(type(first), "second", paused, SPACE)
        owned = MergePatch({"status": {"ownership": "Created", "applied": first.status.applied}})
        await client.patch(type(first), "second", owned, SPACE, subresource="status")
        await content.world.advance(2.0)
        await content.delete(CONFIG, "second")
        assert await content.gone(CONFIG, "second")
        assert content.writes_of() == [("I", "a: 1")]


@pytest.mark.spec("N-35")
async def test_two_resources_that_come_together_do_not_fight() -> None:
    async with a_nacos() as content:
        await content.config("first")
        await content.config("second", content="b: 1")
        await content.world.advance(400.0)
        reasons = sorted([(await content.ready(CONFIG, name))[1] for name in ("first", "second")])
        assert reasons == ["Applied", "Conflict"]
        assert len(content.writes_of()) == 1


@pytest.mark.spec("N-36")
async def test_content_waits_for_its_nacos_and_is_released_with_it() -> None:
    async with a_nacos() as content:
        await content.config("early", nacosRef={"name": "later"})
        await content.until(CONFIG, "early", "NacosNotFound")
        await content.config()
        await content.until(CONFIG, "app")
        await content.world.client.delete(Nacos, "nacos", SPACE)
        await content.until(CONFIG, "app", "NacosNotFound")
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert len(await content.world.events("Released")) == 1

        await content.world.create("later", SECOND)
        await content.until(CONFIG, "early")


@pytest.mark.spec("N-36")
async def test_deletion_waits_for_servers_that_are_away() -> None:
    async with a_nacos() as content:
        await content.config()
        await content.until(CONFIG, "app")
        content.simulated.freeze("nacos-0")
        await content.delete(CONFIG, "app")
        await content.world.advance(30.0)
        assert not await content.gone(CONFIG, "app")
        content.simulated.thaw("nacos-0")
        await content.world.advance(120.0)
        assert await content.gone(CONFIG, "app")
        assert await content.content() is None


@pytest.mark.spec("N-36")
async def test_a_nacos_made_again_gets_its_content_again() -> None:
    async with a_nacos() as content:
        await content.config(driftPolicy="Report")
        await content.until(CONFIG, "app")
        await content.world.client.delete(Nacos, "nacos", SPACE)
        await content.until(CONFIG, "app", "NacosNotFound")
        await content.world.advance(60.0)
        await content.world.up("nacos", {**SECOND, "volume": {}})
        await content.until(CONFIG, "app")
        assert await content.content() == "a: 1"


@pytest.mark.spec("N-82")
async def test_a_nacos_made_again_around_the_same_data_keeps_its_content_and_is_noted() -> None:
    volume = {"enabled": True, "requests": {"storage": "1Gi"}}
    async with a_nacos({**SECOND, "volume": volume}) as content:
        await content.config()
        before = await content.until(CONFIG, "app")
        world = content.world
        await world.client.delete(Nacos, "nacos", SPACE)
        await world.advance(60.0)
        nacos = await world.up("nacos", {**SECOND, "volume": volume})
        await world.advance(300.0)
        after = await content.until(CONFIG, "app")
        assert after.status.nacos_uid == nacos.metadata.uid != before.status.nacos_uid
        assert (after.status.applied, after.status.applying) == (before.status.applied, "")
        assert after.status.ownership == "Created"


@pytest.mark.spec("N-37")
async def test_another_namespace_needs_the_leave_of_the_nacos() -> None:
    async with a_nacos() as content:
        client = content.world.client
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        spec = {"nacosRef": {"name": "nacos", "namespace": SPACE}, "dataId": "app.yaml", "content": "a: 1"}
        await content.create(CONFIG, "app", where="team", **spec)
        await content.world.advance(30.0)
        assert await content.ready(CONFIG, "app", "team") == ("False", "NotAllowed")
        patch = MergePatch({"metadata": {"annotations": {"nacos.io/allow-content-from": "other, team"}}})
        await client.patch(Nacos, "nacos", patch, SPACE)
        await content.world.advance(5.0)
        assert await content.ready(CONFIG, "app", "team") == ("True", "Applied")


@pytest.mark.spec("N-86")
async def test_a_namespace_without_leave_is_no_rival() -> None:
    async with a_nacos() as content:
        client, place = content.world.client, {"nacosRef": {"name": "nacos", "namespace": SPACE}}
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await content.create(CONFIG, "app", where="team", **place, dataId="app.yaml", content="of the team")
        await content.world.advance(5.0)
        assert await content.ready(CONFIG, "app", "team") == ("False", "NotAllowed")
        await content.config()
        await content.until(CONFIG, "app")
        assert await content.content() == "a: 1"
        await content.delete(CONFIG, "app")
        assert await content.gone(CONFIG, "app")
        assert await content.content() is None, "it has made it, and nobody else declares it"


@pytest.mark.spec("N-86")
@pytest.mark.parametrize(("gone", "left"), [("team", "a: 1"), (SPACE, None)])
async def test_a_namespace_that_has_lost_its_leave_is_no_rival(gone: str, left: str | None) -> None:
    async with a_nacos() as content:
        client, place = content.world.client, {"nacosRef": {"name": "nacos", "namespace": SPACE}}
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        await content.create(CONFIG, "app", where="team", **place, dataId="app.yaml", content="of the team")
        await content.config(adopt=True)
        for leave, reason in (("team", "Conflict"), (None, "Applied")):
            patch = MergePatch({"metadata": {"annotations": {"nacos.io/allow-content-from": leave}}})
            await client.patch(Nacos, "nacos", patch, SPACE)
            await content.world.advance(5.0)
            if leave:
                await content.delete(CONFIG, "app")
                await content.world.advance(5.0)
                assert await content.content() == "of the team"
                await content.config(adopt=True, deletionPolicy="Delete")
            await content.until(CONFIG, "app", reason)
        assert await content.content() == "a: 1"
        team = await content.get(CONFIG, "app", "team")
        assert team.status.ownership == "Created", "that it has made it is not forgotten"
        await client.delete(type(team), "app", gone)
        await content.world.advance(5.0)
        assert await content.content() == left


async def test_nothing_happens_while_it_is_paused() -> None:
    async with a_nacos() as content:
        config = await content.config()
        await content.until(CONFIG, "app")
        patch = MergePatch({"metadata": {"annotations": {"nacos.io/pause-reconciliation": "true"}}})
        await content.world.client.patch(type(config), "app", patch, SPACE)
        await content.change(CONFIG, "app", content="a: 2")
        assert await content.content() == "a: 1"
        patch = MergePatch({"metadata": {"annotations": {"nacos.io/pause-reconciliation": None}}})
        await content.world.client.patch(type(config), "app", patch, SPACE)
        await content.world.advance(2.0)
        assert await content.content() == "a: 2"
