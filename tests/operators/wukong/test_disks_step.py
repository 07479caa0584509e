"""Step 7 alone: what is sent about a disk, what its entry of the status says, and what the machine has to wait for."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.definitions import ANYTHING, Fields
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.status import VolumeStatus
from konverge.operators.wukong.steps.disks import _progress, disks
from konverge.operators.wukong.steps.machine import look
from tests.operators.wukong.specs import disk, spec
from tests.operators.wukong.stage import OWNER, UID, Stage, condition, controlled_by, made, vm
from tests.operators.wukong.staged_disks import (
    ADOPT,
    CDI,
    IMAGE,
    MINE,
    claim,
    entry,
    filled,
    known,
    run,
    storage,
    volume,
)

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-05")]


# ------------------------------------------------------------------ making one


async def test_a_disk_that_begins_empty_is_made_as_a_claim_of_ours_and_waited_for() -> None:
    stage = await run(disk(storageClassName="fast"))
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name, sent.force) == ("apply", "PersistentVolumeClaim", "web-system", False)
    assert [owner["uid"] for owner in sent.body["metadata"]["ownerReferences"]] == [UID]
    assert sent.body["metadata"]["annotations"] == MINE
    assert stage.reasons() == ["ClaimPending"]
    assert stage.state.missing_disks == {"system"}
    assert entry(stage) == VolumeStatus(
        name="system",
        pvc_name="web-system",
        size="10Gi",
        type="PersistentVolumeClaim",
        message="disk system is being made",
    )


async def test_a_disk_with_an_image_is_made_as_a_data_volume() -> None:
    stage = await run(disk(**IMAGE))
    assert [(sent.kind, sent.name) for sent in stage.sent] == [("DataVolume", "web-system")]
    assert stage.sent[0].body["spec"]["source"] == {"http": {"url": "https://x/y.img"}}
    assert (entry(stage).type, entry(stage).phase) == ("DataVolume", "")
    assert stage.reasons() == ["ClaimPending"]


async def test_a_disk_that_is_kept_is_made_without_an_owner_and_never_over_that_of_others() -> None:
    for given in (disk(deletePolicy="Retain"), disk(deletePolicy="Retain", **IMAGE)):
        (sent,) = (await run(given)).sent
        assert "ownerReferences" not in sent.body["metadata"]
        assert "uid" not in sent.body["metadata"]
        assert not sent.force, "what another client has made in the meantime is a conflict"
    live = claim(owners=(), meta={"annotations": MINE}, spec={"volumeMode": "Filesystem"})
    (sent,) = (await run(disk(deletePolicy="Retain", size="20Gi"), live, storage())).sent
    assert (sent.body["metadata"]["uid"], sent.force) == ("uid-of-web-system", True)


async def test_a_disk_that_is_there_is_not_written_again() -> None:
    stage = await run(disk(storageClassName="fast"), claim(), storage())
    assert (stage.sent, stage.reasons(), stage.state.waiting) == ([], [], [])
    assert stage.state.missing_disks == set()
    assert entry(stage) == VolumeStatus(
        name="system",
        pvc_name="web-system",
        bound=True,
        size="10Gi",
        type="PersistentVolumeClaim",
        phase="Bound",
        requested="10Gi",
        capacity="10Gi",
    )


async def test_how_it_is_used_was_settled_when_it_was_made() -> None:
    """Modes of a claim cannot change: what is applied has those of the live one, or none."""
    live = claim(spec={"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}, meta={"labels": {}})
    (sent,) = (await run(disk(accessModes=["ReadWriteOnce"], volumeMode="Filesystem"), live, storage())).sent
    assert (sent.body["spec"]["accessModes"], sent.body["spec"]["volumeMode"]) == (["ReadWriteMany"], "Block")
    (sent,) = (await run(disk(), live, storage())).sent
    assert "volumeMode" not in sent.body["spec"]


async def test_a_claim_that_goes_is_not_written_to() -> None:
    going = claim(meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {}})
    stage = await run(disk(size="20Gi"), going, storage(), status=known(phase="Bound", bound=True))
    assert stage.sent == []
    assert stage.reasons() == ["ClaimDeleting"]
    assert entry(stage).bound, "that its data was there is not forgotten"
    assert not entry(await run(disk(), going, storage(), status=known(phase="Pending"))).bound
    assert not entry(await run(disk(), going, storage())).bound
    pending = await run(disk(), claim("Pending"), storage(), status=known(phase="Bound", bound=True))
    assert not entry(pending).bound, "only of one that goes"


async def test_a_data_volume_that_goes_is_not_written_to() -> None:
    going = volume(meta={"deletionTimestamp": "2026-01-01T00:00:00Z", "labels": {}})
    assert (await run(disk(**IMAGE), going)).sent == []
    (sent,) = (await run(disk(**IMAGE), volume(meta={"labels": {}}))).sent
    assert sent.kind == "DataVolume"


async def test_without_cdi_nothing_is_filled_but_what_was_filled_is_there() -> None:
    stage = await run(disk(**IMAGE), without=[DataVolume])
    assert (stage.sent, stage.reasons()) == ([], ["CDIMissing"])
    assert entry(stage).message == "disk system: the cluster has no CDI to fill it: install it, or leave the image out"
    assert not entry(stage).bound
    assert (await run(disk(), without=[DataVolume])).applied("PersistentVolumeClaim") == ["web-system"]
    later = await run(
        disk(**IMAGE), filled(owners=[OWNER]), storage(), without=[DataVolume], status=known(phase="Bound", bound=True)
    )
    assert (later.reasons(), entry(later).bound) == ([], True)


async def test_the_entry_of_an_import_has_its_progress_and_its_restarts() -> None:
    importing = volume("ImportInProgress", status={"progress": "40.00%", "restartCount": 2})
    shown = entry(await run(disk(**IMAGE), importing, filled(), storage()))
    assert (shown.phase, shown.progress, shown.restarts) == ("ImportInProgress", "40.00%", 2)
    assert (shown.requested, shown.capacity, shown.bound) == ("11Gi", "11Gi", False)
    assert shown.message == "disk system: ImportInProgress"
    early = await run(disk(**IMAGE), volume("ImportScheduled"))
    assert (early.reasons(), entry(early).phase, entry(early).requested) == (["Importing"], "ImportScheduled", "")


@pytest.mark.parametrize(
    ("before", "now", "shown"),
    [
        (None, "3.0%", "3.0%"),
        (("Importing", "1.0%"), "3.0%", "1.0%"),
        (("Importing", "1.0%"), "5.9%", "1.0%"),
        (("Importing", "1.0%"), "6.0%", "6.0%"),
        (("Importing", "1.0%"), "1.00%", "1.0%"),
        (("Importing", "1.0%"), "1.5%", "1.0%"),
        (("Importing", "7.0%"), "3.0%", "3.0%"),
        (("Other", "1.0%"), "3.0%", "3.0%"),
        (("Importing", "N/A"), "3.0%", "3.0%"),
        (("Importing", "1.0%"), "N/A", "N/A"),
        (("Importing", "1.0%"), "", ""),
    ],
)
def test_progress_is_written_in_steps_of_five_percent(before: Any, now: str, shown: str) -> None:
    last = None if before is None else VolumeStatus(name="system", phase=before[0], progress=before[1])
    assert _progress(last, "Importing", now) == shown


async def test_a_disk_that_waits_for_the_machine_does_not_hold_it_up() -> None:
    stage = await run(disk(storageClassName="fast"), claim("Pending"), storage(mode="WaitForFirstConsumer"))
    assert stage.state.waiting == ["disk system waits for its first consumer"]
    assert (stage.reasons(), stage.state.missing_disks) == ([], set())
    assert entry(stage).message == "disk system waits for its first consumer"


async def test_an_import_that_restarts_often_counts_as_failing() -> None:
    for restarts, reason in ((2, "Importing"), (3, "ImportFailing")):
        failing = volume("ImportInProgress", status={"restartCount": restarts})
        assert (await run(disk(**IMAGE), failing, filled(), storage())).reasons() == [reason]


async def test_a_restore_that_goes_on_has_the_disks_to_itself() -> None:
    before = known(phase="Bound", bound=True)
    for stage in (
        Stage(disk(), status=before),
        Stage(disk(), vm(restoreInProgress="back"), status=before),
    ):
        await look(stage.state)
        stage.state.restoring = "" if stage.state.vm is not None else "back"
        await disks(stage.state)
        assert (stage.sent, stage.reasons()) == ([], [])
        assert entry(stage).phase == "Bound"
    assert (await run(disk(), vm(), status=known())).sent != []


# ------------------------------------------------------------------ one that was there before


async def test_an_existing_claim_is_used_as_it_is() -> None:
    given = spec(disks=[{"name": "system", "existingClaim": "old"}])
    missing = await run(given)
    assert (missing.sent, missing.reasons()) == ([], ["ClaimNotFound"])
    assert (entry(missing).pvc_name, entry(missing).type) == ("old", "Existing")
    for phase, reasons in (("Bound", []), ("Pending", ["ClaimPending"]), ("Lost", ["ClaimLost"])):
        old = made(PersistentVolumeClaim, "old", owners=(), status={"phase": phase})
        stage = await run(given, old)
        assert (stage.sent, stage.reasons(), entry(stage).phase) == ([], reasons, phase)
    lazy = made(
        PersistentVolumeClaim,
        "old",
        owners=(),
        spec={"storageClassName": "fast"},
        status={"phase": "Pending"},
    )
    stage = await run(given, lazy, storage(mode="WaitForFirstConsumer"))
    assert (stage.reasons(), stage.state.waiting) == ([], ["disk system waits for its first consumer"])


EXISTING = spec(disks=[{"name": "system", "existingClaim": "old"}])
BESIDE = controlled_by("Thing", "x") | {"controller": False}


def old(*owners: dict[str, Any]) -> PersistentVolumeClaim:
    return made(PersistentVolumeClaim, "old", owners=owners, status={"phase": "Bound"})


@pytest.mark.spec("W-47")
async def test_an_existing_claim_goes_neither_with_the_machine_nor_with_us() -> None:
    """A restore has made the machine its owner, or it was a disk of ours before: of a controller or not."""
    machine = controlled_by("VirtualMachine", "web-vm")
    for owner in (machine, OWNER, OWNER | {"controller": False}):
        stage = await run(EXISTING, vm(), old(owner, BESIDE))
        (sent,) = stage.sent
        assert (sent.verb, sent.kind, sent.name) == ("patch", "PersistentVolumeClaim", "old")
        assert [entry["name"] for entry in sent.body["metadata"]["ownerReferences"]] == ["x"]
        assert sent.body["metadata"]["resourceVersion"] == "7"
        assert stage.state.again == (owner is machine)
        assert (stage.reasons(), entry(stage).type, entry(stage).phase) == ([], "Existing", "Bound")
    others = controlled_by("Wukong", "web", uid="another"), controlled_by("VirtualMachine", "x")
    for owner in (*others, machine | {"controller": False}, BESIDE):
        assert (await run(EXISTING, vm(), old(owner))).sent == []
    assert (await run(EXISTING, old(machine))).sent == [], "there is no machine of ours"


@pytest.mark.spec("W-47")
async def test_an_existing_claim_of_a_data_volume_of_ours_does_not_go_with_that() -> None:
    by = controlled_by("DataVolume", "old")
    stage = await run(EXISTING, old(by), made(DataVolume, "old", owners=[OWNER, BESIDE]))
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name) == ("patch", "DataVolume", "old")
    assert [entry["name"] for entry in sent.body["metadata"]["ownerReferences"]] == ["x"]
    ours = made(DataVolume, "old")
    assert (await run(EXISTING, old(by | {"uid": "another"}), ours)).sent == []
    assert (await run(EXISTING, old(controlled_by("Thing", "old")), ours)).sent == []
    assert (await run(EXISTING, old(), ours)).sent == []
    assert (await run(EXISTING, old(by), made(DataVolume, "old", owners=[BESIDE]))).sent == []
    assert (await run(EXISTING, old(by))).sent == [], "it is gone"
    stage = await run(EXISTING, old(by), without=[DataVolume])
    assert stage.sent == []


async def test_a_claim_whose_data_is_gone_is_a_loss_until_there_is_one_again() -> None:
    for before in (known(phase="Bound", bound=True), known(phase="Lost")):
        stage = await run(disk(**IMAGE), status=before)
        assert (stage.sent, stage.reasons(), entry(stage).phase) == ([], ["ClaimLost"], "Lost")
        assert not entry(stage).bound
        assert stage.state.trouble[0].failed
    for before in (known(phase="Pending"), known(bound=True), {}):
        assert (await run(disk(**IMAGE), status=before)).applied("DataVolume") == ["web-system"], before
    lost = await run(disk(storageClassName="fast"), claim("Lost"), storage())
    assert (lost.reasons(), entry(lost).phase) == (["ClaimLost"], "Lost")
    again = await run(disk(storageClassName="fast"), claim(), storage(), status=known(phase="Lost"))
    assert (again.reasons(), entry(again).phase) == ([], "Bound")
    of_another = {"volumes": [{"name": "data", "phase": "Bound", "bound": True}]}
    assert (await run(disk(), status=of_another)).applied("PersistentVolumeClaim") == ["web-system"]


async def test_a_claim_whose_data_volume_was_deleted_before_it_was_filled_is_no_disk() -> None:
    stage = await run(disk(**IMAGE), filled(), storage())
    assert (stage.sent, stage.reasons()) == ([], ["ClaimPending"])
    assert not stage.state.trouble[0].failed
    assert entry(stage).message == "disk system: its DataVolume is gone and is being recreated"
    assert (await run(disk(**IMAGE), filled(), storage(), status=known(phase="Bound"))).reasons() == ["ClaimPending"]
    ours = await run(disk(**IMAGE), filled(owners=[OWNER]), storage())
    assert (ours.reasons(), entry(ours).bound) == ([], True), "it is no claim of CDI's"
    tidied = await run(disk(**IMAGE), filled(), storage(), status=known(phase="Succeeded", bound=True))
    assert (tidied.sent, tidied.reasons()) == ([], [])
    with_one = await run(disk(**IMAGE), volume(), filled(), storage())
    assert (with_one.sent, with_one.reasons()) == ([], [])


# ------------------------------------------------------------------ of others


@pytest.mark.spec("W-16")
@pytest.mark.parametrize(
    ("live", "before", "ours"),
    [
        (claim(), {}, True),
        (claim(owners=()), {}, True),
        (claim(owners=(), meta={"annotations": {}}), {}, False),
        (claim(owners=(), meta={"annotations": {ADOPT: "Wukong/other"}}), {}, False),
        (claim(owners=[controlled_by("Wukong", "web", "another-uid")]), {}, False),
        (claim(owners=[CDI]), {}, False),
        (claim(owners=(), meta={"annotations": {}}), known(phase="Bound"), True),
        (claim(owners=(), meta={"annotations": {}, "labels": {LABEL: "other"}}), known(phase="Bound"), False),
        (claim(owners=(), meta={"annotations": {}, "labels": {}}), known(phase="Bound"), False),
        (claim(owners=[controlled_by("X", "x")], meta={"annotations": {}}), known(phase="Bound"), False),
    ],
)
async def test_whose_a_claim_is(live: Any, before: dict[str, Any], ours: bool) -> None:
    stage = await run(disk(storageClassName="fast", size="20Gi"), live, storage(), vm(), status=before)
    assert [sent.kind for sent in stage.sent] == (["PersistentVolumeClaim"] if ours else [])
    assert stage.reasons() == ([] if ours else ["ClaimNotOurs"])
    assert entry(stage).phase == ("Bound" if ours else ""), "nothing is on record about what is not ours"
    assert entry(stage).bound == ours
    assert stage.state.failed is None or stage.state.failed.reason == "ClaimNotOurs"
    assert (stage.state.failed is None) == ours


@pytest.mark.spec("W-16")
async def test_whose_a_data_volume_and_its_claim_are() -> None:
    foreign = volume(owners=[controlled_by("X", "x")])
    stage = await run(disk(**IMAGE), foreign, filled(), storage())
    assert (stage.sent, stage.reasons()) == ([], ["ClaimNotOurs"])
    assert "DataVolume web-system" in entry(stage).message
    assert entry(stage).phase == ""
    empty = await run(disk(storageClassName="fast"), foreign, claim(), storage())
    assert (empty.reasons(), entry(empty).phase) == ([], "Bound"), "a disk that begins empty has none"
    of_another = filled(owners=[controlled_by("DataVolume", "web-system", "another-uid")])
    stage = await run(disk(**IMAGE), volume(), of_another, storage())
    assert (stage.sent, stage.reasons()) == ([], ["ClaimNotOurs"])
    assert "PersistentVolumeClaim web-system" in entry(stage).message
    elsewhere = filled(owners=[controlled_by("DataVolume", "other")])
    bound = known(phase="Succeeded", bound=True)
    assert (await run(disk(**IMAGE), elsewhere, storage(), status=bound)).reasons() == ["ClaimNotOurs"]
    of_a_pod = filled(owners=[controlled_by("Pod", "web-system")])
    assert (await run(disk(**IMAGE), of_a_pod, storage(), status=bound)).reasons() == ["ClaimNotOurs"]


async def test_a_claim_that_a_restore_gave_to_the_machine_is_taken_back() -> None:
    bystander = controlled_by("Thing", "x") | {"controller": False}
    given = claim(owners=[controlled_by("VirtualMachine", "web-vm"), bystander])
    stage = await run(disk(storageClassName="fast"), given, storage(), vm())
    (patch,) = stage.sent
    assert (patch.verb, patch.kind, patch.name) == ("patch", "PersistentVolumeClaim", "web-system")
    assert patch.body["metadata"]["resourceVersion"] == "7"
    assert [owner["name"] for owner in patch.body["metadata"]["ownerReferences"]] == ["x"]
    assert (stage.reasons(), entry(stage).bound) == ([], True)
    assert stage.state.again, "the rest comes when the cache shows it without that owner"
    other = claim(owners=[controlled_by("VirtualMachine", "other-vm")])
    for objects in ((other, vm()), (given,)):
        stage = await run(disk(storageClassName="fast"), *objects, storage())
        assert (stage.sent, stage.reasons()) == ([], ["ClaimNotOurs"])


@pytest.mark.spec("W-17")
async def test_an_import_that_cdi_cannot_do_is_not_begun() -> None:
    given = disk(**IMAGE, checksum="md5:aa")
    stage = Stage(given)
    http = Fields(names={"url": Fields()})
    source = Fields(names={"http": http})
    spec = Fields(names={"source": source, "storage": ANYTHING})
    stage.state.definitions._known["datavolumes.cdi.kubevirt.io"] = (1e9, Fields(names={"spec": spec}))
    await disks(stage.state)
    assert (stage.sent, stage.reasons()) == ([], ["CDITooOld"])
    (trouble,) = stage.state.trouble
    assert (trouble.condition, trouble.failed) == ("VolumesBound", True)
    assert "spec.source.http.checksum (CDI 1.65 has it)" in trouble.message


async def test_a_volume_whose_claim_is_lost_says_so_and_keeps_its_own_phase() -> None:
    lost = volume("Pending", status={"conditions": [condition("Bound", "False", "ClaimLost")]})
    stage = await run(disk(**IMAGE), lost, filled(), storage())
    assert (stage.reasons(), entry(stage).phase) == (["ClaimLost"], "Pending")


async def test_a_claim_that_was_not_looked_at_yet_has_no_phase() -> None:
    stage = await run(disk(storageClassName="fast"), claim(None), storage())
    assert (stage.reasons(), entry(stage).phase) == (["ClaimPending"], "")
