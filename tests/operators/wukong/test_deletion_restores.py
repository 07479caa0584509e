"""A Wukong that is deleted while its machine is put back: what is waited for, and what is not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import ConfigMap, PersistentVolumeClaim
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.deletion import delete
from konverge.operators.wukong.kinds import VirtualMachineRestore, VirtualMachineSnapshot
from konverge.operators.wukong.kinds.snapshots import SnapshotVolumes
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.resource import Wukong
from konverge.sim.kubevirt import QUICK
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.specs import Spec, disk, spec
from tests.operators.wukong.stage import condition, controlled_by, vm
from tests.operators.wukong.test_deletion_step import GOING, MACHINE, SOON, claim, leaving, said
from tests.operators.wukong.test_restore_step import RESTORE, going_back
from tests.operators.wukong.test_snapshots import DISKS, take, until_phase
from tests.operators.wukong.test_snapshots_step import kept
from tests.operators.wukong.world import NAME, SPACE, SPEC, World, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-48")]

KEPT = disk(deletePolicy="Retain")
LOCKED = vm("Halted", restoreInProgress=RESTORE)
WAITS = f"VirtualMachineRestore {RESTORE} puts back disks to keep, and is waited for: delete it to give them up"


def with_disks(*names: str) -> VirtualMachineSnapshot:
    """What is gone back to."""
    taken = kept()
    taken.status.snapshot_volumes = SnapshotVolumes(included_volumes=list(names))
    return taken


def ours(**more: Any) -> VirtualMachineRestore:
    meta = {"labels": {LABEL: "web"}, **more.pop("meta", {})}
    return going_back(owners=[MACHINE], meta=meta, **more)


async def ended(*objects: Any, given: Spec = KEPT, live: Any = None, **more: Any) -> bool:
    """Whether the machine is deleted; else the restore is waited for, and nothing is written."""
    stage = leaving(given, *objects, **more)
    if live is not None:
        stage.answers["get", "VirtualMachineRestore"] = live
    assert await delete(stage.state) == SOON
    gone = [("VirtualMachine", "web-vm")]
    assert stage.deleted() in ([], gone)
    if not stage.deleted():
        assert stage.sent == []
        assert (stage.said("Deleting"), said(stage)) == (("True", "DeletingMachine"), WAITS)
    return stage.deleted() == gone


async def test_a_restore_of_disks_that_are_kept_is_waited_for() -> None:
    """KubeVirt deletes a claim before it makes it again; and the restore goes with its machine."""
    assert not await ended(LOCKED, ours(), kept())
    assert not await ended(LOCKED, going_back(owners=[MACHINE]), kept()), "one of a user"
    assert not await ended(LOCKED, kept(), live=ours()), "the cache does not show it yet"
    assert not await ended(LOCKED, kept(), live=ours(), without=[VirtualMachineRestore])
    assert not await ended(vm("Halted"), ours(), kept()), "it locks the machine next"
    going = ours(status={"conditions": [condition("Progressing", "False"), condition("Failure", "False")]})
    assert not await ended(LOCKED, going, kept())
    assert not await ended(LOCKED, ours(), kept(), given=disk(existingClaim="theirs"))
    assert not await ended(LOCKED, ours(), kept(), given=spec(deletePolicy="Retain"))
    assert not await ended(LOCKED, ours(), with_disks("system"))
    assert not await ended(LOCKED, ours(), with_disks("system", "data"), given=disk())
    assert not await ended(LOCKED, ours(), with_disks())


async def test_a_restore_without_disks_that_are_kept_is_not_waited_for() -> None:
    assert await ended(LOCKED, ours(), kept(), given=disk())
    assert await ended(LOCKED, ours(), with_disks("system"), given=disk())
    other = {"name": "data", "size": "1Gi", "deletePolicy": "Retain"}
    assert await ended(LOCKED, ours(), with_disks("system"), given=spec(disks=[*disk()["disks"], other]))
    assert await ended(LOCKED, ours(), with_disks(), given=disk())
    theirs = going_back(owners=[controlled_by("X", "x")], meta={"labels": {LABEL: "other"}})
    assert await ended(vm("Halted"), theirs, kept()), "of another machine"


async def test_a_restore_that_ends_no_more_holds_no_deletion_up() -> None:
    for state in (LOCKED, vm("Halted")):
        assert await ended(state, ours(status={"complete": True}), kept())
        assert await ended(state, ours(status={"conditions": [condition("Failure", "True")]}), kept())
        assert await ended(state, ours(meta=GOING), kept())
        assert await ended(state, ours()), "there is nothing that it could put back"
        assert await ended(state, kept()), "it was deleted"
    stage = leaving(KEPT, vm("Halted", restoreInProgress=RESTORE, meta=GOING), ours(), kept())
    assert await delete(stage.state) == SOON
    assert (stage.sent, said(stage)) == ([], "VirtualMachine web-vm is on its way out")


async def test_after_a_restore_claims_are_looked_for_at_the_server() -> None:
    """The cache need not show yet what the restore has just made."""
    for over in (ours(status={"complete": True}), ours(meta=GOING), ours()):
        stage = leaving(KEPT, vm("Halted"), over)
        stage.unseen.append(claim(owners=[MACHINE]))
        assert await delete(stage.state) == SOON
        assert [(sent.verb, sent.name) for sent in stage.sent] == [("patch", "web-system"), ("delete", "web-vm")]
    stage = leaving(KEPT, vm("Halted"))
    await delete(stage.state)
    assert [call.verb for call in stage.calls if not call.writes] == [], "without one there is no need to ask"
    stage = leaving(KEPT, vm("Halted", meta=GOING), ours(status={"complete": True}))
    await delete(stage.state)
    assert [call.verb for call in stage.calls if not call.writes] == [], "it goes already"


# ------------------------------------------------------------------ on the simulated cluster

DATA = DISKS[0] | {"name": "data"}


async def while_put_back(w: World, disks: list[dict[str, Any]], fault: str = "stuck") -> None:
    """Ask for its deletion when KubeVirt has locked the machine."""
    await w.running(disks=disks)
    await take(w, "before")
    await until_phase(w, "before", "Succeeded")
    faults = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data={"vmrestore": fault})
    await w.client.create(faults)
    await w.change(restoreFromSnapshot="before")

    async def begun() -> bool:
        machine = await w.vm()
        return machine is not None and bool(machine.status.restore_in_progress)

    await w.until(begun, "the beginning of a restore")
    await w.delete()


@pytest.mark.parametrize("image", [False, True], ids=["plain", "filled"])
async def test_a_disk_to_keep_is_put_back_before_the_machine_goes(image: bool) -> None:
    async with world(timings=QUICK) as w:
        disks = [SPEC["disks"][0] if image else DISKS[0], DATA]
        await while_put_back(w, [disks[0] | {"deletePolicy": "Retain"}, disks[1]])
        await w.until_condition("Deleting", "True", "DeletingMachine")
        await asyncio.sleep(60)
        assert f"VirtualMachineRestore {restore_name('web', 'before')} puts back" in await w.message("Deleting")
        await w.client.delete(ConfigMap, CONFIG_MAP, SPACE)
        await w.gone(Wukong, NAME)
        await asyncio.sleep(60)
        claims = await w.client.list(PersistentVolumeClaim, SPACE)
        assert [(item.metadata.name, item.metadata.owner_references[:1] == []) for item in claims] == [
            ("web-system", not image)
        ]


async def test_a_disk_that_is_just_being_made_again_is_kept() -> None:
    """KubeVirt has deleted its claim."""
    async with world(timings=QUICK) as w:
        await while_put_back(w, [DISKS[0] | {"deletePolicy": "Retain"}], fault="")
        await w.gone(Wukong, NAME)
        await asyncio.sleep(60)
        assert await w.vm() is None
        claim = await w.client.get(PersistentVolumeClaim, "web-system", SPACE)
        assert claim.metadata.owner_references == []
        assert claim.metadata.annotations["restore.kubevirt.io/name"] == restore_name("web", "before")


@pytest.mark.parametrize("what", [VirtualMachineRestore, VirtualMachineSnapshot])
async def test_a_restore_that_is_given_up_is_waited_for_no_longer(what: Any) -> None:
    async with world(timings=QUICK) as w:
        await while_put_back(w, [DISKS[0] | {"deletePolicy": "Retain"}])
        await asyncio.sleep(60)
        assert await w.vm() is not None
        name = "before" if what is VirtualMachineSnapshot else restore_name("web", "before")
        await w.client.delete(what, name, SPACE)
        await w.gone(Wukong, NAME)
        await asyncio.sleep(30)
        assert await w.vm() is None
