"""Step 10 alone: conditions, phase and events from what the other steps have found, and when to look again."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.times import now
from konverge.operators.wukong.status import NetworkStatus, Trouble, VolumeStatus, WukongStatus
from konverge.operators.wukong.steps.conclude import View, conclude, view
from konverge.operators.wukong.steps.machine import look
from konverge.runtime import Result
from tests.operators.wukong.specs import Spec, spec
from tests.operators.wukong.stage import OLD, Stage, condition, vm, vmi

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-08", "W-09")]

LATER, SOON = Result(requeue_after=30.0), Result(requeue_after=10.0)
RUNS = (vm(), vmi())


def staged(*objects: Any, given: Spec | None = None, phase: str = "Creating", **more: Any) -> Stage:
    """A machine whose networks and disks were looked at, and are fine."""
    status = {"phase": phase, **more.pop("status", {})}
    stage = Stage(given, *objects, status=status, **more)
    stage.state.networks = [NetworkStatus(name="default")]
    stage.state.volumes = [VolumeStatus(name="system", bound=True)]
    return stage


async def run(stage: Stage, *trouble: Trouble) -> Result | None:
    stage.state.trouble += trouble
    await look(stage.state)
    return await conclude(stage.state)


def message(stage: Stage, type: str) -> str:
    return next(entry.message for entry in stage.state.status.conditions if entry.type == type)


# ------------------------------------------------------------------ all is well


async def test_a_machine_that_runs_is_ready_and_not_looked_at_again() -> None:
    stage = staged(*RUNS)
    assert await run(stage) is None
    assert {entry.type: (entry.status, entry.reason) for entry in stage.state.status.conditions} == {
        "SpecValid": ("True", "Valid"),
        "NetworksConfigured": ("True", "NetworksReady"),
        "VolumesBound": ("True", "VolumesReady"),
        "VirtualMachineReady": ("True", "VMRunning"),
        "Ready": ("True", "VMRunning"),
        "RestartRequired": ("False", "UpToDate"),
    }
    assert {entry.observed_generation for entry in stage.state.status.conditions} == {2}
    assert (message(stage, "NetworksConfigured"), message(stage, "VolumesBound")) == ("1 network", "1 volume")
    status = stage.state.status
    assert (status.phase, status.message, status.observed_generation) == (
        "Running",
        "the virtual machine is running",
        2,
    )
    assert stage.events == [("Normal", "Running")]
    assert [call.subresource for call in stage.calls] == ["status"], "one write"


async def test_two_of_a_sort_are_counted() -> None:
    stage = staged(*RUNS, given=spec(networks=[{"name": "default"}, {"name": "lan", "type": "bridge"}]))
    stage.state.networks.append(NetworkStatus(name="lan"))
    await run(stage)
    assert message(stage, "NetworksConfigured") == "2 networks"


async def test_an_event_is_for_a_new_phase_only() -> None:
    for before, events in (("Running", []), ("Stopped", [("Normal", "Running")]), ("Error", [("Normal", "Running")])):
        stage = staged(*RUNS, phase=before)
        await run(stage)
        assert stage.events == events
    stage = staged(vm("Halted"), phase="Running")
    assert await run(stage) is None
    assert (stage.events, stage.state.status.phase) == ([("Normal", "Stopped")], "Stopped")
    stage = staged(vm(), phase="Running")
    assert await run(stage) == SOON
    assert (stage.events, stage.state.status.phase) == ([], "Creating")


# ------------------------------------------------------------------ trouble


async def test_trouble_is_the_condition_that_it_is_about() -> None:
    for type in ("SpecValid", "NetworksConfigured", "VolumesBound", "VirtualMachineReady"):
        stage = staged(*RUNS)
        assert await run(stage, Trouble(type, "Bad", "it is bad")) == SOON
        assert (stage.said(type), message(stage, type)) == (("False", "Bad"), "it is bad")
        others = {"SpecValid", "NetworksConfigured", "VolumesBound", "VirtualMachineReady"} - {type}
        assert {(stage.said(other) or ("", ""))[0] for other in others} == {"True"}
        assert stage.said("Ready") == ("True", "VMRunning"), "it runs, whatever cannot be changed about it"
        assert (stage.state.status.phase, stage.state.status.message) == ("Running", "the virtual machine is running")


async def test_what_waiting_does_not_help_is_an_error_and_goes_first() -> None:
    stage = staged(*RUNS, phase="Running")
    soft, hard = Trouble("VolumesBound", "Soft", "wait"), Trouble("VolumesBound", "Hard", "broken", failed=True)
    assert await run(stage, soft, hard) == LATER
    assert stage.said("VolumesBound") == ("False", "Hard")
    assert (stage.state.status.phase, stage.state.status.message) == ("Error", "broken")
    assert stage.said("Ready") == ("True", "VMRunning")
    assert stage.events == [("Warning", "Hard")]


async def test_without_a_machine_ready_says_what_it_waits_for() -> None:
    soft, hard = Trouble("VolumesBound", "Soft", "wait"), Trouble("SpecValid", "Hard", "broken", failed=True)
    stage = staged()
    assert await run(stage, soft) == SOON
    assert (stage.said("Ready"), message(stage, "Ready")) == (("False", "Soft"), "wait")
    assert (stage.state.status.phase, stage.state.status.message) == ("Creating", "wait")
    stage = staged()
    assert await run(stage, soft, hard) == LATER
    assert (stage.said("Ready"), message(stage, "Ready")) == (("False", "Hard"), "broken")
    stage = staged()
    await run(stage)
    assert stage.said("Ready") == ("False", "VMCreating")
    stage = staged(vm("Halted"))
    await run(stage, soft)
    assert stage.said("Ready") == ("False", "VMStopped")
    assert stage.state.status.message == "wait"


@pytest.mark.spec("W-16")
@pytest.mark.parametrize("reason", ["NotOurs", "ClaimNotOurs", "PolicyNotOurs"])
async def test_a_machine_that_lacks_a_part_is_not_ready_even_when_it_runs(reason: str) -> None:
    stage = staged(*RUNS)
    soft = Trouble("NetworksConfigured", "Soft", "wait")
    await run(stage, soft, Trouble("VolumesBound", reason, "not ours", failed=True))
    assert (stage.said("Ready"), message(stage, "Ready")) == (("False", reason), "not ours")


async def test_an_error_is_reported_once_until_it_is_another() -> None:
    hard = Trouble("VolumesBound", "Hard", "broken", failed=True)
    for reason, events in (("Hard", []), ("Other", [("Warning", "Hard")])):
        before = {"conditions": [condition("VolumesBound", "False", reason)]}
        stage = staged(*RUNS, phase="Error", status=before)
        await run(stage, hard)
        assert stage.events == events, reason
    stage = staged(vm(), vmi("Failed"), phase="Error")
    assert await run(stage) == LATER
    assert stage.events == []
    stage = staged(vm(), vmi("Failed"), phase="Running")
    assert await run(stage) == LATER
    assert stage.events == [("Warning", "VMFailed")]


async def test_what_was_not_looked_at_stays_as_it_was_known() -> None:
    """A step that was refused ends the reconcile: about the rest nothing is claimed."""
    for before, expected in (
        ({}, ("Unknown", "NotReached")),
        ({"conditions": [condition("VolumesBound", "True", "VolumesReady")]}, ("True", "VolumesReady")),
    ):
        stage = staged(*RUNS, status=before)
        stage.state.volumes = []
        await run(stage, Trouble("VirtualMachineReady", "Refused", "no", failed=True))
        assert stage.said("VolumesBound") == expected
    stage = staged(*RUNS)
    stage.state.networks = []
    await run(stage)
    assert stage.said("NetworksConfigured") == ("Unknown", "NotReached")
    stage = staged(*RUNS)
    stage.state.networks, stage.state.volumes = [], []
    await run(stage, Trouble("NetworksConfigured", "Bad", "bad"))
    assert stage.said("NetworksConfigured") == ("False", "Bad")
    assert stage.said("VolumesBound") == ("Unknown", "NotReached")


async def test_a_spec_that_cannot_be_read_says_nothing_about_disks() -> None:
    stage = staged(*RUNS)
    stage.state.wukong = None
    assert await run(stage, Trouble("SpecValid", "Malformed", "bad", failed=True)) == LATER
    assert stage.said("SpecValid") == ("False", "Malformed")
    assert stage.said("VolumesBound") is None
    assert stage.said("NetworksConfigured") is None


async def test_disks_that_wait_for_the_machine_are_not_bound_yet() -> None:
    stage = staged(vm(), vmi("Scheduling"))
    stage.state.waiting = ["disk a waits", "disk b waits"]
    assert await run(stage) == SOON
    assert stage.said("VolumesBound") == ("False", "WaitingForFirstConsumer")
    assert message(stage, "VolumesBound") == "disk a waits; disk b waits"


async def test_no_longer_paused_is_no_longer_said() -> None:
    stage = staged(*RUNS, status={"conditions": [condition("Paused", "True", "Spec")]})
    await run(stage)
    assert stage.said("Paused") is None


# ------------------------------------------------------------------ when to look again


async def test_what_goes_on_is_looked_at_soon() -> None:
    for change in ({"restoring": "back"}, {"again": True}, {"refusals": [Trouble("x", "No", "no")]}):
        stage = staged(*RUNS)
        for name, value in change.items():
            setattr(stage.state, name, value)
        assert await run(stage) == SOON, change
    assert await run(staged(vm(), vmi(meta={"deletionTimestamp": now()}))) == SOON
    assert await run(staged(vm(printableStatus="CrashLoopBackOff"))) == LATER
    assert not View("Running", True, "VMRunning", "").moving
    assert View("Error", False, "CrashLoopBackOff", "").moving


# ------------------------------------------------------------------ details


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([], None),
        ([condition("LiveMigratable", "True", "")], ("True", "Migratable")),
        ([condition("LiveMigratable", "False", "")], ("False", "NotMigratable")),
        ([condition("LiveMigratable", "False", "DisksNotLiveMigratable", "no")], ("False", "DisksNotLiveMigratable")),
    ],
)
async def test_whether_it_can_move(conditions: list[Any], expected: Any) -> None:
    stage = staged(
        vm(), vmi(conditions=conditions), status={"conditions": [condition("Migratable", "Unknown", "Before")]}
    )
    await run(stage)
    assert stage.said("Migratable") == expected


async def test_without_an_instance_nothing_is_said_about_moving() -> None:
    stage = staged(vm("Halted"), status={"conditions": [condition("Migratable", "True", "Before")]})
    await run(stage)
    assert stage.said("Migratable") is None


async def test_changes_that_wait_for_a_restart_are_listed() -> None:
    stage = staged(*RUNS)
    stage.state.status.pending_changes = ["cpu", "memory"]
    await run(stage)
    assert (stage.said("RestartRequired"), message(stage, "RestartRequired")) == (
        ("True", "PendingChanges"),
        "cpu; memory",
    )


async def test_a_snapshot_and_a_restore_are_conditions_while_they_last() -> None:
    before = {"conditions": [condition("SnapshotInProgress"), condition("RestoreInProgress")]}
    stage = staged(*RUNS, status=before)
    await run(stage)
    assert (stage.said("SnapshotInProgress"), stage.said("RestoreInProgress")) == (None, None)
    stage = staged(vm(snapshotInProgress="snap"), vmi())
    stage.state.restoring = "back"
    await run(stage)
    assert stage.said("SnapshotInProgress") == ("True", "SnapshotRunning")
    assert message(stage, "SnapshotInProgress") == "snap"
    assert stage.said("RestoreInProgress") == ("True", "RestoreRunning")
    assert message(stage, "RestoreInProgress") == "back"


async def test_a_restore_that_cannot_be_is_said_with_one_event() -> None:
    refusal = Trouble("VirtualMachineReady", "SnapshotNotFound", "there is none")
    stage = staged(*RUNS, phase="Running")
    stage.state.refusals = [refusal]
    await run(stage)
    assert stage.said("RestoreInProgress") == ("False", "SnapshotNotFound")
    assert message(stage, "RestoreInProgress") == "there is none"
    assert stage.events == [("Warning", "SnapshotNotFound")]
    stage = staged(
        *RUNS, phase="Running", status={"conditions": [condition("RestoreInProgress", "False", "SnapshotNotFound")]}
    )
    stage.state.refusals, stage.state.restoring = [refusal], "back"
    await run(stage)
    assert (stage.said("RestoreInProgress"), stage.events) == (("True", "SnapshotNotFound"), [])


async def test_a_restore_that_still_cannot_be_is_not_said_again() -> None:
    before = condition("RestoreInProgress", "False", "SnapshotNotFound", "there is none")
    stage = staged(*RUNS, phase="Running", status={"conditions": [before]})
    stage.state.refusals = [Trouble("VirtualMachineReady", "SnapshotNotFound", "there is none")]
    await run(stage)
    (said,) = [one for one in stage.state.status.conditions if one.type == "RestoreInProgress"]
    assert said.last_transition_time == OLD


# ------------------------------------------------------------------ the machine as it is seen


def text(machine: Any, instance: Any, before: str = "Creating", grace: float = 60) -> str:
    return view(WukongStatus(phase=before), machine, instance, grace=grace).message  # type: ignore[arg-type]


def reason(machine: Any, instance: Any, before: str = "Creating", grace: float = 60) -> str:
    return view(WukongStatus(phase=before), machine, instance, grace=grace).reason  # type: ignore[arg-type]


async def test_a_guest_that_is_not_ready_says_why() -> None:
    for given, expected in (
        (condition("Ready", "False", "", ""), ("GuestNotReady", "the guest is not ready")),
        (condition("Ready", "False", "Probe", "no answer"), ("Probe", "no answer")),
        (condition("Ready", "True", "Probe", "fine"), ("VMRunning", "the virtual machine is running")),
        (condition("Ready", "Unknown", "Probe", "?"), ("VMRunning", "the virtual machine is running")),
    ):
        shown = view(WukongStatus(), vm(), vmi(conditions=[given]), grace=60)
        assert (shown.reason, shown.message) == expected


FAILURE = condition("Failure", "True", "FailedCreate", "no quota")


async def test_whether_a_machine_without_an_instance_is_off_or_on_its_way() -> None:
    for strategy in ("Halted", "Manual", ""):
        assert reason(vm(strategy, printableStatus="Starting"), None) == "VMStopped", strategy
    for strategy in ("RerunOnFailure", "Once"):
        ended = vm(strategy, printableStatus="Stopped")
        assert reason(ended, None, "Running") == "VMStopped"
        assert reason(ended, None, "Stopped") == "VMStopped"
        assert reason(ended, None, "Creating") == "VMCreating"
        assert reason(vm(strategy, printableStatus="Starting"), None, "Running") == "VMCreating"
    assert reason(vm("Always", printableStatus="Stopped"), None, "Running") == "VMCreating"
    assert text(vm("Always"), None) == "KubeVirt starts it: not looked at yet"
    assert text(vm("Always", printableStatus="Provisioning"), None) == "KubeVirt starts it: Provisioning"


@pytest.mark.parametrize("word", ["ErrorPvcNotFound", "DataVolumeError", "ErrImagePull", "ImagePullBackOff"])
async def test_what_kubevirt_waits_for_is_told_with_its_own_text(word: str) -> None:
    for instance in (None, vmi("Pending")):
        shown = view(WukongStatus(), vm(printableStatus=word, conditions=[FAILURE]), instance, grace=60)
        assert (shown.phase, shown.reason) == ("Creating", word)
        assert shown.message == "KubeVirt cannot start it: no quota"
        assert text(vm(printableStatus=word), instance) == f"KubeVirt cannot start it: {word}"


async def test_a_failure_is_told_by_its_message_or_else_by_its_reason() -> None:
    assert text(vm(conditions=[FAILURE | {"message": ""}]), None) == "KubeVirt cannot start it: FailedCreate"
    assert text(vm(conditions=[FAILURE]), None) == "KubeVirt cannot start it: no quota"
    assert text(vm(), vmi("Failed")) == "the virtual machine failed: Failed"
    assert text(vm(), vmi("Failed", reason="OOMKilled")) == "the virtual machine failed: OOMKilled"
    assert text(vm(conditions=[FAILURE]), vmi("Failed")) == "the virtual machine failed: no quota"
    unsure = vm(conditions=[FAILURE | {"status": "False"}])
    assert text(unsure, vmi("Failed")) == "the virtual machine failed: Failed"


async def test_failures_are_counted_from_the_second_on() -> None:
    for count, words in ((0, ""), (1, ""), (2, " 2 times in a row")):
        failing = vm(printableStatus="CrashLoopBackOff", startFailure={"consecutiveFailCount": count})
        assert text(failing, None) == f"the virtual machine failed{words}"
    assert text(vm(printableStatus="CrashLoopBackOff"), None) == "the virtual machine failed"


async def test_no_node_is_told_after_the_grace_time() -> None:
    stuck = [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes")]
    assert text(vm(), vmi("Scheduling", conditions=stuck)) == "no node for it: 0/3 nodes"
    recent = [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes", since=now())]
    assert reason(vm(), vmi("Scheduling", conditions=recent)) == "VMCreating"
    assert reason(vm(), vmi("Scheduling", conditions=recent), grace=0) == "Unschedulable"
    assert reason(vm(), vmi("Scheduling", conditions=[condition("PodScheduled", "True")])) == "VMCreating"
    word = vm(printableStatus="ErrorUnschedulable")
    assert text(word, vmi("Scheduling")) == "no node for it: the scheduler finds no node"
    assert reason(word, vmi("Scheduling", meta={"creationTimestamp": now()})) == "VMCreating"
    fresh = vmi("Scheduling", meta={"creationTimestamp": now()}, conditions=[condition("PodScheduled", "False")])
    assert reason(vm(), fresh) == "Unschedulable", "the condition's own time counts"
    untimed = vmi(
        "Scheduling", meta={"creationTimestamp": now()}, conditions=[condition("PodScheduled", "False", since="")]
    )
    assert reason(vm(), untimed) == "VMCreating", "without one, that of the instance"


async def test_an_instance_that_kubevirt_cannot_bring_about_says_why() -> None:
    for given, expected in (
        (condition("Synchronized", "False", "", "quota"), "NotSynchronized"),
        (condition("Synchronized", "False", "Forbidden", "quota"), "Forbidden"),
        (condition("Synchronized", "False", "Forbidden", ""), "VMCreating"),
        (condition("Synchronized", "True", "Forbidden", "quota"), "VMCreating"),
    ):
        assert reason(vm(), vmi("Scheduling", conditions=[given])) == expected
    assert text(vm(), vmi("")) == "the virtual machine is not yet looked at"
    assert text(vm(), vmi("Scheduled")) == "the virtual machine is Scheduled"
