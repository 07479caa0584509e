"""One reconcile of a WukongSnapshot without a cluster: what is sent, and what its status says."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import BadRequest, Forbidden, Invalid, NotFound
from konverge.objects import to_dict
from konverge.objects.meta import Status, StatusCause, StatusDetails
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineSnapshot
from konverge.operators.wukong.kinds.snapshots import SnapshotError
from konverge.operators.wukong.names import labels
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.operators.wukong.snapshots import SnapshotReconciler
from konverge.runtime import Result
from tests.operators.wukong.stage import OLD, SPACE, Stage, condition, controlled_by, made, refused, vm

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-13")]


def kept(
    *,
    ready: bool = True,
    owner: str = "back",
    of: str = "uid-of-web-vm",
    uid: str = "uid-of-data",
    at: str = OLD,
    **meta: Any,
) -> VirtualMachineSnapshot:
    owners = [controlled_by("WukongSnapshot", owner)]
    status = {"readyToUse": ready, "sourceUID": of, "creationTime": at}
    source = {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}}
    return made(VirtualMachineSnapshot, "back", owners=owners, spec=source, status=status,
                meta={"uid": uid, **meta})  # fmt: skip


async def take(
    *objects: Any, status: dict[str, Any] | None = None, error: Any = None, live: Any = None, **more: Any
) -> Any:
    """One reconcile of a WukongSnapshot: the stage, its status, the result. `live` is what is asked of the server."""
    meta = {"generation": 4, **more.pop("meta", {})}
    snapshot = made(WukongSnapshot, "back", owners=(), spec={"wukongName": "web"}, status=status or {}, meta=meta)
    stage = Stage(None, snapshot, *objects, **more)
    if error is not None:
        stage.errors["patch", "VirtualMachineSnapshot"] = error
    if isinstance(live, Exception):
        stage.errors["get", "VirtualMachineSnapshot"] = live
    elif live is not None:
        stage.answers["get", "VirtualMachineSnapshot"] = live
    ctx = stage.context(snapshot)
    result = await SnapshotReconciler(Options()).reconcile(ctx)
    return stage, ctx.obj.status, result


def unready(error: str = "", **more: Any) -> VirtualMachineSnapshot:
    """One whose VolumeSnapshot was deleted: its phase stays Succeeded."""
    snapshot = kept(ready=False, **more)
    snapshot.status.phase, snapshot.status.error = "Succeeded", SnapshotError(message=error) if error else None
    return snapshot


def ready(status: Any) -> tuple[str, str, str, int | None]:
    (condition,) = status.conditions
    return condition.status, condition.reason, condition.message, condition.observed_generation


SOON, LATER = Result(requeue_after=10.0), Result(requeue_after=30.0)


async def test_a_snapshot_is_asked_for_by_its_name() -> None:
    stage, status, result = await take(vm())
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name, sent.namespace) == ("apply", "VirtualMachineSnapshot", "back", SPACE)
    assert sent.body["spec"] == {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}}
    assert (status.phase, status.snapshot_name, status.error, result) == ("Creating", "back", "", SOON)
    assert (ready(status), status.observed_generation) == (("False", "InProgress", "", 4), 4)
    assert stage.events == [("Normal", "SnapshotStarted")]
    assert [call.subresource for call in stage.calls] == ["", "status"]


TAKEN: dict[str, Any] = {
    "phase": "Succeeded",
    "observedGeneration": 4,
    "conditions": [condition("Ready", "True", "Succeeded") | {"observedGeneration": 4}],
}


async def test_what_was_taken_and_what_goes_is_left_as_it_is() -> None:
    whole = kept()
    whole.metadata.labels = labels("web")
    for objects, more in (
        ((vm(), whole), {"status": TAKEN}),
        ((vm(),), {"status": TAKEN, "without": [VirtualMachineSnapshot]}),
        ((vm(),), {"meta": {"deletionTimestamp": OLD, "finalizers": ["x"]}}),
    ):
        stage, status, result = await take(*objects, **more)
        assert (stage.sent, stage.events, result) == ([], [], None)
        assert status.phase == more.get("status", {}).get("phase", "")


@pytest.mark.spec("W-41")
@pytest.mark.parametrize(
    ("objects", "how"),
    [
        ((), "is not there any more"),
        ((kept(owner="another"),), "belongs to another owner now, or to none"),
        ((unready("VolumeSnapshot is missing"),), "has lost its contents: VolumeSnapshot is missing"),
        ((unready(),), "is not ready to use any more"),
    ],
)
async def test_what_was_taken_and_is_gone_is_said_and_not_taken_again(objects: tuple[Any, ...], how: str) -> None:
    stage, status, result = await take(vm(), *objects, status=TAKEN)
    error = f"VirtualMachineSnapshot back, which was taken, {how}"
    assert (status.phase, status.error, result) == ("Failed", error, None)
    assert ready(status) == ("False", "SnapshotLost", error, 4)
    assert stage.events == [("Warning", "SnapshotLost")]
    lost = {"phase": "Failed", "error": error, "conditions": [condition("Ready", "False", "SnapshotLost")]}
    stage, _, result = await take(vm(), *objects, status=lost)
    assert (stage.calls, stage.events, result) == ([], [], None)


@pytest.mark.spec("W-41")
@pytest.mark.parametrize("objects", [(), (kept(owner="another"),), (kept(ready=False),)])
@pytest.mark.parametrize("live", [kept(), refused(NotFound, kind="")], ids=["there", "kind not served"])
async def test_an_old_cache_and_a_definition_that_is_away_lose_nothing(objects: tuple[Any, ...], live: Any) -> None:
    stage, status, _ = await take(vm(), *objects, status=TAKEN, live=live)
    assert (status.phase, stage.events) == ("Succeeded", [])


LOST: dict[str, Any] = {
    "phase": "Failed",
    "error": "belongs to another owner now, or to none",
    "snapshotName": "back",
    "snapshotUID": "uid-of-data",
    "volumes": ["system"],
    "observedGeneration": 4,
    "conditions": [condition("Ready", "False", "SnapshotLost") | {"observedGeneration": 4}],
}
LEAVING: dict[str, Any] = {"deletionTimestamp": OLD, "finalizers": ["x"]}
NOT_BACK = {
    "of another": kept(owner="another"),
    "made again": kept(uid="of another moment"),
    "not ready": kept(ready=False),
    "deleted soon": kept(**LEAVING),
}


def done(stage: Stage) -> list[tuple[str, str, str]]:
    return [(call.verb, call.resource.kind if call.resource else "", call.subresource) for call in stage.calls]


@pytest.mark.spec("W-41")
async def test_what_others_took_away_and_gave_back_is_what_it_was() -> None:
    stage, status, result = await take(vm(), kept(), status=LOST)
    assert (status.phase, status.error, status.volumes, result) == ("Succeeded", "", ["system"], None)
    assert ready(status) == ("True", "Succeeded", "", 4)
    assert stage.events == [("Normal", "SnapshotFound")]
    assert done(stage) == [
        ("get", "VirtualMachineSnapshot", ""),
        ("patch", "VirtualMachineSnapshot", ""),  # its labels
        ("patch", "WukongSnapshot", "status"),
    ]


@pytest.mark.spec("W-41")
@pytest.mark.parametrize("shown", [*NOT_BACK.values(), None], ids=[*NOT_BACK, "gone"])
async def test_a_snapshot_that_is_lost_rests(shown: Any) -> None:
    """Without a request, even where the server has what the cache does not show yet: an event says that."""
    stage, status, result = await take(vm(), *([] if shown is None else [shown]), status=LOST, live=kept())
    assert (stage.calls, stage.events, status.phase, result) == ([], [], "Failed", None)


@pytest.mark.spec("W-41")
async def test_what_is_not_known_to_be_the_same_stays_lost() -> None:
    for status, more in ((LOST | {"snapshotUID": ""}, {}), (LOST, {"without": [VirtualMachineSnapshot]})):
        stage, found, result = await take(vm(), kept(), status=status, **more)
        assert (stage.calls, stage.events, found.phase, result) == ([], [], "Failed", None)


@pytest.mark.spec("W-41")
@pytest.mark.parametrize(
    "live",
    [*NOT_BACK.values(), refused(NotFound, kind="VirtualMachineSnapshot"), refused(NotFound, kind="")],
    ids=[*NOT_BACK, "gone", "kind not served"],
)
async def test_an_old_cache_brings_nothing_back(live: Any) -> None:
    stage, status, result = await take(vm(), kept(), status=LOST, live=live)
    assert (done(stage), stage.events, result) == ([("get", "VirtualMachineSnapshot", "")], [], None)
    assert (status.phase, ready(status)[1]) == ("Failed", "SnapshotLost")


@pytest.mark.spec("W-41")
async def test_what_others_made_again_under_the_name_is_not_what_was_taken() -> None:
    again, status = kept(uid="of another moment"), TAKEN | {"snapshotUID": "uid-of-data"}
    stage, found, _ = await take(vm(), again, status=status)
    assert found.error == "VirtualMachineSnapshot back, which was taken, was made again by others"
    assert (found.phase, ready(found)[1], found.snapshot_uid) == ("Failed", "SnapshotLost", "uid-of-data")
    assert (stage.sent, stage.events) == ([], [("Warning", "SnapshotLost")])
    stage, found, _ = await take(vm(), again, status=status, live=kept())
    assert (found.phase, stage.events) == ("Succeeded", []), "an old cache"


@pytest.mark.spec("W-41")
async def test_what_an_earlier_version_took_is_recognized_when_it_is_lost_by_its_moment() -> None:
    """Earlier versions noted no uid. While nothing is wrong none is written: earlier definitions would not keep it."""
    noted = TAKEN | {"creationTime": OLD}
    stage, _, _ = await take(vm(), kept(labels=labels("web"), at=OLD), status=noted)
    assert stage.calls == []
    for status, at, uid in (
        (noted, OLD, "uid-of-data"),
        (noted, "2020-01-01T00:00:01Z", ""),
        (TAKEN, "", ""),
        (noted | {"snapshotUID": "uid of the first"}, OLD, "uid of the first"),
    ):
        _, found, _ = await take(vm(), kept(owner="another", at=at), status=status)
        assert (found.phase, ready(found)[1], found.snapshot_uid) == ("Failed", "SnapshotLost", uid)


@pytest.mark.spec("W-43")
async def test_what_is_without_its_contents_for_a_moment_is_what_it_was() -> None:
    """Also what an earlier version took, which noted no uid."""
    for noted in (TAKEN | {"snapshotUID": "uid-of-data"}, TAKEN | {"creationTime": OLD}):
        stage, status, _ = await take(vm(), unready("gone"), status=noted)
        assert (stage.sent, stage.events, status.snapshot_uid) == ([], [("Warning", "SnapshotLost")], "uid-of-data")
        stage, found, _ = await take(vm(), kept(), status=to_dict(status))
        assert (found.phase, found.error, stage.events) == ("Succeeded", "", [("Normal", "SnapshotFound")])


@pytest.mark.spec("W-41")
async def test_labels_that_others_took_from_a_snapshot_are_put_back() -> None:
    bare = kept()
    bare.metadata.labels = {"theirs": "stays"}
    stage, status, _ = await take(vm(), bare, status=TAKEN)
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name, sent.body) == (
        "patch",
        "VirtualMachineSnapshot",
        "back",
        {"metadata": {"labels": labels("web")}},
    )
    assert (status.phase, stage.events) == ("Succeeded", [])


async def test_a_snapshot_waits_for_its_machine() -> None:
    for objects in ((), (vm(owners=[controlled_by("X", "x")]),)):
        stage, status, result = await take(*objects)
        assert (stage.sent, status.phase, result) == ([], "Pending", SOON)
        assert status.error == "Wukong web has no virtual machine yet"
    _, status, _ = await take(vm(), without=[VirtualMachine])
    assert status.phase == "Pending"


async def test_what_cannot_be_taken_fails_with_one_event_and_is_tried_again() -> None:
    for more, error in (
        ({"without": [VirtualMachineSnapshot]}, "the cluster has no snapshots of KubeVirt (snapshot.kubevirt.io)"),
        ({"error": refused(Invalid)}, "the API server refuses: no"),
        ({"error": refused(BadRequest)}, "the API server refuses: no"),
        ({"error": refused(Forbidden)}, "the API server refuses: no"),
        ({"error": refused(NotFound)}, "the API server refuses: no"),
    ):
        stage, status, result = await take(vm(), **more)
        assert (status.phase, status.error, result) == ("Failed", error, LATER)
        assert ready(status)[:3] == ("False", "Failed", error)
        assert stage.events == [("Warning", "SnapshotFailed")]
        stage, _, _ = await take(vm(), status={"phase": "Failed", "error": error}, **more)
        assert stage.events == []
        stage, _, _ = await take(vm(), status={"phase": "Failed", "error": "another"}, **more)
        assert stage.events == [("Warning", "SnapshotFailed")]


async def test_a_snapshot_of_a_machine_that_there_is_not_fails() -> None:
    stage = Stage(None, made(WukongSnapshot, "back", owners=(), spec={"wukongName": "nothing"}))
    ctx = stage.context(stage.objects["WukongSnapshot", SPACE, "back"])
    result = await SnapshotReconciler(Options()).reconcile(ctx)  # type: ignore[arg-type]
    assert (ctx.obj.status.phase, result) == ("Failed", LATER)  # type: ignore[attr-defined]


async def test_in_a_namespace_that_goes_nothing_is_to_be_said() -> None:
    cause = StatusCause(reason="NamespaceTerminating")
    error = Forbidden(Status(message="no", details=StatusDetails(causes=[cause])))
    with pytest.raises(Forbidden):
        await take(vm(), error=error)


@pytest.mark.spec("W-16")
async def test_a_snapshot_of_a_stranger_is_not_ours() -> None:
    stage, status, result = await take(vm(), kept(owner="another"))
    assert (stage.sent, status.phase, result) == ([], "Failed", LATER)


def of_kubevirt(**status: Any) -> VirtualMachineSnapshot:
    snapshot = kept()
    return made(
        VirtualMachineSnapshot,
        "back",
        owners=[controlled_by("WukongSnapshot", "back")],
        spec={"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}},
        status=status,
        meta={"uid": snapshot.metadata.uid},
    )


async def test_a_snapshot_that_is_being_taken_is_followed() -> None:
    stage, status, result = await take(of_kubevirt(phase="InProgress"))
    assert (stage.sent, status.phase, status.snapshot_name, status.error, result) == ([], "Creating", "back", "", SOON)
    assert (status.creation_time, status.snapshot_uid) == (None, ""), "others may delete it yet, and it is made again"
    for trouble, error in (
        ({"error": {"message": "no class"}}, "no class"),
        ({"conditions": [condition("Failure", "True", "X", "no driver")]}, "no driver"),
        ({"conditions": [condition("Failure", "True", "deadline exceeded")]}, "deadline exceeded"),
        ({"error": {"message": ""}, "conditions": [condition("Failure", "True", "X", "no driver")]}, "no driver"),
        ({"error": {"message": "a"}, "conditions": [condition("Failure", "True", "X", "b")]}, "a"),
    ):
        _, status, result = await take(of_kubevirt(phase="InProgress", **trouble))
        assert (status.phase, status.error, result) == ("Creating", error, SOON)
        assert ready(status)[:3] == ("False", "InProgress", error)
        stage, status, result = await take(of_kubevirt(phase="Failed", **trouble))
        assert (status.phase, status.error, result) == ("Failed", error, None)
        assert stage.events == [("Warning", "SnapshotFailed")]
    _, status, _ = await take(of_kubevirt(phase="Failed"))
    assert status.error == "KubeVirt does not say why"


async def test_a_snapshot_that_is_taken_says_what_is_in_it() -> None:
    volumes = {"includedVolumes": ["system", "data"], "excludedVolumes": ["scratch", "cloudinitdisk"]}
    done = of_kubevirt(
        phase="Succeeded",
        readyToUse=True,
        creationTime=OLD,
        indications=["Online", "GuestAgent"],
        snapshotVolumes=volumes,
    )
    stage, status, result = await take(done, status={"phase": "Creating", "error": "for a moment"})
    assert (status.phase, status.error, status.creation_time, result) == ("Succeeded", "", OLD, None)
    assert (status.volumes, status.excluded_volumes) == (["data", "system"], ["scratch"])
    assert status.snapshot_uid == "uid-of-data"
    assert status.indications == ["GuestAgent", "Online"]
    assert ready(status)[:3] == (
        "True",
        "Succeeded",
        "not in it: scratch; their storage classes take no snapshots",
    )
    assert stage.events == [("Normal", "SnapshotTaken"), ("Warning", "SnapshotIncomplete")]
    stage, status, _ = await take(of_kubevirt(readyToUse=True))
    assert (status.volumes, status.excluded_volumes, ready(status)[2]) == ([], [], "")
    assert stage.events == [("Normal", "SnapshotTaken")]
