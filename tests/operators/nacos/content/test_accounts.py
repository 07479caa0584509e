"""Users and permissions that are declared: passwords by Secret, rotation, roles, order."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from konverge.client import Invalid, MergePatch
from konverge.objects.kinds.core_v1 import Event, Secret
from konverge.operators.nacos.content.place import secret_value
from konverge.operators.nacos.content.user import MADE
from tests.operators.nacos.content.world import SECOND, THIRD, ContentWorld, a_nacos
from tests.operators.nacos.world import SPACE, a_simulated_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-30")]
USER = "NacosUser"
PERMISSION = "NacosPermission"
AUTH: dict[str, Any] = {"certification": {"enabled": True}, "adminCredentialsSecretRef": {"name": "admin"}}


async def _accepts(content: ContentWorld, password: str) -> bool:
    """After the servers read their users again."""
    await content.servers.accepts("dev", password)
    await content.world.advance(20.0)
    return await content.servers.accepts("dev", password)


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
async def test_a_user_has_the_password_of_its_secret(spec: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.secret("admin", username="nacos", password="admins-own")
        await world.secret("dev", password="hidden-1")
        await world.up("nacos", {**spec, **AUTH})
        await world.advance(60.0)
        content = ContentWorld(world, simulated)
        await content.create(USER, "dev", username="dev", passwordSecretRef={"name": "dev", "key": "password"})
        await content.until(USER, "dev")
        await world.advance(40.0)
        assert await _accepts(content, "hidden-1")

        patch = MergePatch({"stringData": {"password": "hidden-2"}})
        await world.client.patch(Secret, "dev", patch, SPACE)
        await world.advance(60.0)
        assert await _accepts(content, "hidden-2")
        assert not await _accepts(content, "hidden-1")
        assert await world.events("Drifted") == [], "a rotation is no drift"

        user = await content.get(USER, "dev")
        events = [event.message or "" for event in await world.client.list(Event, SPACE)]
        for secret in ("hidden-1", "hidden-2", "admins-own"):
            assert secret not in f"{user} {events} {caplog.text}"

        before = user.metadata.resource_version
        await world.advance(600.0)
        assert (await content.get(USER, "dev")).metadata.resource_version == before
        await content.delete(USER, "dev")
        assert not await content.servers.has_user("dev")


async def test_a_password_is_made_where_none_is_given() -> None:
    async with a_nacos() as content:
        await content.create(USER, "dev", username="dev", roles=["readers"])
        await content.until(USER, "dev")
        secret = await content.world.client.get(Secret, "dev-nacos-user", SPACE)
        password = secret_value(secret, "password")
        await content.world.advance(20.0)
        assert len(password) >= 24
        assert await _accepts(content, password)
        assert await content.servers.roles_of("dev") == {"readers"}
        await content.change(USER, "dev", roles=["writers"])
        assert await content.servers.roles_of("dev") == {"writers"}
        await content.delete(USER, "dev")
        assert await content.servers.roles_of("dev") == set()


async def test_a_password_that_others_changed_is_set_back() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.secret("admin", username="nacos", password="admin")
        await world.secret("dev", password="mine")
        await world.up("nacos", {**SECOND, **AUTH})
        await world.advance(60.0)
        content = ContentWorld(world, simulated)
        await content.create(USER, "dev", username="dev", passwordSecretRef={"name": "dev", "key": "password"})
        await content.until(USER, "dev")
        simulated.member("nacos-0").data.users["dev"] = "theirs"
        await world.advance(400.0)
        assert await _accepts(content, "mine")
        assert len(await world.events("Drifted")) == 1


@pytest.mark.spec("N-34")
async def test_a_user_that_exists_is_left_alone() -> None:
    async with a_nacos() as content:
        await content.servers.create_user("dev", "theirs")
        await content.create(USER, "dev", username="dev")
        await content.until(USER, "dev", "AlreadyExists")
        await content.delete(USER, "dev")
        assert await content.servers.has_user("dev")


@pytest.mark.spec("N-82")
@pytest.mark.parametrize("whose", ["ours", "adopted", "a copy's"])
async def test_a_user_without_a_status_is_known_by_whom_it_was_made(whose: str) -> None:
    async with a_nacos() as content:
        if whose == "adopted":
            await content.servers.create_user("dev", "theirs")
        await content.create(USER, "dev", username="dev", adopt=whose == "adopted")
        user = await content.until(USER, "dev")
        client = content.world.client
        annotations = {MADE: "another " + user.metadata.annotations[MADE]} if whose == "a copy's" else {}
        await client.patch(type(user), "dev", MergePatch({"metadata": {"annotations": annotations}}), SPACE)
        await content.change(USER, "dev", adopt=False)
        forgotten = dict.fromkeys(("ownership", "applied", "applying", "nacosUid", "conditions", "appliedTime"))
        await client.patch(type(user), "dev", MergePatch({"status": forgotten}), SPACE, subresource="status")
        user = await content.until(USER, "dev", "Applied" if whose == "ours" else "AlreadyExists")
        assert user.status.ownership == ("Created" if whose == "ours" else "")


@pytest.mark.parametrize("spec", [SECOND, THIRD], ids=["2.x", "3.x"])
@pytest.mark.spec("N-38")
async def test_a_permission_waits_for_a_user_with_its_role(spec: dict[str, Any]) -> None:
    async with a_nacos(spec) as content:
        await content.create(PERMISSION, "read", role="readers", resource="dev:*:*", action="r")
        await content.until(PERMISSION, "read", "RoleMissing")
        await content.create(USER, "dev", username="dev", roles=["readers"])
        await content.until(PERMISSION, "read")
        assert await content.servers.permissions_of("readers") == {("dev:*:*", "r")}
        await content.servers.revoke("readers", "dev:*:*", "r")
        await content.world.advance(300.0)
        assert await content.servers.permissions_of("readers") == {("dev:*:*", "r")}
        await content.delete(PERMISSION, "read")
        assert await content.servers.permissions_of("readers") == set()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"username": "nacos"}, "adminCredentialsSecretRef"),
        ({"username": "dev", "roles": ["ROLE_ADMIN"]}, "first administrator alone"),
        ({"username": "a b"}, "should match"),
    ],
)
async def test_users_that_the_schema_refuses(spec: dict[str, Any], message: str) -> None:
    async with a_nacos() as content:
        with pytest.raises(Invalid, match=message):
            await content.create(USER, "dev", **spec)
