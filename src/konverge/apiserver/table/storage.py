"""Volumes, claims, storage classes, drivers and attachments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, UNSET, Cell, age, at, count, name, quantity, status_of

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def _class(obj: Obj) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or "")


def _phase(obj: Obj) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(status_of(obj).get("phase", ""))


def _claim_of(volume: Obj) -> str:
    claim = volume["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _if_bound(cell: Cell) -> Cell:
    """What a claim has, once it has a volume."""
    return lambda claim: cell(claim) if claim["spec"].get("volumeName") else ""


VOLUME: dict[str, Any] = {
    "Name": name,
    "Capacity": lambda volume: quantity((volume["spec"].get("capacity") or {}).get("storage")),
    "Access Modes": lambda volume: access_modes(volume["spec"].get("accessModes")),
    "Reclaim Policy": at("spec.persistentVolumeReclaimPolicy"),
    "Status": _phase,
    "Claim": _claim_of,
    "StorageClass": _class,
    "VolumeAttributesClass": at("spec.volumeAttributesClassName", UNSET),
    "Reason": at("status.reason"),
    "Age": age,
    "VolumeMode": at("spec.volumeMode", UNSET),
}
CLAIM: dict[str, Any] = {
    "Name": name,
    "Status": _phase,
    "Volume": at("spec.volumeName"),
    "Capacity": _if_bound(lambda claim: quantity((status_of(claim).get("capacity") or {}).get("storage"))),
    "Access Modes": _if_bound(lambda claim: access_modes(status_of(claim).get("accessModes"))),
    "StorageClass": _class,
    "VolumeAttributesClass": at("spec.volumeAttributesClassName", UNSET),
    "Age": age,
    "VolumeMode": at("spec.volumeMode", UNSET),
}


def _mark_default(objects: Sequence[Obj], rows: list[Obj]) -> None:
    """Of several default classes the newest is in effect, of equally old ones the first by name.

    Upstream: getEffectiveDefaultStorageClass.
    """
    defaults = [
        (obj["metadata"].get("creationTimestamp", ""), name(obj), row)
        for obj, row in zip(objects, rows, strict=True)
        if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in _DEFAULT_CLASS)
    ]
    if defaults:
        newest = max(stamp for stamp, _, _ in defaults)
        _, _, row = min((entry for entry in defaults if entry[0] == newest), key=lambda entry: entry[1])
        row["cells"][0] += " (default)"


def _modes(driver: Obj) -> str:
    return ",".join(driver["spec"].get("volumeLifecycleModes") or ()) or NONE


def _audiences(driver: Obj) -> str:
    requests = driver["spec"].get("tokenRequests")
    return UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)


KINDS: dict[str, dict[str, Any]] = {
    "StorageClass": {
        "Name": name,
        "Provisioner": at("provisioner"),
        "ReclaimPolicy": at("reclaimPolicy", "Delete"),
        "VolumeBindingMode": at("volumeBindingMode", "Immediate"),
        "AllowVolumeExpansion": at("allowVolumeExpansion", False),
        "Age": age,
    },
    "VolumeAttributesClass": {"Name": name, "DriverName": at("driverName"), "Age": age},
    "VolumeAttachment": {
        "Name": name,
        "Attacher": at("spec.attacher"),
        "PV": at("spec.source.persistentVolumeName"),
        "Node": at("spec.nodeName"),
        "Attached": at("status.attached", False),
        "Age": age,
    },
    "CSINode": {"Name": name, "Drivers": count("spec.drivers"), "Age": age},
    "CSIDriver": {
        "Name": name,
        "AttachRequired": at("spec.attachRequired", True),
        "PodInfoOnMount": at("spec.podInfoOnMount", False),
        "StorageCapacity": at("spec.storageCapacity", False),
        "TokenRequests": _audiences,
        "RequiresRepublish": at("spec.requiresRepublish", False),
        "Modes": _modes,
        "Age": age,
    },
}
MARKS = {"StorageClass": _mark_default}
