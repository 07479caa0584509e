"""Machines of the first release under this one: they move, change, and go."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.kinds import VirtualMachineInstance, VirtualMachineInstanceMigration
from konverge.operators.wukong.kinds.migrations import MigrationSpec
from konverge.operators.wukong.resource import AnyWukong, SnapshotSpec, WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.spec_schedule import ScheduleSpec
from tests.operators.first_release.upgrade import NEW, OLD, SPACE, Upgrade, an_upgrade

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("W-27")]
NOBLE = "https://cloud-images.ubuntu.com/noble/current/noble-server-cloudimg-amd64.img"
GROWN = {"name": "data", "size": "30Gi"}
MACHINES = ("movable", "off", "precious", "smallest", "static", "storage", "ubuntu", "windows")


async def change(upgrade: Upgrade, name: str, **spec: Any) -> None:
    await upgrade.client.patch(AnyWukong, name, MergePatch({"spec": spec}), SPACE)


def status(upgrade: Upgrade, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = upgrade.own()["vm.novasphere.dev/wukongs", f"{SPACE}/{name}"]["status"]
    return shown


def guests(upgrade: Upgrade) -> dict[str, str]:
    """Name to uid: a guest that was restarted has another one."""
    return _of(upgrade, "kubevirt.io/virtualmachineinstances")


def _of(upgrade: Upgrade, table: str) -> dict[str, str]:
    return {key.removeprefix(f"{SPACE}/"): uid for (kind, key), uid in upgrade.uids().items() if kind == table}


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
        shown = status(upgrade, "movable")
        assert shown["nodeName"] == after.status.node_name
        assert [entry["type"] for entry in shown["conditions"] if entry["type"] == "Migrating"] == []
        upgrade.writes()
        await upgrade.rest()
        assert upgrade.writes() == []


@pytest.mark.parametrize("definitions", [OLD, NEW])
async def test_each_is_changed_switched_and_deleted(definitions: str) -> None:
    async with an_upgrade("wukong", definitions) as upgrade, upgrade.operating():
        before = guests(upgrade)
        await change(upgrade, "ubuntu", disks=[{"name": "system", "size": "20Gi", "boot": True, "image": NOBLE}, GROWN])
        await change(upgrade, "static", expose=[{"name": "ssh", "port": 22}])
        await change(upgrade, "off", powerState="Running")
        await change(upgrade, "smallest", powerState="Stopped")
        taken = WukongSnapshot(
            metadata=ObjectMeta(name="again", namespace=SPACE), spec=SnapshotSpec(wukong_name="static")
        )
        await upgrade.client.create(taken)
        await upgrade.client.delete(WukongSnapshot, "storage-second", SPACE)
        await upgrade.rest()
        assert [volume["size"] for volume in status(upgrade, "ubuntu")["volumes"]] == ["20Gi", "30Gi"]
        assert "static-ssh" in _of(upgrade, "/services")
        phases = {name: status(upgrade, name)["phase"] for name in MACHINES}
        assert phases == dict.fromkeys(MACHINES, "Running") | {"smallest": "Stopped"}
        assert before.items() - guests(upgrade).items() == {("smallest-vm", before["smallest-vm"])}, (
            "no other restarted"
        )
        kept = _of(upgrade, "snapshot.kubevirt.io/virtualmachinesnapshots")
        assert set(kept) == {"again", "precious-before-upgrade", "storage-first"}
        for name in MACHINES:
            await upgrade.client.delete(AnyWukong, name, SPACE)
        await upgrade.rest()
        assert set(_of(upgrade, "vm.novasphere.dev/wukongs")) == {"precious"}, "protected"
        await change(upgrade, "precious", deletionProtection=False)
        await upgrade.rest()
        assert _of(upgrade, "vm.novasphere.dev/wukongs") == guests(upgrade) == _of(upgrade, "/pods") == {}
        claims = set(_of(upgrade, "/persistentvolumeclaims"))
        assert claims == {"precious-system", "precious-data", "storage-data"}, "what is to be kept is there"


async def test_the_way_back_moves_and_restarts_nothing() -> None:
    async with an_upgrade("wukong", NEW) as upgrade:
        async with upgrade.operating():
            await change(upgrade, "movable", migrateAt="monday")
            schedule = ScheduleSpec(wukong_name="storage", schedule="@daily", immediate=True)
            meta = ObjectMeta(name="nightly", namespace=SPACE)
            await upgrade.client.create(WukongSnapshotSchedule(metadata=meta, spec=schedule))
            await upgrade.rest()
            assert status(upgrade, "movable")["lastMigration"] == "monday"
        snapshots = _of(upgrade, "vm.novasphere.dev/wukongsnapshots")
        assert len(snapshots) == 4
        running, node = guests(upgrade), status(upgrade, "movable")["nodeName"]
        await upgrade.put_back_definitions()
        shown = await upgrade.client.get(AnyWukong.resource, "movable", SPACE)
        assert "migrateAt" not in shown["spec"]
        assert not {"migration", "lastMigration"} & shown["status"].keys()
        for again in (False, True):
            if again:
                await upgrade.install_definitions()
            async with upgrade.operating():
                await upgrade.rest()
                upgrade.writes()
                await upgrade.rest()
                assert upgrade.writes() == []
            assert (guests(upgrade), status(upgrade, "movable")["nodeName"]) == (running, node)
            assert _of(upgrade, "vm.novasphere.dev/wukongsnapshots") == snapshots, "a schedule waits for its next time"
            assert {status(upgrade, name)["phase"] for name in MACHINES} == {"Running", "Stopped"}
