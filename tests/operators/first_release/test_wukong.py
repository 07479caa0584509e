"""Machines of the first release under this one: they move, change, and go."""

from __future__ import annotations

import pytest

from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.migrations import MigrationSpec
from tests.operators.first_release.upgrade import NEW, OLD, SPACE, an_upgrade

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("W-27")]


@pytest.mark.spec("W-22")
@pytest.mark.parametrize("definitions", [OLD, NEW])
async def test_a_move_is_reported_once_whatever_the_status_can_hold(definitions: str) -> None:
    async with an_upgrade("wukong", definitions) as upgrade, upgrade.operating():
        before = await upgrade.client.get(VirtualMachineInstance, "movable-vm", SPACE)
        await upgrade.client.create(
            VirtualMachineInstanceMigration(
                metadata=ObjectMeta(name="drain", namespace=SPACE), spec=MigrationSpec(vmi_name="movable-vm")
            )
        )
        await upgrade.rest()
        after = await upgrade.client.get(VirtualMachineInstance, "movable-vm", SPACE)
        assert after.metadata.uid == before.metadata.uid
        assert after.status.node_name != before.status.node_name
        assert await upgrade.events() == ["Normal MigrationStarted movable", "Normal Migrated movable"]
        shown = upgrade.own()["vm.novasphere.dev/wukongs", "default/movable"]["status"]
        assert shown["nodeName"] == after.status.node_name
        assert [entry["type"] for entry in shown["conditions"] if entry["type"] == "Migrating"] == []
        upgrade.writes()
        await upgrade.rest()
        assert upgrade.writes() == []
