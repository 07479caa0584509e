"""Whether a disk can be copied just now, by what is there of the machine that has it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from konverge.objects import ObjectMeta
from konverge.objects.kinds.core_v1 import (
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    VolumeResourceRequirements,
)
from konverge.operators.wukong.kinds import DataVolume, VirtualMachineInstance
from konverge.operators.wukong.kinds.cdi import DataVolumeStatus
from konverge.operators.wukong.kinds.machines import VirtualMachineInstanceStatus
from konverge.operators.wukong.resource import AnyWukong
from konverge.operators.wukong.spec_disks import Disk, DiskSource, Nothing
from konverge.operators.wukong.status import VolumeStatus, WukongStatus
from konverge.operators.wukong.steps.clones import clone_trouble

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-24")]


def wukong(*volumes: VolumeStatus) -> AnyWukong:
    return AnyWukong(metadata=ObjectMeta(name="web"), status=WukongStatus(volumes=list(volumes)))


def claim(phase: str = "Bound", size: str = "11Gi", *, leaving: bool = False) -> PersistentVolumeClaim:
    meta = ObjectMeta(name="web-system", deletion_timestamp="2026-01-01T00:00:00Z" if leaving else None)
    resources = VolumeResourceRequirements(requests={"storage": size}) if size else None
    return PersistentVolumeClaim(
        metadata=meta,
        spec=PersistentVolumeClaimSpec(resources=resources),
        status=PersistentVolumeClaimStatus(phase=phase),
    )


def filled(phase: str) -> DataVolume:
    return DataVolume(metadata=ObjectMeta(name="web-system"), status=DataVolumeStatus(phase=phase))


def instance(phase: str) -> VirtualMachineInstance:
    return VirtualMachineInstance(metadata=ObjectMeta(name="web-vm"), status=VirtualMachineInstanceStatus(phase=phase))


ASKED = VolumeStatus(name="system", size="10Gi")


async def trouble(
    *objects: Any, size: str | None = "10Gi", clone_from: str | None = "web", served: bool = True, **disk: Any
) -> tuple[str, str, bool] | None:
    async def get(kind: type[Any], name: str) -> Any:
        return next((obj for obj in objects if type(obj) is kind and obj.metadata.name == name), None)

    ctx = SimpleNamespace(get=get, serves=lambda kind: served)
    state = SimpleNamespace(ctx=ctx, spec=SimpleNamespace(spec=SimpleNamespace(clone_from=clone_from)))
    found = await clone_trouble(state, Disk(name="system", size=size, **disk))  # type: ignore[arg-type]
    return None if found is None else (f"{found.condition} {found.reason}", found.message, found.failed)


async def test_a_disk_that_is_no_copy_has_no_such_trouble() -> None:
    assert await trouble(clone_from=None) is None
    assert await trouble(source=DiskSource(blank=Nothing())) is None


async def test_a_disk_that_is_bound_filled_and_not_in_use_can_be_copied() -> None:
    assert await trouble(wukong(ASKED), claim()) is None
    assert await trouble(wukong(ASKED), claim(), filled("Succeeded")) is None
    assert await trouble(wukong(ASKED), claim(), size=None) is None, "it gets the size of the other"


@pytest.mark.parametrize(
    ("objects", "missing"),
    [
        ([], "there is no Wukong web"),
        ([claim()], "there is no Wukong web"),
        ([wukong(ASKED)], "there is no claim web-system"),
        ([wukong(ASKED), claim(leaving=True)], "there is no claim web-system"),
    ],
)
async def test_what_is_to_be_copied_has_to_be_there(objects: list[Any], missing: str) -> None:
    assert await trouble(*objects) == (
        "VolumesBound CloneSourceNotFound",
        f"disk system is to be a copy: {missing}",
        False,
    )


@pytest.mark.parametrize("objects", [[claim("Pending")], [claim(), filled("ImportInProgress")], [claim(), filled("")]])
async def test_what_is_to_be_copied_has_to_be_filled(objects: list[Any]) -> None:
    message = "claim web-system, of which disk system is to be a copy, is not filled yet"
    assert await trouble(wukong(ASKED), *objects) == ("VolumesBound CloneSourceNotReady", message, False)
    if len(objects) == 2:
        assert await trouble(wukong(ASKED), *objects, served=False) is None, "there is no CDI: it is a plain claim"


@pytest.mark.parametrize(
    ("volumes", "size", "least"),
    [
        ([ASKED], "9Gi", "10Gi"),
        ([ASKED], "10Gi", None),
        ([ASKED], "10240Mi", None),
        ([VolumeStatus(name="data", size="1Gi"), ASKED], "9Gi", "10Gi"),
        ([], "10Gi", "11Gi"),
        ([VolumeStatus(name="system")], "10Gi", "11Gi"),
        ([VolumeStatus(name="data", size="1Gi")], "11Gi", None),
    ],
)
async def test_a_copy_is_not_smaller_than_what_was_asked_for(
    volumes: list[VolumeStatus], size: str, least: str | None
) -> None:
    found = await trouble(wukong(*volumes), claim(), size=size)
    message = f"disk system is a copy of one of {least}: it cannot be smaller"
    assert found == (None if least is None else ("SpecValid CloneTooSmall", message, True))


@pytest.mark.parametrize("phase", ["Running", "Scheduling", "", "Succeeded", "Failed"])
async def test_the_machine_that_has_it_has_to_be_off(phase: str) -> None:
    found = await trouble(wukong(ASKED), claim(), instance(phase))
    message = "disk system is copied once Wukong web is off: stop it"
    ended = phase in ("Succeeded", "Failed")
    assert found == (None if ended else ("VolumesBound CloneSourceInUse", message, False))
    assert await trouble(wukong(ASKED), claim(), instance(phase), served=False) is None
