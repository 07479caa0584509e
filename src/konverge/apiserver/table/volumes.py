"""Volumes and the claims on them."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import UNSET, Cell, age, at, name, status_of
from konverge.objects.quantity import Quantity

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def access_modes(modes: list[str] | None) -> str:
    return ",".join(short for mode, short in _MODES.items() if mode in (modes or ()))


def quantity(found: Any) -> str:
    return str(Quantity(found)) if found is not None else "0"


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
