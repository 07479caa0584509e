"""How far a disk is, and whether it may grow: every branch, without a cluster."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects import Quantity, from_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.kinds.cdi import StorageSpec
from konverge.operators.wukong.names import REQUESTED_SIZE
from konverge.operators.wukong.status import Trouble
from konverge.operators.wukong.volumes import asked, capacity, may_grow, requested, stands


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
    assert asked(None, claim(size="10Gi"), "10Gi") == "10Gi"
    plain = volume("Succeeded")
    plain.spec.storage = None
    assert asked(plain, larger, "20Gi") == "11Gi"
    plain.spec.storage = from_dict(StorageSpec, {})
    assert asked(plain, larger, "20Gi") == "11Gi"


def text(dv: Any, pvc: Any, sc: Any) -> str:
    result = stands("system", dv, pvc, sc, restarts=3)
    assert result.trouble is not None
    assert result.trouble.condition == "VolumesBound"
    return result.trouble.message.removeprefix("disk system: ")


@pytest.mark.spec("W-05")
def test_what_a_disk_waits_for_is_told_with_its_cause() -> None:
    """The importer's own text goes before that of the claim, and a condition that holds is no cause."""
    both = {"Running": ("False", "Error", "404"), "Bound": ("False", "Pending", "no volume")}
    assert text(volume("ImportInProgress", **both), claim(), storage()) == "ImportInProgress: 404"
    bound = {"Running": ("True", "Pod", "fine"), "Bound": ("False", "Pending", "no volume")}
    assert text(volume("ImportInProgress", **bound), claim(), storage()) == "ImportInProgress: no volume"
    assert text(volume("ImportInProgress"), claim(), storage()) == "ImportInProgress"
    assert text(volume(""), claim(), storage()) == "CDI has not looked at it yet"
    refused = volume("", Bound=("False", "ErrClaimNotValid", "no accessMode"))
    assert text(refused, None, storage()) == "no accessMode"
    failed = volume("Failed", Running=("False", "Error", "404"))
    assert text(failed, claim(), storage()) == "CDI has given up: 404"
    assert text(volume("Failed"), claim(), storage()) == "CDI has given up: no reason is given"
    failing = volume("ImportInProgress", restarts=3)
    assert text(failing, claim(), storage()) == "the import failed 3 times: no reason is given"
    assert "virtctl image-upload dv web-system" in text(volume("UploadReady"), claim(), storage())


@pytest.mark.spec("W-05")
def test_why_a_claim_is_pending() -> None:
    made = text(None, claim("Pending"), storage())
    assert made == "its claim is pending: class fast, provisioner x/y, has made no volume"
    assert text(None, claim("Pending"), None) == "its claim is pending: there is no storage class fast"
    nameless = claim("Pending")
    nameless.spec.storage_class_name = None
    assert "the cluster has no default one" in text(None, nameless, None)
    both = text(volume("Pending"), claim("Pending"), None)
    assert both == "its claim is pending: there is no storage class fast"
    assert text(volume("Pending"), claim("Bound"), None) == "Pending"
    assert text(volume("ImportScheduled"), claim("Pending"), None) == "ImportScheduled"


@pytest.mark.spec("W-05")
def test_which_disk_waits_for_its_first_consumer() -> None:
    for phase in ("WaitForFirstConsumer", "PendingPopulation"):
        result = stands("system", volume(phase), claim("Pending"), LAZY, restarts=3)
        assert (result.bound, result.trouble, result.waiting) == (
            False,
            None,
            "disk system waits for its first consumer",
        )
    going = stands("system", volume("Succeeded"), claim("Bound", deleting=True), storage(), restarts=3)
    assert going.trouble is not None
    assert going.trouble.reason == "ClaimDeleting"
    lost = stands("system", volume("Succeeded"), claim("Lost"), storage(), restarts=3)
    assert lost.trouble is not None
    assert (lost.trouble.reason, lost.trouble.failed) == ("ClaimLost", True)


@pytest.mark.spec("W-06")
def test_what_a_claim_asks_for_and_has_got() -> None:
    plain = claim(size="10Gi")
    assert (requested(plain), capacity(plain)) == ("10Gi", "")
    plain.status.capacity = {"storage": Quantity("11Gi")}
    assert capacity(plain) == "11Gi"
    plain.spec.resources = None
    assert requested(plain) == ""


@pytest.mark.spec("W-06")
def test_why_a_disk_cannot_grow_is_said_with_its_class() -> None:
    for sc, pvc, name in (
        (storage(grows=False), claim(), "fast"),
        (None, claim(), "fast"),
        (None, from_dict(PersistentVolumeClaim, {"status": {"phase": "Bound"}}), "none"),
    ):
        result = may_grow("system", "20Gi", "10Gi", pvc, sc)
        assert isinstance(result, Trouble)
        assert (result.condition, result.failed) == ("SpecValid", True)
        assert result.message.endswith(f"storage class {name} allows no expansion")
    shrunk = may_grow("system", "5Gi", "10Gi", claim("Pending"), storage())
    assert isinstance(shrunk, Trouble)
    assert (shrunk.condition, shrunk.failed) == ("SpecValid", True)
