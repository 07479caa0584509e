"""Step 7 alone: disks that grow, what cannot be asked of one, and the marks on the claim of an import."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.operators.wukong.names import REQUESTED_SIZE
from tests.operators.wukong.specs import Spec, disk, spec
from tests.operators.wukong.stage import OWNER, UID, Sent, Stage, made
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


# ------------------------------------------------------------------ growing


@pytest.mark.spec("W-06")
async def test_a_claim_grows_to_the_size_that_is_asked_for() -> None:
    stage = await run(disk(storageClassName="fast", size="20Gi"), claim(), storage())
    (sent,) = stage.sent
    assert sent.body["spec"]["resources"]["requests"] == {"storage": "20Gi"}
    assert ("Normal", "DiskGrows") in stage.events
    same = await run(disk(storageClassName="fast", size="10240Mi"), claim(meta={"labels": {}}), storage())
    assert same.sent[0].body["spec"]["resources"]["requests"] == {"storage": "10Gi"}
    assert same.events == []
    pending = await run(disk(storageClassName="fast", size="20Gi"), claim("Pending", meta={"labels": {}}), storage())
    assert pending.sent[0].body["spec"]["resources"]["requests"] == {"storage": "10Gi"}, "not before it has a volume"
    unsaid = await run(spec(disks=[{"name": "system"}]), claim(meta={"labels": {}}), storage())
    assert unsaid.sent[0].body["spec"]["resources"]["requests"] == {"storage": "10Gi"}
    assert entry(unsaid).size == ""


@pytest.mark.spec("W-06")
async def test_the_claim_of_an_import_grows_by_the_share_that_cdi_gave_it() -> None:
    for objects in ((volume(), filled()), (filled(),)):
        stage = await run(disk(**IMAGE, size="20Gi"), *objects, storage(), status=known(phase="Succeeded", bound=True))
        (sent,) = stage.sent
        assert (sent.kind, sent.verb, sent.force) == ("PersistentVolumeClaim", "apply", True)
        assert sent.body["spec"] == {"resources": {"requests": {"storage": "22Gi"}}}
        metadata = sent.body["metadata"]
        assert metadata["annotations"] == {REQUESTED_SIZE: "20Gi", **MINE}
        assert metadata["uid"] == "uid-of-web-system"
        assert "ownerReferences" not in metadata, "CDI controls it"
        assert stage.events == [("Normal", "DiskGrows")]


@pytest.mark.spec("W-06")
@pytest.mark.parametrize(
    ("given", "live", "allowed", "reason"),
    [
        ({"size": "20Gi"}, {}, False, "DiskCannotGrow"),
        ({"size": "5Gi"}, {}, True, "DiskCannotShrink"),
        ({"size": "20Gi", "storageClassName": "slow"}, {}, True, "DiskClassChanged"),
    ],
)
async def test_what_cannot_be_asked_of_a_disk_is_refused_and_the_disk_goes_on(
    given: Spec, live: dict[str, Any], allowed: bool, reason: str
) -> None:
    for stage in (
        await run(disk(**({"storageClassName": "fast"} | given)), claim(), storage(grows=allowed)),
        await run(disk(**(IMAGE | given)), volume(), filled(), storage(grows=allowed)),
    ):
        assert (stage.sent, stage.reasons(), stage.events) == ([], [reason], [])
        assert (stage.state.trouble[0].condition, stage.state.trouble[0].failed) == ("SpecValid", True)
        assert stage.state.missing_disks == set()
        assert entry(stage).bound


@pytest.mark.spec("W-06")
async def test_what_a_disk_was_made_from_cannot_change() -> None:
    for other in ({"image": "https://x/other.img"}, {"image": None, "source": {"dataSource": {"name": "golden"}}}):
        given = {key: value for key, value in (IMAGE | other).items() if value is not None}
        stage = await run(disk(**given), volume(), filled(), storage())
        assert (stage.sent, stage.reasons()) == ([], ["DiskSourceChanged"])
        assert stage.state.trouble[0].failed
    golden = disk(source={"dataSource": {"name": "golden"}}, storageClassName="fast")
    fine = await run(golden, volume(given=golden), filled(), storage())
    assert (fine.sent, fine.reasons()) == ([], [])


@pytest.mark.spec("W-06")
async def test_a_larger_data_volume_is_not_asked_for_again() -> None:
    """Its spec never changes: what is applied to it has the storage that it was made with."""
    stage = await run(disk(**IMAGE, size="20Gi"), volume(meta={"labels": {}}), filled(), storage())
    volumes = [sent for sent in stage.sent if sent.kind == "DataVolume"]
    assert [sent.body["spec"]["storage"]["resources"]["requests"]["storage"] for sent in volumes] == ["10Gi"]


# ------------------------------------------------------------------ marks


def marks(stage: Stage) -> Sent | None:
    """What was written to the claim."""
    claims = [sent for sent in stage.sent if sent.kind == "PersistentVolumeClaim"]
    assert len(claims) <= 1
    return claims[0] if claims else None


async def test_the_claim_of_an_import_is_marked_once_it_is_bound() -> None:
    """CDI may delete the DataVolume one day: then the claim itself says whose it is, and what was asked for."""
    plain = filled(meta={"annotations": {}})
    sent = marks(await run(disk(**IMAGE), volume(), plain, storage()))
    assert sent is not None
    assert sent.body["metadata"]["annotations"] == {REQUESTED_SIZE: "10Gi", **MINE}
    assert sent.body["spec"] == {"resources": {"requests": {"storage": "11Gi"}}}
    for half in ({ADOPT: "x"}, {REQUESTED_SIZE: "10Gi"}):
        assert marks(await run(disk(**IMAGE), volume(), filled(meta={"annotations": half}), storage()))
    assert marks(await run(disk(**IMAGE), volume(), filled(), storage())) is None
    pending = made(PersistentVolumeClaim, "web-system", owners=[CDI], status={"phase": "Pending"},
                   spec={"storageClassName": "fast", "resources": {"requests": {"storage": "11Gi"}}})  # fmt: skip
    assert marks(await run(disk(**IMAGE), volume("Pending"), pending, storage())) is None


async def test_a_claim_that_no_controller_looks_after_gets_us_as_an_owner_unless_it_is_kept() -> None:
    bound = known(phase="Succeeded", bound=True)
    alone = filled(owners=())
    sent = marks(await run(disk(**IMAGE), alone, storage(), status=bound))
    assert sent is not None
    (owner,) = sent.body["metadata"]["ownerReferences"]
    assert (owner["uid"], owner.get("controller")) == (UID, None)
    assert marks(await run(disk(**IMAGE, deletePolicy="Retain"), alone, storage(), status=bound)) is None
    fields = {"f:metadata": {"f:ownerReferences": {f'k:{{"uid":"{UID}"}}': {}}}}
    written = {"manager": "wukong-operator", "operation": "Apply", "fieldsV1": fields}
    noted = {**MINE, REQUESTED_SIZE: "10Gi"}
    ours = filled(owners=[OWNER | {"controller": False}], meta={"annotations": noted, "managedFields": [written]})
    assert marks(await run(disk(**IMAGE), ours, storage(), status=bound)) is None
    given_up = marks(await run(disk(**IMAGE, deletePolicy="Retain"), ours, storage(), status=bound))
    assert given_up is not None
    assert "ownerReferences" not in given_up.body["metadata"]
    grown = marks(await run(disk(**IMAGE, size="20Gi"), alone, storage(), status=bound))
    assert grown is not None
    assert [owner["uid"] for owner in grown.body["metadata"]["ownerReferences"]] == [UID]


async def test_a_disk_without_a_size_is_marked_without_one() -> None:
    golden: Spec = spec(disks=[{"name": "system", "source": {"pvc": {"name": "golden"}}}])
    bound = known(phase="Succeeded", bound=True)
    sent = marks(await run(golden, filled(meta={"annotations": {}}), storage(), status=bound))
    assert sent is not None
    assert sent.body["metadata"]["annotations"] == MINE
    assert "resources" not in sent.body.get("spec", {})
    assert marks(await run(golden, filled(meta={"annotations": MINE}), storage(), status=bound)) is None


async def test_a_disk_in_trouble_of_two_sorts_reports_both() -> None:
    waiting = claim("Pending", spec={"storageClassName": "slow"})
    stage = await run(disk(storageClassName="fast"), waiting)
    assert stage.reasons() == ["DiskClassChanged", "ClaimPending"]
    assert stage.state.missing_disks == {"system"}
