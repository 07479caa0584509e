"""Storage classes, drivers and attachments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, UNSET, age, at, count, name

_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def _mark_default(objects: Sequence[Obj], rows: list[Obj]) -> None:
    """Of several default classes the newest is in effect, of equally old ones the first by name."""
    default = [
        (obj["metadata"].get("creationTimestamp", ""), name(obj), row)
        for obj, row in zip(objects, rows, strict=True)
        if any((obj["metadata"].get("annotations") or {}).get(key) == "true" for key in _DEFAULT_CLASS)
    ]
    if default:
        newest = max(stamp for stamp, _, _ in default)
        _, _, row = min((entry for entry in default if entry[0] == newest), key=lambda entry: entry[1])
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
