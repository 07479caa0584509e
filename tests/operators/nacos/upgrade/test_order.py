"""The way of an upgrade: preflight, migration, one server after the other, the leader last, each verified, done."""

from __future__ import annotations

import pytest

from konverge.client import MergePatch
from konverge.objects import to_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.operators.nacos.resource import Nacos
from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.upgrade.world import FIRST, SECOND, THIRD, images, until_halted, until_step, upgrade_of
from tests.operators.nacos.world import CLUSTER, EMBEDDED, MYSQL, POSTGRES, SPACE, STANDALONE, a_world, condition

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120)]
OLD = {**CLUSTER, "image": FIRST}
SLOW = [Rule(image="*nacos-server*", behave="ready after 4s")]


@pytest.mark.spec("N-49", "N-51")
async def test_each_step_is_in_the_status_and_the_leader_goes_last() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        world.servers.leading = 2
        await world.up("nacos", OLD)
        assert (await world.nacos("nacos")).status.upgrade is None
        await world.change("nacos", image=SECOND)
        seen: list[tuple[str, tuple[str, ...]]] = []
        for _ in range(200):
            await world.advance(1.0)
            nacos = await world.nacos("nacos")
            upgrade = nacos.status.upgrade
            if upgrade is None:
                continue
            assert (upgrade.from_version, upgrade.to, upgrade.image) == ("2.0.4", "2.4.3", SECOND)
            entry = (upgrade.step, tuple(upgrade.members_done))
            if not seen or seen[-1] != entry:
                seen.append(entry)
            if upgrade.step == "Done":
                break
            assert condition(nacos, "Upgrading") == ("True", upgrade.step)
            assert condition(nacos, "Ready")[0] == "False"
            outdated = [name for name, image in (await images(world)).items() if image == FIRST]
            assert not set(outdated) & set(upgrade.members_done)
        assert world.replaced() == ["nacos-1", "nacos-0", "nacos-2"]
        steps = list(dict.fromkeys(step for step, _ in seen))
        assert steps in (["Migrating", "Rolling", "Verifying", "Done"], ["Rolling", "Verifying", "Done"])
        assert seen[-1] == ("Done", ("nacos-0", "nacos-1", "nacos-2"))
        assert ("Rolling", ("nacos-1",)) in seen
        assert ("Rolling", ("nacos-0", "nacos-1")) in seen
        nacos = await world.until("nacos")
        assert condition(nacos, "Upgrading") == ("False", "Done")
        assert nacos.status.upgrade is not None
        assert nacos.status.upgrade.message == "3 servers run Nacos 2.4.3"
        assert nacos.status.upgrade.halted == ""
        assert await world.events("UpgradeBegins") == ["from Nacos 2.0.4 to 2.4.3"]
        assert await world.events("Upgraded") == ["from Nacos 2.0.4 to 2.4.3: 3 servers run Nacos 2.4.3"]
        assert not await world.events("UpgradeHalted")
        await world.advance(60.0)
        before = await world.nacos("nacos")
        await world.advance(600.0)
        after = await world.nacos("nacos")
        assert after.metadata.resource_version == before.metadata.resource_version, "no writes at rest"


@pytest.mark.spec("N-49")
async def test_another_image_of_the_same_version_is_no_upgrade() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", OLD)
        await world.update("nacos", image="mirror/nacos-server:v2.0.4")
        assert len(world.replaced()) == 3
        assert (await world.nacos("nacos")).status.upgrade is None
        assert condition(await world.nacos("nacos"), "Upgrading") == ("", "")
        await world.update("nacos", config="a=1\n")
        assert (await world.nacos("nacos")).status.upgrade is None
        world.servers.version = "2.0.4"
        await world.update("nacos", image="mirror/nacos-server:nightly")
        assert (await world.nacos("nacos")).status.upgrade is None, "of an unknown version nothing can be asked"


@pytest.mark.spec("N-49")
async def test_a_standalone_has_the_same_steps() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", STANDALONE)
        await world.update("nacos", image=SECOND)
        upgrade = await upgrade_of(world)
        assert (upgrade.step, upgrade.from_version, upgrade.to) == ("Done", "2.0.4", "2.4.3")
        assert upgrade.members_done == ["nacos-0"]


@pytest.mark.spec("N-51")
async def test_a_server_that_reports_another_version_halts() -> None:
    """Its image promised another one, and the schema was made for that."""
    async with a_world() as world, world.operating():
        await world.up("nacos", OLD)
        world.servers.version = "2.0.4"
        await world.change("nacos", image=SECOND)
        upgrade = await until_halted(world, "VersionDiffers")
        assert upgrade.step == "Rolling"
        assert upgrade.message.startswith(f"nacos-2 reports 2.0.4, and {SECOND} should be Nacos 2.4.3: ")
        await world.advance(900.0)
        assert world.replaced() == ["nacos-2"]
        nacos = await world.nacos("nacos")
        assert condition(nacos, "Ready") == ("False", "VersionDiffers")
        assert condition(nacos, "Stalled") == ("True", "VersionDiffers")
        assert len(await world.events("UpgradeHalted")) == 1
        world.servers.version = ""
        await world.advance(60.0)
        await world.until("nacos")
        assert await world.events("UpgradeResumed")
        assert (await upgrade_of(world)).step == "Done"


@pytest.mark.spec("N-51")
async def test_the_patch_level_need_not_be_the_tags() -> None:
    """Tags such as v2.4 move."""
    async with a_world() as world, world.operating():
        await world.up("nacos", OLD)
        world.servers.version = "2.4.9"
        await world.update("nacos", image="nacos/nacos-server:v2.4")
        assert (await upgrade_of(world)).step == "Done"


# ------------------------------------------------------------------ schema


@pytest.mark.spec("N-50", "N-53")
async def test_a_third_version_with_another_schema_waits_for_the_second() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        world.mysql()
        await world.up("nacos", {**MYSQL, "image": FIRST})
        await world.change("nacos", image=SECOND)
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", image=THIRD)
        together = []
        for _ in range(600):
            await world.advance(1.0)
            together.append(frozenset((await images(world)).values()))
            nacos = await world.nacos("nacos")
            if nacos.status.upgrade is not None and nacos.status.upgrade.to == "2.4.3" and together[-1] > {SECOND}:
                assert nacos.status.upgrade.halted == "", "it goes on"
            if nacos.status.upgrade is not None and (nacos.status.upgrade.to, nacos.status.upgrade.step) == (
                "2.5.0",
                "Done",
            ):
                break
        assert {FIRST, THIRD} not in [both & {FIRST, THIRD} for both in together], "never two schemas at work"
        assert frozenset({SECOND}) in together
        assert together[-1] == {THIRD}
        upgrade = await upgrade_of(world)
        assert (upgrade.from_version, upgrade.to) == ("2.4.3", "2.5.0")
        assert len(world.replaced()) == 6


@pytest.mark.spec("N-53")
async def test_a_third_version_with_the_same_schema_is_gone_to_at_once() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        world.mysql()
        await world.up("nacos", {**MYSQL, "image": FIRST})
        await world.change("nacos", image="nacos/nacos-server:v2.3.2")
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", image=SECOND)
        await until_step(world, "Done")
        upgrade = await upgrade_of(world)
        assert (upgrade.from_version, upgrade.to) == ("2.0.4", "2.4.3")
        assert world.replaced().count("nacos-0") == 1, "only those that had the second version go twice"
        assert await world.events("UpgradeRedirected") == ["to Nacos 2.4.3 in place of 2.3.2"]


@pytest.mark.spec("N-50")
async def test_servers_are_looked_after_while_the_schema_cannot_be_made() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        await world.up("nacos", POSTGRES)
        server.denied = True
        await world.change("nacos", image=THIRD)
        upgrade = await until_halted(world, "DatabasePermissionDenied")
        assert upgrade.step == "Migrating"
        world.servers.fail("nacos-1", "Unreachable")
        await world.advance(60.0)
        assert (await world.nacos("nacos")).status.servers[1].status == "false", "they are asked"
        assert set((await images(world)).values()) == {POSTGRES["image"]}
        world.servers.faults.clear()
        server.denied = False
        await world.advance(60.0)
        await world.until("nacos")
        assert (await upgrade_of(world)).step == "Done"


# ------------------------------------------------------------------ with other changes


@pytest.mark.spec("N-54")
async def test_a_cluster_grows_when_it_has_its_version() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", OLD)
        await world.change("nacos", image=SECOND, replicas=5)
        upgrade = await upgrade_of(world)
        while upgrade.step != "Done":
            await world.advance(1.0)
            upgrade = await upgrade_of(world)
            assert upgrade.step == "Done" or len(await world.pods()) <= 3
        assert upgrade.members_done == ["nacos-0", "nacos-1", "nacos-2"]
        await world.until("nacos")
        assert len(await world.pods()) == 5


@pytest.mark.spec("N-54")
async def test_a_cluster_shrinks_when_it_has_its_version() -> None:
    async with a_world(nodes=5, rules=SLOW) as world, world.operating():
        await world.up("nacos", {**OLD, "replicas": 4})
        await world.change("nacos", image=SECOND, replicas=3)
        upgrade = await until_step(world, "Done")
        assert len(upgrade.members_done) == 4
        await world.until("nacos")
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.replicas == 3


@pytest.mark.spec("N-54")
async def test_an_upgrade_survives_a_sleep() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.up("nacos", {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}})
        await world.change("nacos", image=THIRD)
        await until_step(world, "Rolling", done=1)
        await world.change("nacos", hibernate=True)
        nacos = await world.until("nacos", "Hibernated")
        assert nacos.status.upgrade is not None
        assert nacos.status.upgrade.halted == "Hibernated"
        await world.advance(300.0)
        await world.change("nacos", hibernate=False)
        await until_step(world, "Done")
        assert set((await images(world)).values()) == {THIRD}


@pytest.mark.spec("N-54")
async def test_another_version_that_was_chosen_in_its_sleep_is_gone_to_on_the_wake() -> None:
    async with a_world(rules=SLOW) as world, world.operating():
        await world.up("nacos", {**EMBEDDED, "volume": {"enabled": True, "requests": {"storage": "1Gi"}}})
        await world.change("nacos", hibernate=True)
        await world.until("nacos", "Hibernated")
        await world.change("nacos", image=THIRD)
        await world.advance(60.0)
        assert (await world.nacos("nacos")).status.upgrade is None, "nothing is begun in its sleep"
        await world.change("nacos", hibernate=False)
        upgrade = await until_step(world, "Done")
        assert (upgrade.from_version, upgrade.to) == ("2.4.3", "2.5.0")
        assert len(upgrade.members_done) == 3


@pytest.mark.spec("N-55")
async def test_a_rollout_that_was_left_half_done_is_taken_over() -> None:
    """By an operator that knows no upgrades: nothing of them is in the status."""
    async with a_world(rules=SLOW) as world:
        async with world.operating():
            await world.up("nacos", OLD)
            await world.change("nacos", image=SECOND)
            await until_step(world, "Rolling", done=1)
        status = (await world.nacos("nacos")).status
        kept = [to_dict(entry) for entry in status.kube_conditions if entry.type != "Upgrading"]
        body = {"upgrade": None, "kubeConditions": kept}
        await world.client.patch(Nacos, "nacos", MergePatch({"status": body}), SPACE, subresource="status")
        async with world.operating():
            upgrade = await until_step(world, "Rolling")
            assert (upgrade.from_version, upgrade.to) == ("2.0.4", "2.4.3")
            await until_step(world, "Done")
            assert world.replaced() in (["nacos-0"], ["nacos-1", "nacos-0"]), "none twice"
            assert await world.until("nacos")
