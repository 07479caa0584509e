"""From what KubeVirt says to a phase: every branch, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import from_dict, times
from konverge.operators.wukong.kinds import VirtualMachine, VirtualMachineInstance
from konverge.operators.wukong.status import Phase, WukongStatus
from konverge.operators.wukong.steps.conclude import view

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-08")]
OLD = "2020-01-01T00:00:00Z"


def machine(word: str = "", strategy: str = "Always", **status: Any) -> VirtualMachine:
    spec = {"runStrategy": strategy, "template": {"spec": {"domain": {"devices": {}}}}}
    return from_dict(VirtualMachine, {"spec": spec, "status": {"printableStatus": word, **status}})


def instance(phase: str, *conditions: tuple[str, str, str], deleting: bool = False, **status: Any) -> Any:
    reported = [
        {"type": type, "status": word, "reason": "R", "message": text, "lastTransitionTime": OLD}
        for type, word, text in conditions
    ]
    metadata = {"name": "web-vm", "creationTimestamp": times.now(), **({"deletionTimestamp": OLD} if deleting else {})}
    return from_dict(
        VirtualMachineInstance, {"metadata": metadata, "status": {"phase": phase, "conditions": reported, **status}}
    )


def seen(vm: Any, vmi: Any, before: Phase = "Creating") -> tuple[str, bool, str]:
    result = view(WukongStatus(phase=before), vm, vmi, grace=60)
    return result.phase, result.ready, result.reason


UNABLE = {"type": "Failure", "status": "True", "reason": "FailedFindInstancetype", "message": "no type large"}
CASES = [
    (None, None, ("Creating", False, "VMCreating")),
    (machine(), instance("Running"), ("Running", True, "VMRunning")),
    (machine(), instance("Running", ("AgentConnected", "False", "")), ("Running", True, "VMRunning")),
    (machine(), instance("Running", ("Paused", "True", "")), ("Running", False, "VMPaused")),
    (machine(), instance("Running", ("Ready", "False", "no")), ("Running", False, "R")),
    (machine(), instance("Running", deleting=True), ("Running", False, "VMStopping")),
    (machine(), instance("Pending"), ("Creating", False, "VMCreating")),
    (machine(), instance("Scheduling"), ("Creating", False, "VMCreating")),
    (machine(), instance("Scheduled"), ("Creating", False, "VMCreating")),
    (machine(), instance(""), ("Creating", False, "VMCreating")),
    (machine("ErrorUnschedulable"), instance("Scheduling"), ("Creating", False, "VMCreating")),
    (machine(), instance("Scheduling", ("PodScheduled", "False", "0/3")), ("Creating", False, "Unschedulable")),
    (machine("ErrorPvcNotFound"), instance("Pending"), ("Creating", False, "ErrorPvcNotFound")),
    (machine(), instance("Scheduling", deleting=True), ("Creating", False, "VMStopping")),
    (machine(), instance("Failed"), ("Error", False, "VMFailed")),
    (machine(), instance("Unknown"), ("Error", False, "VMFailed")),
    (machine("CrashLoopBackOff"), instance("Failed"), ("Error", False, "CrashLoopBackOff")),
    (machine("CrashLoopBackOff"), None, ("Error", False, "CrashLoopBackOff")),
    (machine("Stopped", "Halted"), None, ("Stopped", False, "VMStopped")),
    (machine("Stopped", "Manual"), None, ("Stopped", False, "VMStopped")),
    (machine("Stopped", "RerunOnFailure"), None, ("Creating", False, "VMCreating")),
    (machine("Stopped", "Always"), None, ("Creating", False, "VMCreating")),
    (machine("DataVolumeError"), None, ("Creating", False, "DataVolumeError")),
    (machine(conditions=[UNABLE]), None, ("Error", False, "FailedFindInstancetype")),
    (machine(conditions=[UNABLE | {"reason": ""}]), None, ("Error", False, "VMFailed")),
    (machine(conditions=[UNABLE | {"status": "False"}]), None, ("Creating", False, "VMCreating")),
    (machine("Stopped", "Halted", conditions=[UNABLE]), None, ("Stopped", False, "VMStopped")),
    (machine("DataVolumeError", conditions=[UNABLE]), None, ("Creating", False, "DataVolumeError")),
    (machine(), instance("Pending", ("Synchronized", "False", "quota")), ("Creating", False, "R")),
    (machine(), instance("Pending", ("Synchronized", "True", "fine")), ("Creating", False, "VMCreating")),
    (machine(), instance("Succeeded"), ("Creating", False, "VMCreating")),
    (machine("", "Once"), instance("Succeeded"), ("Stopped", False, "GuestShutDown")),
]


@pytest.mark.parametrize(("vm", "vmi", "expected"), CASES)
async def test_every_state_of_a_machine_has_its_phase(vm: Any, vmi: Any, expected: tuple[str, bool, str]) -> None:
    assert seen(vm, vmi) == expected


async def test_a_machine_that_shut_itself_down_is_stopped_and_not_on_its_way() -> None:
    assert seen(machine("Stopped", "RerunOnFailure"), None, "Running") == ("Stopped", False, "VMStopped")
    assert seen(machine("Stopped", "Once"), None, "Stopped") == ("Stopped", False, "VMStopped")


async def test_failures_are_told_with_their_number_and_their_text() -> None:
    failing = machine(
        "CrashLoopBackOff", startFailure={"consecutiveFailCount": 3, "retryAfterTimestamp": "2026-01-01T00:00:00Z"}
    )
    text = view(WukongStatus(), failing, None, grace=60).message
    assert "3 times in a row" in text
    assert "2026-01-01T00:00:00Z" in text
    waiting = instance("Scheduling", ("PodScheduled", "False", "0/3 nodes are available"))
    assert "0/3 nodes are available" in view(WukongStatus(), machine(), waiting, grace=60).message
    failed = machine(conditions=[{"type": "Failure", "status": "True", "reason": "X", "message": "no such class"}])
    assert "no such class" in view(WukongStatus(), failed, instance("Failed"), grace=60).message


async def test_what_kubevirt_cannot_do_is_said_with_its_cause() -> None:
    unable = view(WukongStatus(), machine(conditions=[UNABLE]), None, grace=60)
    assert unable.message == "KubeVirt cannot start it: no type large"
    off = view(WukongStatus(), machine("Stopped", "Halted", conditions=[UNABLE]), None, grace=60)
    assert off.message == "the virtual machine is stopped (KubeVirt cannot start it: no type large)"
    unsynced = instance("Pending", ("Synchronized", "False", "exceeded quota"))
    assert "exceeded quota" in view(WukongStatus(), machine(), unsynced, grace=60).message
