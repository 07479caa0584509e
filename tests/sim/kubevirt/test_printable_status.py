"""The one word of `kubectl get vm`: the first of KubeVirt's list that holds."""

from __future__ import annotations

import pytest

from konverge.objects.meta import ObjectMeta
from konverge.sim.kubevirt.kinds import Instance, Obj, VirtualMachine
from konverge.sim.kubevirt.machine_status import Around, printable

pytestmark = pytest.mark.spec("S-22")
NOW = "2026-01-01T00:00:00Z"


def shown(phase: str | None, around: Around | None = None, **more: str) -> str:
    """`more` are reasons of conditions; `strategy` is when it runs, `deleted` says of whom, `failed` that it has not
    come up before."""
    machine = VirtualMachine(metadata=ObjectMeta(name="web"), spec={"runStrategy": more.get("strategy", "Halted")})
    instance = None
    if "failed" in more:
        machine.status = {"startFailure": {"consecutiveFailCount": 1}}
    if more.get("deleted") == "machine":
        machine.metadata.deletion_timestamp = NOW
    if phase is not None:
        conditions: list[Obj] = [
            {"type": name, "status": "True" if name == "Paused" else "False", "reason": reason}
            for name, reason in more.items()
            if name[0].isupper()
        ]
        instance = Instance(metadata=ObjectMeta(name="web"), status={"phase": phase, "conditions": conditions})
        if more.get("deleted") == "instance":
            instance.metadata.deletion_timestamp = NOW
    return printable(machine, instance, around or Around())


CASES: list[tuple[str, str]] = [
    (shown(None), "Stopped"),
    (shown("Succeeded"), "Stopped"),
    (shown(None, failed="yes"), "CrashLoopBackOff"),
    (shown("Failed", failed="yes"), "CrashLoopBackOff"),
    (shown(""), "Starting"),
    (shown("Scheduled", failed="yes"), "Starting"),
    (shown("Running"), "Running"),
    (shown("Running", Paused="PausedByUser"), "Paused"),
    (shown("Running", Around(moving=True), Paused="PausedByUser"), "Migrating"),
    (shown("Running", Around(moving=True), deleted="instance"), "Stopping"),
    (shown("Running", deleted="machine"), "Terminating"),
    (shown("Succeeded", deleted="instance"), "Stopped"),
    (shown("Pending", Around(filling=True, unbound=True)), "Provisioning"),
    (shown("Pending", Around(unbound=True), strategy="Always"), "WaitingForVolumeBinding"),
    (shown(None, Around(unbound=True), strategy="Always"), "WaitingForVolumeBinding"),
    (shown(None, Around(unbound=True)), "Stopped"),
    (shown(None, Around(filling=True)), "Provisioning"),
    (shown("Scheduling", Around(unbound=True), PodScheduled="Unschedulable"), "ErrorUnschedulable"),
    (shown("Pending", Synchronized="FailedPvcNotFound"), "ErrorPvcNotFound"),
    (shown("Failed", Around(filling=True, broken=True), failed="yes"), "DataVolumeError"),
    (shown("Scheduling", Synchronized="ErrImagePull"), "ErrImagePull"),
    (shown("Scheduling", Synchronized="ImagePullBackOff"), "ImagePullBackOff"),
    (shown("WaitingForSync"), "Unknown"),
]


def test_the_first_that_holds_is_shown() -> None:
    assert [got for got, _ in CASES] == [wanted for _, wanted in CASES]
