"""The administrator's password follows its Secret, where users are in MySQL or in the servers' own storage."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects import to_json
from konverge.objects.kinds.core_v1 import Event, Secret
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.steps import Options
from konverge.sim.databases import simulated_hash
from konverge.sim.nacos import SimulatedNacos
from tests.operators.nacos.test_killed import Mortal
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, SPACE, World, a_simulated_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180), pytest.mark.spec("N-64")]
_MORE: dict[str, Any] = {
    "certification": {"enabled": True},
    "adminCredentialsSecretRef": {"name": "admin"},
    "volume": {"enabled": True, "requests": {"storage": "1Gi"}},
}
UNREACHED: dict[str, Any] = {"database": {**MYSQL["database"], "mysqlCheck": False}}
SPECS: dict[str, dict[str, Any]] = {
    "embedded": {**EMBEDDED, **_MORE},
    "third": {**CLUSTER, **_MORE, "image": "nacos/nacos-server:v3.0.3"},
    "mysql": {**MYSQL, **_MORE, "image": "nacos/nacos-server:v2.4.3"},
    "mysql that only pods reach": {**MYSQL, **_MORE, **UNREACHED, "image": "nacos/nacos-server:v2.4.3"},
}
BY_API = [SPECS["third"], SPECS["mysql that only pods reach"]]
both = pytest.mark.parametrize("spec", [SPECS["embedded"], SPECS["mysql"]], ids=["embedded", "mysql"])
every = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())


async def up(world: World, spec: dict[str, Any], password: str = "first-word") -> None:
    world.mysql().databases["nacos"].initialise("2.4")
    await world.secret("admin", username="nacos", password=password)
    await world.up("nacos", spec)
    await world.advance(60.0)
    assert condition(await world.nacos("nacos"), "AdminRotated") == ("True", "Bootstrapped")


async def declare(world: World, password: str) -> None:
    await world.client.patch(Secret, "admin", MergePatch({"stringData": {"password": password}}), SPACE)


async def accepted(world: World, *passwords: str) -> list[bool]:
    """When the server has read its users again: it does so some seconds after it was asked."""
    address = (await world.nacos("nacos")).status.servers[0].instance or ""
    await world.asked.login(address, username="nacos", password="none")
    await world.advance(16.0)
    return [await world.asked.login(address, username="nacos", password=password) for password in passwords]


@every
async def test_another_password_in_the_secret_is_that_of_the_administrator(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        pods, before = await world.uids(), (await world.nacos("nacos")).status.admin.last_rotate_time
        await declare(world, "second-word")
        await world.advance(60.0)
        assert await accepted(world, "first-word", "second-word") == [False, True]
        nacos = await world.nacos("nacos")
        assert condition(nacos, "AdminRotated") == ("True", "Rotated")
        assert (nacos.status.admin.username, nacos.status.admin.last_result) == ("nacos", "Success")
        assert nacos.status.admin.last_rotate_time > before
        assert await world.events("AdminRotated") == ["the password of nacos is now that of Secret admin"]
        assert await world.uids() == pods, "no server restarts"
        await world.advance(600.0)
        assert len(await world.events("AdminRotated")) == 1
        assert await accepted(world, "second-word") == [True]


@both
async def test_no_password_is_written_where_others_read_it(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        await declare(world, "second-word")
        await world.advance(60.0)
        everything = to_json(await world.nacos("nacos")) + b"".join(
            to_json(event) for event in await world.client.list(Event, SPACE)
        )
        assert b"-word" not in everything


def by_hand(world: World, simulated: SimulatedNacos, password: str) -> None:
    """Somebody changes the password in the console."""
    member = simulated.member("nacos-0")
    if member.settings.embedded:
        assert simulated.ensemble.write(member, lambda data: data.users.update(nacos=password))
    else:
        users = world.databases.servers["my", 3306].databases["nacos"].content.users
        users["nacos"] = (simulated_hash(password), True)


@both
async def test_a_password_that_was_changed_on_the_servers_stays(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await up(world, spec)
        by_hand(world, simulated, "by-hand")
        await world.advance(300.0)
        assert await accepted(world, "first-word", "by-hand") == [False, True]
        assert condition(await world.nacos("nacos"), "AdminRotated") == ("True", "Bootstrapped")


async def test_mysql_needs_no_password_of_before() -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await up(world, SPECS["mysql"])
        by_hand(world, simulated, "by-hand")
        await declare(world, "second-word")
        await world.advance(60.0)
        assert await accepted(world, "by-hand", "second-word") == [False, True]


@pytest.mark.parametrize("spec", BY_API)
async def test_the_servers_need_a_password_that_is_known(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await up(world, spec)
        by_hand(world, simulated, "by-hand")
        await world.advance(30.0)
        await declare(world, "second-word")
        await world.advance(60.0)
        nacos = await world.nacos("nacos")
        assert condition(nacos, "AdminRotated") == ("False", "PasswordDiffers")
        assert condition(nacos, "Ready")[0] == "True", "the servers serve"
        assert await accepted(world, "by-hand") == [True]
        by_hand(world, simulated, "first-word")
        await world.advance(150.0)
        assert await accepted(world, "second-word") == [True], "known again"
        assert condition(await world.nacos("nacos"), "AdminRotated") == ("True", "Rotated")


@both
async def test_the_way_back_and_several_changes_at_once(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        for password in ("second-word", "third-word", "first-word", "fourth-word"):
            await declare(world, password)
            await world.advance(0.2)
        await world.advance(60.0)
        assert await accepted(world, "first-word", "fourth-word") == [False, True]
        await declare(world, "first-word")
        await world.advance(60.0)
        assert await accepted(world, "first-word", "fourth-word") == [True, False]


@pytest.mark.long
@every
async def test_killed_after_every_write_no_operator_is_locked_out(spec: dict[str, Any]) -> None:
    """The user's Secret changes while no process runs: also back to what it was before the last one was killed."""
    async with a_simulated_world() as (world, _):
        async with world.operating():
            await up(world, spec)
        for password in ("second-word", "first-word", "second-word", "third-word", "first-word"):
            await declare(world, password)
            client = Mortal(world.client, 1)
            async with world.operating(client=client):
                for _ in range(60):
                    await world.advance(1.0)
                    if client.calls.dead.is_set():
                        break
        async with world.operating():
            await world.advance(120.0)
            assert await accepted(world, "first-word", "second-word", "third-word") == [True, False, False]
            assert condition(await world.nacos("nacos"), "AdminRotated")[0] == "True"


@both
async def test_two_operators_at_once(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        async with world.operating():
            await declare(world, "second-word")
            await world.advance(60.0)
            assert await accepted(world, "first-word", "second-word") == [False, True]
            await declare(world, "third-word")
            await world.advance(60.0)
            assert await accepted(world, "second-word", "third-word") == [False, True]


@both
async def test_a_setting_that_is_taken_back_leaves_the_password(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        await world.change("nacos", adminCredentialsSecretRef=None)
        await world.advance(30.0)
        await declare(world, "second-word")
        await world.advance(60.0)
        assert await accepted(world, "first-word", "second-word") == [True, False]
        await world.change("nacos", adminCredentialsSecretRef={"name": "admin"})
        await world.advance(60.0)
        assert await accepted(world, "first-word", "second-word") == [False, True]


@both
async def test_a_secret_that_is_gone_changes_nothing(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        await world.client.delete(Secret, "admin", SPACE)
        await world.advance(120.0)
        assert condition(await world.nacos("nacos"), "Ready")[0] == "True"
        assert await accepted(world, "first-word") == [True]
        await world.secret("admin", username="nacos", password="second-word")
        await world.advance(60.0)
        assert await accepted(world, "second-word") == [True]


@every
async def test_an_administrator_that_an_earlier_operator_made_is_followed_from_now_on(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, simulated):
        async with world.operating():
            await up(world, spec)
        noted = {"lastSecretChecksum": "", "lastSecretResourceVersion": ""}
        patch = MergePatch({"status": {"admin": noted}})
        await world.client.patch(Nacos, "nacos", patch, SPACE, subresource="status")
        kept = {"admin_password": None, "next_admin_password": None}
        await world.client.patch(Secret, "nacos-auth", MergePatch({"data": kept}), SPACE)
        by_hand(world, simulated, "by-hand")
        await declare(world, "by-hand")
        async with world.operating():
            await world.advance(60.0)
            assert await accepted(world, "by-hand") == [True]
            assert not await world.events("AdminRotated")
            await declare(world, "second-word")
            await world.advance(60.0)
            assert await accepted(world, "by-hand", "second-word") == [False, True]


async def test_a_database_that_is_away_and_comes_back() -> None:
    options = Options(database_interval=3600.0)  # else the check of the database is the first to fail
    async with a_simulated_world() as (world, _), world.operating(options=options):
        await up(world, SPECS["mysql"])
        world.databases.servers["my", 3306].read_only = "setting"
        await declare(world, "second-word")
        await world.advance(60.0)
        assert condition(await world.nacos("nacos"), "AdminRotated")[0] == "False"
        assert (await world.nacos("nacos")).status.admin.last_result == "Failed"
        world.databases.servers["my", 3306].read_only = ""
        await world.advance(120.0)
        assert await accepted(world, "second-word") == [True]
        assert condition(await world.nacos("nacos"), "AdminRotated") == ("True", "Rotated")


async def test_another_name_and_a_hash_in_mysql() -> None:
    hashed = simulated_hash("second-word")
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, SPECS["mysql"])
        await world.replace_secret("admin", username="boss", passwordHash=hashed)
        await world.advance(60.0)
        content = world.databases.servers["my", 3306].databases["nacos"].content
        assert set(content.users) == {"boss"}, "the former administrator was removed"
        assert "boss" in content.admins
        assert (await world.nacos("nacos")).status.admin.username == "boss"


@pytest.mark.parametrize("spec", BY_API)
async def test_what_is_kept_is_in_the_operators_own_secret(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, spec)
        assert await kept(world) == {"admin_password": "first-word"}
        pods = await world.uids()
        await declare(world, "second-word")
        await world.advance(90.0)
        assert await kept(world) == {"admin_password": "second-word"}
        assert await world.uids() == pods


async def test_nothing_is_kept_where_sql_does_it() -> None:
    async with a_simulated_world() as (world, _), world.operating():
        await up(world, SPECS["mysql"])
        await declare(world, "second-word")
        await world.advance(60.0)
        assert await kept(world) == {}


async def kept(world: World) -> dict[str, str]:
    data = (await world.client.get(Secret, "nacos-auth", SPACE)).data
    return {key: b64decode(value).decode() for key, value in data.items() if "admin" in key}
