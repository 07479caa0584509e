"""CD-ROMs: what the machine starts from, and an installation from an ISO."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects import to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.children.virtualmachine import virtual_machine_for
from konverge.operators.wukong.effective_spec import source_of
from konverge.operators.wukong.kinds import DataVolume
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.specs import DISK, spec, wukong
from tests.operators.wukong.world import world

pytestmark = pytest.mark.spec("W-23")

ISO = {"name": "iso", "size": "4Gi", "image": "https://example.com/install.iso", "cdrom": True}
DRIVERS = {"name": "drivers", "existingClaim": "virtio-win", "cdrom": True, "bus": "scsi"}


def devices(*disks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """By name: the devices of a machine with these disks."""
    made = to_dict(virtual_machine_for(wukong(spec(disks=[*disks], **more)), strategy="Always"))
    return {entry.pop("name"): entry for entry in made["spec"]["template"]["spec"]["domain"]["devices"]["disks"]}


def test_an_empty_disk_is_tried_first_and_then_the_discs() -> None:
    for disks in ((DISK, ISO, DRIVERS), (ISO, DISK, DRIVERS)):
        made = devices(*disks)
        assert made["system"] == {"bootOrder": 1, "disk": {"bus": "virtio"}}
        assert made["iso"] == {"bootOrder": 2, "cdrom": {"bus": "sata"}}
        assert made["drivers"] == {"bootOrder": 3, "cdrom": {"bus": "scsi"}}


def test_a_machine_may_start_from_a_disc_in_any_case() -> None:
    made = devices(DISK, DRIVERS, {**ISO, "boot": True})
    assert {name: entry.get("bootOrder") for name, entry in made.items()} == {
        "iso": 1,
        "system": 2,
        "drivers": 3,
        "cloudinitdisk": None,
    }


def test_without_discs_only_the_boot_disk_has_a_place() -> None:
    made = devices(DISK, {**DISK, "name": "data", "boot": True})
    assert {name: entry.get("bootOrder") for name, entry in made.items()} == {
        "system": None,
        "data": 1,
        "cloudinitdisk": None,
    }


def test_an_image_of_the_machine_goes_to_the_disk_and_not_to_the_disc() -> None:
    image = "https://example.com/noble.img"
    made = wukong(spec(disks=[ISO, DISK], osImage=image)).spec
    urls = [source.http.url for disk in made.disks if (source := source_of(made, disk)) and source.http]
    assert urls == [ISO["image"], image]


@pytest.mark.virtual
async def test_an_installation_from_an_iso_and_the_end_of_the_disc() -> None:
    async with world(timings=QUICK) as w:
        system = {"name": "system", "size": "10Gi", "storageClassName": "fast"}
        await w.running(disks=[system, {**ISO, "storageClassName": "fast"}], guest="windows")
        made = await w.find(DataVolume, "web-iso")
        assert made is not None
        assert made.status.phase == "Succeeded"
        first = await w.vmi()
        await asyncio.sleep(30)
        await w.change(disks=[system])
        await w.until_condition("RestartRequired", "True", "PendingChanges")
        again = await w.vmi()
        assert first is not None
        assert again is not None
        assert again.metadata.uid == first.metadata.uid, "the disc goes with the next restart"
        await w.change(restartAt="installed")

        async def up_to_date() -> bool:
            return await w.condition("RestartRequired") == ("False", "UpToDate")

        await w.until(up_to_date, "a machine without the disc")
        await w.phase("Running")
        assert await w.find(PersistentVolumeClaim, "web-iso") is not None, "its claim stays with the machine"
