"""The operator is killed after every write to the API server, and servers fail: content ends as declared, once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from konverge.client import MergePatch
from konverge.operators.nacos.content.api import Login, digest
from konverge.sim.nacos import Fault
from tests.operators.nacos.content.test_accounts import AUTH
from tests.operators.nacos.content.world import APP, SECOND, THIRD, ContentWorld
from tests.operators.nacos.test_killed import Mortal
from tests.operators.nacos.world import SPACE, a_simulated_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-39")]
CONFIG = "NacosConfig"


async def by_mortals(content: ContentWorld, *, done: str) -> int:
    """Processes of one write each, until the configuration has this content and is Ready; how many there were."""
    for lives in range(40):
        client = Mortal(content.world.client, 1)
        async with content.world.operating(client=client):
            for _ in range(60):
                await content.world.advance(1.0)
                if client.calls.dead.is_set():
                    break
                if await content.ready(CONFIG, "app") == ("True", "Applied") and await content.content() == done:
                    return lives
    raise AssertionError((await content.get(CONFIG, "app")).status)


@pytest.mark.limit(120)
async def test_processes_of_one_write_each() -> None:
    async with a_simulated_world() as (world, simulated):
        async with world.operating():
            await world.up("nacos", SECOND)
        content = ContentWorld(world, simulated)
        await content.config()
        assert await by_mortals(content, done="a: 1") >= 2
        await content.change(CONFIG, "app", content="a: 2")
        await by_mortals(content, done="a: 2")
        config = await content.get(CONFIG, "app")
        assert config.status.ownership == "Created"
        assert [version.revision for version in config.status.history] == [1, 2]
        assert content.writes_of() == [("I", "a: 1"), ("U", "a: 1")]
        assert await world.events("Drifted") == [], "a write of an earlier process is no drift"


@pytest.mark.parametrize("fault", list(Fault), ids=lambda fault: fault.value)
async def test_servers_that_fail(fault: Fault) -> None:
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", SECOND)
        content = ContentWorld(world, simulated)
        simulated.spoil("nacos-0", fault)
        await content.config()
        await world.advance(20.0)
        status, reason = await content.ready(CONFIG, "app")
        assert status == "False"
        assert reason in ("Forbidden", "ServerError", "BadAnswer", "Timeout", "Unreachable", "NacosNotReady")
        simulated.mend()
        await content.until(CONFIG, "app")
        assert content.writes_of() == [("I", "a: 1")]


async def test_what_a_killed_process_wrote_is_no_drift_though_the_spec_went_on() -> None:
    async with a_simulated_world() as (world, simulated):
        content = ContentWorld(world, simulated)
        async with world.operating():
            await world.up("nacos", SECOND)
            config = await content.config()
            await content.until(CONFIG, "app")
        patch = MergePatch({"status": {"applying": f"{digest('a: 2')}:yaml"}})
        await world.client.patch(type(config), "app", patch, SPACE, subresource="status")
        await content.servers.publish(APP, "a: 2", "yaml", "")
        await content.change(CONFIG, "app", content="a: 3")
        async with world.operating():
            await content.until(CONFIG, "app")
            assert await content.content() == "a: 3"
            assert await world.events("Drifted") == []


@pytest.mark.spec("N-34")
@pytest.mark.parametrize("adopt", [False, True])
async def test_what_others_made_after_the_claim_of_a_killed_process_is_theirs(adopt: bool) -> None:
    async with a_simulated_world() as (world, simulated):
        content = ContentWorld(world, simulated)
        async with world.operating():
            nacos = await world.up("nacos", SECOND)
        config = await content.config(adopt=adopt)
        claim = {"ownership": "Created", "nacosUid": nacos.metadata.uid, "applying": f"{digest('a: 1')}:yaml"}
        await world.client.patch(type(config), "app", MergePatch({"status": claim}), SPACE, subresource="status")
        await content.servers.publish(APP, "by others", "yaml", "")
        async with world.operating():
            await content.until(CONFIG, "app", "Applied" if adopt else "AlreadyExists")
            assert await content.content() == ("a: 1" if adopt else "by others")
            await content.delete(CONFIG, "app")
            assert await content.gone(CONFIG, "app")
            assert await content.content() == ("a: 1" if adopt else "by others"), "adopted content stays by default"


@pytest.mark.spec("N-34")
@pytest.mark.parametrize("password", ["theirs", "ours"])
async def test_a_user_with_the_password_of_its_secret_was_made_by_a_killed_process(password: str) -> None:
    async with a_simulated_world() as (world, simulated):
        content = ContentWorld(world, simulated)
        async with world.operating():
            await world.secret("admin", username="nacos", password="admins-own")
            await world.secret("ann", password="ours")
            nacos = await world.up("nacos", {**THIRD, **AUTH})
            await world.advance(60.0)
            ref = {"name": "ann", "key": "password"}
            user = await content.create("NacosUser", "ann", username="ann", roles=["readers"], passwordSecretRef=ref)
            made = await content.until("NacosUser", "ann")
        servers = replace(content.servers, login=Login("nacos", "admins-own"))
        await servers.set_password("ann", password)
        await servers.remove_role("readers", "ann")
        await world.advance(40.0)
        claim = {"nacosUid": nacos.metadata.uid, "applying": made.status.applied, "applied": None, "appliedTime": None}
        await world.client.patch(type(user), "ann", MergePatch({"status": claim}), SPACE, subresource="status")
        async with world.operating():
            await world.advance(30.0)
            await content.until("NacosUser", "ann", "Applied" if password == "ours" else "AlreadyExists")
            assert await servers.roles_of("ann") == (frozenset({"readers"}) if password == "ours" else frozenset())
