"""Going back to a snapshot, and taking one, without a cluster: what is sent, and what keeps it from beginning."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import BadRequest, Forbidden, Invalid, NotFound
from konverge.operators.wukong.definitions import Definitions, Fields
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineRestore, VirtualMachineSnapshot
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.operators.wukong.snapshots import SnapshotReconciler
from konverge.operators.wukong.steps.machine import look
from konverge.operators.wukong.steps.restore import restore
from konverge.runtime import Result
from tests.operators.wukong.specs import spec
from tests.operators.wukong.stage import OLD, OWNER, SPACE, Stage, condition, controlled_by, made, refused, vm, vmi

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-13")]

BACK = spec(restoreFromSnapshot="back")
RESTORE = restore_name("web", "back")
MACHINE = controlled_by("VirtualMachine", "web-vm")


def taken(phase: str = "Succeeded", wukong: str = "web") -> WukongSnapshot:
    return made(WukongSnapshot, "back", owners=(), spec={"wukongName": wukong}, status={"phase": phase})


def kept(*, ready: bool = True, owner: str = "back") -> VirtualMachineSnapshot:
    owners = [controlled_by("WukongSnapshot", owner)]
    source = {"source": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"}}
    return made(VirtualMachineSnapshot, "back", owners=owners, spec=source, status={"readyToUse": ready},
                meta={"uid": "uid-of-data"})  # fmt: skip


def going_back(name: str = RESTORE, **more: Any) -> VirtualMachineRestore:
    spec = {
        "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"},
        "virtualMachineSnapshotName": "back",
        "volumeRestorePolicy": more.pop("policy", "InPlace"),
    }
    return made(VirtualMachineRestore, name, spec=spec, **more)


async def run(given: Any, *objects: Any, **more: Any) -> Stage:
    stage = Stage(given, *objects, **more)
    await look(stage.state)
    await restore(stage.state)
    return stage


def refusals(stage: Stage) -> list[str]:
    return [refusal.reason for refusal in stage.state.refusals]


# ------------------------------------------------------------------ back


async def test_a_machine_that_is_off_goes_back() -> None:
    stage = await run(BACK, vm("Halted"), taken(), kept())
    (sent,) = stage.sent
    assert (sent.verb, sent.kind, sent.name) == ("apply", "VirtualMachineRestore", RESTORE)
    assert sent.body["spec"] == {
        "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"},
        "virtualMachineSnapshotName": "back",
        "volumeRestorePolicy": "InPlace",
    }
    assert (stage.state.restoring, refusals(stage)) == ("back", [])
    assert stage.events == [("Normal", "RestoreStarted")]


async def test_a_machine_that_is_on_is_stopped_first() -> None:
    for objects in ((vm(), vmi()), (vm("Halted"), vmi()), (vm(),)):
        stage = await run(BACK, *objects, taken(), kept())
        assert (stage.sent, stage.state.restoring, stage.events) == ([], "back", [])


async def test_a_restore_that_goes_on_is_followed_until_it_is_complete() -> None:
    stage = await run(BACK, vm("Halted"), going_back())
    assert (stage.sent, stage.state.restoring, stage.state.again) == ([], "back", True)
    assert (refusals(stage), stage.events) == ([], [])
    stage = await run(BACK, vm("Halted"), going_back(status={"conditions": [condition("Failure", "True", "X", "no")]}))
    assert (refusals(stage), stage.state.restoring) == (["RestoreFailed"], "back")
    assert stage.state.refusals[0].message == "no"
    quiet = going_back(status={"conditions": [condition("Failure", "True")]})
    assert (await run(BACK, vm("Halted"), quiet)).state.refusals[0].message == "the restore failed"
    fine = going_back(status={"conditions": [condition("Failure", "False")]})
    assert refusals(await run(BACK, vm("Halted"), fine)) == []
    stage = await run(BACK, vm("Halted"), going_back(status={"complete": True}))
    assert (stage.sent, stage.state.restoring, stage.state.again) == ([], "", False)
    assert (stage.state.status.last_restore, stage.events) == ("back", [("Normal", "Restored")])


async def test_once_for_each_snapshot() -> None:
    stage = await run(BACK, vm("Halted"), taken(), kept(), status={"lastRestore": "back"})
    assert (stage.sent, stage.state.restoring, refusals(stage)) == ([], "", [])
    stage = await run(BACK, vm("Halted"), taken(), kept(), status={"lastRestore": "other"})
    assert stage.applied("VirtualMachineRestore") == [RESTORE]
    assert (await run(spec(), vm(), status={"lastRestore": "back"})).state.status.last_restore == ""
    assert (await run(BACK, taken(), kept())).state.restoring == "", "there is no machine yet"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ((), "SnapshotNotFound"),
        ((taken(wukong="other"), kept()), "SnapshotOfAnother"),
        ((taken("Creating"), kept()), "SnapshotNotReady"),
        ((taken(""), kept()), "SnapshotNotReady"),
        ((taken(),), "SnapshotLost"),
        ((taken(), kept(ready=False)), "SnapshotLost"),
        ((taken(), kept(owner="another")), "SnapshotLost"),
        ((going_back(policy="PrefixTargetName"),), "RestoreUnavailable"),
    ],
)
async def test_what_keeps_a_restore_from_beginning_leaves_the_machine_as_it_is(
    objects: tuple[Any, ...], reason: str
) -> None:
    stage = await run(BACK, vm("Halted"), *objects)
    assert (stage.sent, stage.state.restoring, refusals(stage)) == ([], "", [reason])
    assert stage.reasons() == []


@pytest.mark.spec("W-17")
async def test_a_kubevirt_that_is_too_old_is_named_before_anything_is_touched() -> None:
    stage = Stage(BACK, vm(), vmi(), taken(), kept())
    inner = Fields(names={"target": Fields(free=True), "virtualMachineSnapshotName": Fields()})
    name = "virtualmachinerestores.snapshot.kubevirt.io"
    stage.state.definitions = Definitions()
    stage.state.definitions._known[name] = (1e9, Fields(names={"spec": inner}))
    await look(stage.state)
    await restore(stage.state)
    assert (stage.sent, stage.state.restoring, refusals(stage)) == ([], "", ["RestoreUnavailable"])
    assert "spec.volumeRestorePolicy (KubeVirt 1.6 has it)" in stage.state.refusals[0].message


async def test_without_snapshots_in_the_cluster_that_is_said_where_one_is_asked_for() -> None:
    for given, status, expected in (
        (BACK, {}, ["SnapshotsMissing"]),
        (BACK, {"lastRestore": "back"}, []),
        (spec(), {}, []),
    ):
        stage = await run(given, vm(), status=status, without=[VirtualMachineRestore])
        assert (stage.sent, refusals(stage)) == ([], expected)


@pytest.mark.spec("W-16")
async def test_whose_a_restore_is() -> None:
    """KubeVirt makes the machine its controller."""
    done = {"status": {"complete": True}}
    for owners, label, ours in (
        ([OWNER], {}, True),
        ([MACHINE], {LABEL: "web"}, True),
        ([MACHINE], {}, False),
        ([MACHINE], {LABEL: "other"}, False),
        ([controlled_by("VirtualMachine", "x")], {LABEL: "web"}, False),
        ((), {LABEL: "web"}, False),
    ):
        present = going_back(owners=owners, meta={"labels": label}, **done)
        stage = await run(BACK, vm("Halted"), taken(), kept(), present)
        assert (stage.state.status.last_restore == "back") == ours
        assert refusals(stage) == ([] if ours else ["NotOurs"])
        assert stage.sent == []


async def test_restores_that_are_not_asked_for_any_more_are_deleted() -> None:
    objects = (
        going_back(),
        going_back("web-restore-old"),
        going_back("web-restore-machine", owners=[MACHINE], meta={"labels": {LABEL: "web"}}),
        going_back("theirs", owners=()),
        going_back("going", meta={"deletionTimestamp": OLD}),
    )
    stage = await run(BACK, vm("Halted"), *objects)
    assert [name for _, name in stage.deleted()] == ["web-restore-machine", "web-restore-old"]
    stage = await run(spec(), vm(), *objects)
    assert [name for _, name in stage.deleted()] == [RESTORE, "web-restore-machine", "web-restore-old"]


# ------------------------------------------------------------------ taking one


async def take(*objects: Any, status: dict[str, Any] | None = None, error: Any = None, **more: Any) -> Any:
    """One reconcile of a WukongSnapshot: the stage, its status, the result."""
    meta = {"generation": 4, **more.pop("meta", {})}
    snapshot = made(WukongSnapshot, "back", owners=(), spec={"wukongName": "web"}, status=status or {}, meta=meta)
    stage = Stage(None, snapshot, *objects, **more)
    if error is not None:
        stage.errors["patch", "VirtualMachineSnapshot"] = error
    ctx = stage.context(snapshot)
    result = await SnapshotReconciler(Options()).reconcile(ctx)
    return stage, ctx.obj.status, result


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


async def test_what_was_taken_and_what_goes_is_left_as_it_is() -> None:
    for more in ({"status": {"phase": "Succeeded"}}, {"meta": {"deletionTimestamp": OLD, "finalizers": ["x"]}}):
        stage, _, result = await take(vm(), **more)
        assert (stage.calls, result) == ([], None)


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
    from konverge.objects.meta import Status, StatusCause, StatusDetails

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
    assert status.creation_time is None
    for trouble, error in (
        ({"error": {"message": "no class"}}, "no class"),
        ({"conditions": [condition("Failure", "True", "X", "no driver")]}, "no driver"),
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
