"""Machines that begin as a copy of another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Invalid
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.kinds import DataVolume
from konverge.sim.kubevirt import QUICK
from tests.operators.wukong.world import MODES_IN_TURN, SPEC, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-24")]

PLAIN = {"name": "system", "size": "10Gi", "storageClassName": "fast"}
EMPTY = {"name": "data", "size": "1Gi", "storageClassName": "fast", "source": {"blank": {}}}


async def versions(w: World) -> list[tuple[str, str]]:
    """Of the claims and the DataVolume of the machine that is copied."""
    claims = await w.client.list(PersistentVolumeClaim, "default")
    return [
        (item.metadata.uid, item.metadata.resource_version) for item in claims if item.metadata.name == "web-system"
    ]


@pytest.mark.parametrize("mode", MODES_IN_TURN)
async def test_a_copy_is_made_once_the_other_machine_is_off(mode: Any) -> None:
    async with world(timings=QUICK, cdi=mode) as w:
        await w.running(disks=SPEC["disks"])
        await asyncio.sleep(30)
        await w.create("copy", disks=[PLAIN, EMPTY], cloneFrom="web")
        await w.until_condition("VolumesBound", "False", "CloneSourceInUse", "copy")
        await asyncio.sleep(60)
        assert await w.find(DataVolume, "copy-system") is None, "nothing was made that would wait"
        assert await w.condition("Ready") == ("True", "VMRunning")
        await w.change(powerState="Stopped")
        await w.phase("Stopped")
        before = await versions(w)
        await w.phase("Running", "copy")
        copied = await w.client.get(DataVolume, "copy-system", "default")
        assert copied.spec.source is not None
        assert copied.spec.source.pvc is not None
        assert (copied.spec.source.pvc.namespace, copied.spec.source.pvc.name) == ("default", "web-system")
        assert await versions(w) == before, "the other machine's disk was only read"
        await w.delete()
        await w.gone(PersistentVolumeClaim, "web-system")
        await asyncio.sleep(60)
        assert await w.condition("Ready", "copy") == ("True", "VMRunning"), "the copy is its own"
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []


async def test_what_cannot_be_copied_says_why() -> None:
    async with world(timings=QUICK) as w:
        await w.create("early", disks=[PLAIN], cloneFrom="web")
        await w.until_condition("VolumesBound", "False", "CloneSourceNotFound", "early")
        assert "there is no Wukong web" in await w.message("VolumesBound", "early")
        await w.create(disks=SPEC["disks"], powerState="Stopped")
        await w.phase("Stopped")
        await w.create("small", disks=[PLAIN | {"size": "9Gi"}], cloneFrom="web")
        await w.until_condition("SpecValid", "False", "CloneTooSmall", "small")
        assert (await w.wukong("small")).status.phase == "Error"
        await w.create("more", disks=[PLAIN, PLAIN | {"name": "other"}], cloneFrom="web")
        await w.until_condition("VolumesBound", "False", "CloneSourceNotFound", "more")
        assert "there is no claim web-other" in await w.message("VolumesBound", "more")
        assert await w.find(DataVolume, "small-system") is None
        await w.phase("Running", "early")
        with pytest.raises(Invalid, match="cannot change"):
            await w.change("early", cloneFrom="small")
