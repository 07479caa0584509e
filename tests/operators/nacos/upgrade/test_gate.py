"""The preflight: an upgrade that should not begin changes nothing, says why, and begins when the reason is gone."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import Recording
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos.resource import ALLOW
from tests.operators.nacos.test_held import children
from tests.operators.nacos.test_ownership import written
from tests.operators.nacos.upgrade.world import (
    FIRST,
    SECOND,
    allow,
    backup_kind,
    completed_backup,
    images,
    until_halted,
    until_step,
    upgrade_of,
)
from tests.operators.nacos.world import CLUSTER, MYSQL, POSTGRES, SPACE, World, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-49")]
OLD: dict[str, Any] = {**CLUSTER, "image": FIRST}
GATED: dict[str, Any] = {**OLD, "upgrade": {"requireBackupWithin": "24h"}}
DAY = 86400.0


async def halted(world: World, reason: str, client: Recording) -> str:
    """Nothing of the edit was written; the message."""
    upgrade = await until_halted(world, reason)
    assert upgrade.step == "Preflight"
    await world.advance(300.0)
    nacos = await world.nacos("nacos")
    assert condition(nacos, "Upgrading") == ("True", reason)
    assert condition(nacos, "Ready") == ("False", reason)
    assert condition(nacos, "Stalled") == ("True", reason)
    assert condition(nacos, "Available")[0] == "True"
    assert nacos.status.phase == "Running"
    assert written(client) == set()
    assert len(await world.events("UpgradeHalted")) == 1, "one event for one halt"
    revision = nacos.metadata.resource_version
    await world.advance(300.0)
    assert (await world.nacos("nacos")).metadata.resource_version == revision, "no writes while it waits"
    return upgrade.message


@pytest.mark.spec("N-52")
async def test_a_backup_that_is_asked_for() -> None:
    async with a_world() as world:
        await backup_kind(world, exists=True)
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", GATED)
            await world.advance(60.0)
            before = await children(world)
            client.calls.clear()
            await world.change("nacos", image=SECOND, config="a=1\n")
            message = await halted(world, "BackupMissing", client)
            assert message.startswith(
                "spec.upgrade.requireBackupWithin asks for a backup of the last 24h, and none is completed"
            )
            assert f"'{ALLOW}=upgrade=2.4.3'" in message
            assert await children(world) == before, "nothing of the edit, not even its configuration"
            await completed_backup(world, "of-another", of="other")
            await completed_backup(world, "of-an-earlier-nacos", nacosUid="another")
            await completed_backup(world, "running", phase="Running")
            await completed_backup(world, "untimely", completionTime="yesterday")
            await world.advance(60.0)
            assert (await upgrade_of(world)).halted == "BackupMissing"
            await completed_backup(world, "old", age=DAY + 60.0)
            upgrade = await until_halted(world, "BackupTooOld")
            assert "the newest, old, was completed at 20" in upgrade.message
            await completed_backup(world, "older", age=2 * DAY)
            await completed_backup(world, "young", age=DAY - 600.0)
            upgrade = await until_step(world, "Done")
            assert upgrade.backup == "young"
            await world.until("nacos")


@pytest.mark.spec("N-52")
async def test_a_cluster_without_backups() -> None:
    async with a_world() as world:
        await backup_kind(world, exists=False)
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", GATED)
            await world.advance(60.0)
            client.calls.clear()
            await world.change("nacos", image=SECOND)
            message = await halted(world, "BackupKindMissing", client)
            assert "apply the definitions of this release and create one, or take the field out" in message
            await world.change("nacos", upgrade={"requireBackupWithin": ""})
            await until_step(world, "Done")


@pytest.mark.spec("N-52")
async def test_a_gated_upgrade_to_an_unknown_version() -> None:
    async with a_world() as world:
        await backup_kind(world, exists=True)
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", GATED)
            await world.advance(60.0)
            client.calls.clear()
            await world.change("nacos", image="mine/nacos:nightly")
            message = await halted(world, "VersionUnknown", client)
            assert message == "the image's tag does not tell its version of Nacos: set spec.version"
            await completed_backup(world, "young")
            world.servers.version = "2.4.3"
            await world.change("nacos", version="2.4.3")
            await until_step(world, "Done")


async def test_an_upgrade_that_is_taken_back_in_time_changes_nothing() -> None:
    async with a_world() as world, world.operating():
        await backup_kind(world, exists=True)
        await world.up("nacos", GATED)
        before = await children(world)
        await world.change("nacos", image=SECOND)
        await until_halted(world, "BackupMissing")
        await world.update("nacos", image=FIRST)
        assert await children(world) == before
        nacos = await world.nacos("nacos")
        assert nacos.status.upgrade is None
        assert condition(nacos, "Upgrading") == ("False", "Ended")
        assert await world.events("UpgradeCancelled")


async def test_the_user_can_allow_it_once() -> None:
    async with a_world() as world, world.operating():
        await backup_kind(world, exists=True)
        await world.up("nacos", GATED)
        await world.change("nacos", image=SECOND)
        await until_halted(world, "BackupMissing")
        await allow(world, "upgrade=2.4.2")
        await world.advance(60.0)
        assert (await upgrade_of(world)).halted == "BackupMissing", "exactly this one"
        await allow(world, "upgrade=2.4.3")
        await until_step(world, "Done")
        await world.until("nacos")
        assert ALLOW not in (await world.nacos("nacos")).metadata.annotations


async def test_an_unknown_path() -> None:
    async with a_world() as world:
        client = Recording(world.client)
        async with world.operating(client=client):
            await world.up("nacos", OLD)
            await world.advance(60.0)
            client.calls.clear()
            await world.change("nacos", image="nacos/nacos-server:v4.0.0")
            message = await halted(world, "VersionPathUnknown", client)
            assert message.startswith("Nacos 4.0.0 is not known to this operator: upgrade the operator first; ")


async def test_a_cluster_without_a_majority_is_repaired_first() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", OLD)
        for pod in ("nacos-0", "nacos-1"):
            world.servers.fail(pod, "Unreachable")
        await world.advance(60.0)
        await world.change("nacos", image=SECOND)
        upgrade = await until_halted(world, "TooFewMembers")
        assert upgrade.message.startswith("1 of 3 servers are up, and a majority of 2 is needed: repair them first; ")
        assert set((await images(world)).values()) == {FIRST}
        world.servers.faults.clear()
        await until_step(world, "Done")


async def test_one_server_that_is_down_is_replaced_first() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", OLD)
        world.servers.fail("nacos-0", "Unreachable")
        await world.advance(30.0)
        await world.change("nacos", image=SECOND)
        await world.advance(120.0)
        assert world.replaced() == []
        await world.advance(200.0)
        assert world.replaced()[0] == "nacos-0", "as the last resort, the one that is of no use, and no other"
        world.servers.faults.clear()
        await until_step(world, "Done")


@pytest.mark.parametrize("spec", [MYSQL, POSTGRES])
@pytest.mark.spec("N-50")
async def test_a_database_that_is_away(spec: dict[str, Any]) -> None:
    async with a_world() as world, world.operating():
        mysql, postgres = world.mysql(), await world.postgres()
        await world.up("nacos", {**spec, "image": FIRST})
        before = await world.client.get(StatefulSet, "nacos", SPACE)
        mysql.down = postgres.down = True
        await world.change("nacos", image=SECOND)
        upgrade = await until_halted(world, "DatabaseUnreachable")
        assert upgrade.step == "Preflight"
        await world.advance(120.0)
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec == before.spec
        mysql.down = postgres.down = False
        await until_step(world, "Done")


async def test_a_stateful_set_that_is_deleted_meanwhile_comes_back_as_it_was() -> None:
    async with a_world() as world, world.operating():
        await backup_kind(world, exists=True)
        await world.up("nacos", GATED)
        await world.change("nacos", image=SECOND)
        await until_halted(world, "BackupMissing")
        await world.client.delete(StatefulSet, "nacos", SPACE, propagation="Background")
        for _ in range(120):
            await world.advance(1.0)
            assert SECOND not in (await images(world)).values()
        assert list((await images(world)).values()) == [FIRST] * 3
        assert (await upgrade_of(world)).halted == "BackupMissing"


@pytest.mark.spec("N-53")
async def test_a_pause_before_it_begins_and_in_the_middle() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", {**OLD, "upgrade": {"paused": True}})
        await world.change("nacos", image=SECOND)
        upgrade = await until_halted(world, "UpgradePaused")
        assert upgrade.message == "spec.upgrade.paused is true: set it to false to go on"
        assert set((await images(world)).values()) == {FIRST}
        await world.change("nacos", upgrade={"paused": False})
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", upgrade={"paused": True})
        await until_halted(world, "UpgradePaused")
        replaced = world.replaced()
        await world.advance(600.0)
        assert world.replaced() == replaced
        assert 1 <= len(replaced) < 3
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "UpgradePaused")
        assert nacos.status.phase == "Running"
        await world.change("nacos", upgrade={"paused": False})
        await until_step(world, "Done")
        assert await world.events("UpgradeResumed")
