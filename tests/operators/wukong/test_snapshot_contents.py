"""What a snapshot contains is reported, and above all what it does not."""

from __future__ import annotations

import pytest

from konverge.objects import from_dict
from konverge.operators.wukong.kinds import VirtualMachineSnapshot
from konverge.operators.wukong.resource import SnapshotSpec, WukongSnapshot
from konverge.operators.wukong.snapshots import note_contents
from konverge.operators.wukong.status import SnapshotStatus
from konverge.runtime import find_condition
from tests.operators.wukong.world import NAME, SPACE, world

pytestmark = pytest.mark.spec("W-13")


def test_disks_that_are_left_out_are_named() -> None:
    volumes = {"includedVolumes": ["system"], "excludedVolumes": ["scratch", "cloudinitdisk"]}
    reported = {"status": {"snapshotVolumes": volumes, "indications": ["Online", "NoGuestAgent"]}}
    status = SnapshotStatus()
    note_contents(status, from_dict(VirtualMachineSnapshot, reported).status)
    assert (status.volumes, status.excluded_volumes) == (["system"], ["scratch"])
    assert status.indications == ["NoGuestAgent", "Online"]


def test_an_older_kubevirt_tells_nothing() -> None:
    status = SnapshotStatus()
    note_contents(status, from_dict(VirtualMachineSnapshot, {"status": {"indications": None}}).status)
    assert (status.volumes, status.excluded_volumes, status.indications) == ([], [], [])


@pytest.mark.virtual
async def test_a_whole_one_says_so() -> None:
    async with world() as it:
        await it.running()
        made = WukongSnapshot(spec=SnapshotSpec(wukong_name=NAME))
        made.metadata.name, made.metadata.namespace = "one", SPACE
        await it.client.create(made)

        async def taken() -> bool:
            return (await it.client.get(WukongSnapshot, "one", SPACE)).status.phase == "Succeeded"

        await it.until(taken, "the snapshot")
        status = (await it.client.get(WukongSnapshot, "one", SPACE)).status
    assert (status.volumes, status.excluded_volumes) == (["system"], [])
    assert "Online" in status.indications
    ready = find_condition(status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.message) == ("True", "")
