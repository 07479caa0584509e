"""Going back to a snapshot without a cluster: what is sent, and what keeps it from beginning."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import NotFound
from konverge.operators.wukong.definitions import Definitions, Fields
from konverge.operators.wukong.kinds import VirtualMachineRestore
from konverge.operators.wukong.names import LABEL
from konverge.operators.wukong.names import restore as restore_name
from konverge.operators.wukong.resource import WukongSnapshot
from konverge.operators.wukong.steps.machine import look
from konverge.operators.wukong.steps.restore import restore
from tests.operators.wukong.specs import spec
from tests.operators.wukong.stage import OLD, OWNER, Stage, condition, controlled_by, made, refused, vm, vmi
from tests.operators.wukong.test_snapshots_step import kept

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-13")]

BACK = spec(restoreFromSnapshot="back")
RESTORE = restore_name("web", "back")
MACHINE = controlled_by("VirtualMachine", "web-vm")


def taken(
    phase: str = "Succeeded", why: str = "Succeeded", wukong: str = "web", uid: str = "uid-of-data"
) -> WukongSnapshot:
    status = {"phase": phase, "snapshotUID": uid, "conditions": [condition("Ready", "False", why)]}
    return made(WukongSnapshot, "back", owners=(), spec={"wukongName": wukong}, status=status)


def going_back(name: str = RESTORE, **more: Any) -> VirtualMachineRestore:
    spec = {
        "target": {"apiGroup": "kubevirt.io", "kind": "VirtualMachine", "name": "web-vm"},
        "virtualMachineSnapshotName": "back",
        "volumeRestorePolicy": more.pop("policy", "InPlace"),
    }
    return made(VirtualMachineRestore, name, spec=spec, **more)


async def run(given: Any, *objects: Any, live: Any = None, **more: Any) -> Stage:
    """`live` is what is asked of the server, where the cache is older."""
    stage = Stage(given, *objects, **more)
    if isinstance(live, Exception):
        stage.errors["get", "VirtualMachineRestore"] = live
    elif live is not None:
        stage.answers["get", "VirtualMachineRestore"] = live
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
    as_kubevirt = going_back(status={"conditions": [condition("Failure", "True", "it must be off")]})
    assert (await run(BACK, vm("Halted"), as_kubevirt)).state.refusals[0].message == "it must be off"
    quiet = going_back(status={"conditions": [condition("Failure", "True", "")]})
    assert (await run(BACK, vm("Halted"), quiet)).state.refusals[0].message == "the restore failed"
    stuck = await run(
        BACK, vm("Halted"), going_back(status={"conditions": [condition("Progressing", "False", "no room")]})
    )
    assert (refusals(stuck), stuck.state.refusals[0].message) == (["RestoreFailing"], "no room")
    fine = going_back(status={"conditions": [condition("Failure", "False"), condition("Progressing")]})
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
    stage = await run(BACK, vm("Halted"), taken(uid=""), kept())
    assert stage.applied("VirtualMachineRestore") == [RESTORE], "an earlier version has noted no uid"


DONE: dict[str, Any] = {"status": {"complete": True}}
LEAVING: dict[str, Any] = {"meta": {"deletionTimestamp": OLD, "finalizers": ["x"]}}


@pytest.mark.spec("W-44")
@pytest.mark.parametrize(
    ("shown", "live"),
    [
        (going_back(**DONE, **LEAVING), None),
        (going_back(**DONE), going_back(**DONE, **LEAVING)),
        (going_back(**DONE), refused(NotFound, kind="VirtualMachineRestore")),
    ],
    ids=["going", "going, with an old cache", "gone, with an old cache"],
)
async def test_a_restore_of_an_earlier_request_is_not_the_one_that_is_asked_for(shown: Any, live: Any) -> None:
    stage = await run(BACK, vm("Halted"), taken(), kept(), shown, live=live)
    assert (stage.sent, stage.state.restoring, stage.state.again) == ([], "", True)
    assert (stage.state.status.last_restore, stage.events, refusals(stage)) == ("", [], [])


@pytest.mark.spec("W-44")
async def test_a_restore_is_complete_when_the_server_says_so() -> None:
    begun = going_back()
    stage = await run(BACK, vm("Halted"), taken(), kept(), going_back(**DONE), live=begun)
    assert (stage.state.status.last_restore, stage.state.restoring, stage.state.again) == ("", "back", True)
    stage = await run(BACK, vm("Halted"), going_back(**LEAVING))
    assert (stage.state.restoring, stage.calls) == ("back", []), "one that goes on is followed by the cache"
    stage = await run(BACK, vm("Halted"), going_back(**DONE), status={"lastRestore": "back"})
    assert stage.calls == [], "it is asked for once"


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        ((), "SnapshotNotFound"),
        ((taken(wukong="other"), kept()), "SnapshotOfAnother"),
        ((taken("Creating"), kept()), "SnapshotNotReady"),
        ((taken(""), kept()), "SnapshotNotReady"),
        ((taken(),), "SnapshotLost"),
        ((taken("Failed", "SnapshotLost"), kept()), "SnapshotLost"),
        ((taken("Failed", "Failed"), kept()), "SnapshotNotReady"),
        ((taken(), kept(ready=False)), "SnapshotLost"),
        ((taken(), kept(owner="another")), "SnapshotLost"),
        ((taken(), kept(uid="of another moment")), "SnapshotLost"),
        ((taken(), kept(of="a machine of before")), "SnapshotOfAnother"),
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
        (spec(), {"lastRestore": "back"}, []),
    ):
        stage = await run(given, vm(), status=status, without=[VirtualMachineRestore])
        assert (stage.sent, refusals(stage)) == ([], expected)


@pytest.mark.spec("W-16")
async def test_whose_a_restore_is() -> None:
    """KubeVirt makes the machine its controller."""
    for owners, label, ours in (
        ([OWNER], {}, True),
        ([MACHINE], {LABEL: "web"}, True),
        ([MACHINE], {}, False),
        ([MACHINE], {LABEL: "other"}, False),
        ([controlled_by("VirtualMachine", "x")], {LABEL: "web"}, False),
        ((), {LABEL: "web"}, False),
    ):
        present = going_back(owners=owners, meta={"labels": label}, **DONE)
        stage = await run(BACK, vm("Halted"), taken(), kept(), present)
        assert (stage.state.status.last_restore == "back") == ours
        assert refusals(stage) == ([] if ours else ["NotOurs"])
        assert [call.verb for call in stage.calls] == (["get"] if ours else [])


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
    assert (await run(spec(), going_back())).deleted() == [("VirtualMachineRestore", RESTORE)], "without a machine, too"
    stage = await run(spec(), vm(), *objects)
    assert [name for _, name in stage.deleted()] == [RESTORE, "web-restore-machine", "web-restore-old"]
