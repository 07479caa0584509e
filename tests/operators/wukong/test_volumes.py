"""How far a disk is, and whether it may grow: every branch, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import from_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.names import REQUESTED_SIZE
from konverge.operators.wukong.status import Trouble
from konverge.operators.wukong.volumes import asked, may_grow, stands


def claim(phase: str = "Bound", size: str = "10Gi", *, deleting: bool = False, noted: str = "") -> Any:
    metadata: dict[str, Any] = {"name": "web-system", "annotations": {REQUESTED_SIZE: noted} if noted else {}}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {"storageClassName": "fast", "resources": {"requests": {"storage": size}}}
    return from_dict(PersistentVolumeClaim, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


def volume(phase: str, *, restarts: int = 0, **conditions: tuple[str, str, str]) -> Any:
    reported = [
        {"type": type, "status": status, "reason": reason, "message": message}
        for type, (status, reason, message) in conditions.items()
    ]
    spec = {"storage": {"resources": {"requests": {"storage": "10Gi"}}}}
    status = {"phase": phase, "restartCount": restarts, "conditions": reported}
    return from_dict(DataVolume, {"metadata": {"name": "web-system"}, "spec": spec, "status": status})


def storage(mode: str = "Immediate", *, grows: bool | None = True) -> Any:
    given = {"allowVolumeExpansion": grows} if grows is not None else {}
    made = {"metadata": {"name": "fast"}, "provisioner": "x/y", "volumeBindingMode": mode, **given}
    return from_dict(StorageClass, made)


LAZY = storage("WaitForFirstConsumer")
CASES = [
    (None, claim("Bound"), storage(), (True, "", False)),
    (None, claim("Pending"), storage(), (False, "ClaimPending", False)),
    (None, claim("Pending"), None, (False, "ClaimPending", False)),
    (None, claim("Pending"), LAZY, (False, "", True)),
    (None, claim("Lost"), storage(), (False, "ClaimLost", False)),
    (None, claim("Bound", deleting=True), storage(), (False, "ClaimDeleting", False)),
    (None, None, None, (False, "ClaimPending", False)),
    (volume("Succeeded"), claim("Bound"), storage(), (True, "", False)),
    (volume("ImportInProgress"), claim("Bound"), storage(), (False, "Importing", False)),
    (volume("ImportInProgress"), None, None, (False, "Importing", False)),
    (volume("WaitForFirstConsumer"), claim("Pending"), LAZY, (False, "", True)),
    (volume("PendingPopulation"), claim("Pending"), LAZY, (False, "", True)),
    (volume("Failed"), claim("Bound"), storage(), (False, "ImportFailed", False)),
    (volume("ImportInProgress", restarts=3), claim("Bound"), storage(), (False, "ImportFailing", False)),
    (volume("UploadReady"), claim("Bound"), storage(), (False, "WaitingForUpload", False)),
    (volume("Paused"), claim("Bound"), storage(), (False, "ImportPaused", False)),
    (volume(""), claim("Pending"), storage(), (False, "Importing", False)),
    (volume("Pending"), claim("Pending"), storage(), (False, "Importing", False)),
    (volume("Pending"), claim("Pending"), None, (False, "ClaimPending", False)),
    (volume("Pending", Bound=("False", "ClaimLost", "")), claim(), storage(), (False, "ClaimLost", False)),
]


@pytest.mark.spec("W-05")
@pytest.mark.parametrize(("dv", "pvc", "sc", "expected"), CASES)
def test_how_a_disk_stands(dv: Any, pvc: Any, sc: Any, expected: tuple[bool, str, bool]) -> None:
    result = stands("system", dv, pvc, sc, restarts=3)
    assert (result.bound, result.trouble.reason if result.trouble else "", bool(result.waiting)) == expected
    assert result.trouble is None or result.trouble.failed == (expected[1] in ("ClaimLost", "ImportFailed"))


@pytest.mark.spec("W-05")
def test_an_import_that_fails_is_told_in_the_importers_words() -> None:
    failing = volume("ImportInProgress", restarts=7, Running=("False", "Error", "404 Not Found"))
    result = stands("system", failing, claim("Pending"), storage(), restarts=3)
    assert result.trouble is not None
    assert result.trouble.message == "disk system: the import failed 7 times: 404 Not Found"


@pytest.mark.spec("W-06")
@pytest.mark.parametrize(
    ("size", "phase", "sc", "expected"),
    [
        ("10Gi", "Bound", storage(), False),
        ("10240Mi", "Bound", storage(), False),
        ("20Gi", "Bound", storage(), True),
        ("20Gi", "Pending", storage(), False),
        ("20Gi", "Bound", storage(grows=False), "DiskCannotGrow"),
        ("20Gi", "Bound", storage(grows=None), "DiskCannotGrow"),
        ("20Gi", "Bound", None, "DiskCannotGrow"),
        ("5Gi", "Bound", storage(), "DiskCannotShrink"),
    ],
)
def test_what_follows_from_a_size(size: str, phase: str, sc: Any, expected: bool | str) -> None:
    result = may_grow("system", size, "10Gi", claim(phase), sc)
    assert (result.reason if isinstance(result, Trouble) else result) == expected


@pytest.mark.spec("W-06")
def test_the_size_that_was_asked_for_is_not_that_of_the_claim() -> None:
    larger = claim(size="11Gi")
    assert asked(volume("Succeeded"), larger, "10Gi") == "10Gi"
    assert asked(volume("Succeeded"), claim(size="22Gi", noted="20Gi"), "20Gi") == "20Gi"
    assert asked(None, larger, "10Gi") == "10Gi", "it is not known what CDI added, so the spec is believed"
    assert asked(None, larger, "20Gi") == "11Gi"
