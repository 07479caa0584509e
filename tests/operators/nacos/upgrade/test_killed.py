"""The operator is killed after every single write of an upgrade, and the next process goes on where it was."""

from __future__ import annotations

import pytest

from konverge.sim.kubelet.behaviour import Rule
from tests.operators.nacos.test_killed import by_mortals
from tests.operators.nacos.upgrade.world import FIRST, SECOND, THIRD, backup_kind, completed_backup, images, upgrade_of
from tests.operators.nacos.world import MYSQL, a_world

pytestmark = [pytest.mark.long, pytest.mark.virtual, pytest.mark.spec("N-55"), pytest.mark.limit(180)]
SLOW = [Rule(image="*nacos-server*", behave="ready after 4s")]


@pytest.mark.parametrize("writes", [1, 2])
async def test_an_upgrade_by_killed_processes(writes: int) -> None:
    async with a_world(nodes=5, rules=SLOW) as world:
        await backup_kind(world, exists=True)
        world.mysql()
        gate = {"requireBackupWithin": "1h"}
        await world.create("nacos", {**MYSQL, "image": FIRST, "mysqlInitImage": "mysql:8", "upgrade": gate})
        await by_mortals(world, writes)
        await completed_backup(world, "young")
        await world.change("nacos", image=THIRD)
        last = await by_mortals(world, writes)
        assert len(last) >= 6 // writes
        upgrade = await upgrade_of(world)
        assert (upgrade.from_version, upgrade.to, upgrade.step) == ("2.0.4", "2.5.0", "Done")
        assert upgrade.backup == "young"
        assert set((await images(world)).values()) == {THIRD}


async def test_a_change_of_mind_by_killed_processes() -> None:
    async with a_world(nodes=5, rules=SLOW) as world:
        world.mysql()
        await world.create("nacos", {**MYSQL, "image": FIRST})
        await by_mortals(world, 1)
        await world.change("nacos", image="nacos/nacos-server:v2.3.2")
        while len(set((await images(world)).values())) == 1:
            with pytest.raises(AssertionError):
                await by_mortals(world, 1, limit=1)
        await world.change("nacos", image=SECOND)
        await by_mortals(world, 1)
        upgrade = await upgrade_of(world)
        assert (upgrade.to, upgrade.step) == ("2.4.3", "Done")
        assert set((await images(world)).values()) == {SECOND}
