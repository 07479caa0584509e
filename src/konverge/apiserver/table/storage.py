"""Volumes, claims, storage classes, drivers and attachments."""

from __future__ import annotations

from collections.abc import Sequence

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import UNSET, Cell, at, name, quantity, status_of

_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_DEFAULT_CLASS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def access_modes(path: str) -> Cell:
    modes_at = at(path, ())
    return lambda obj: ",".join(short for mode, short in _MODES.items() if mode in modes_at(obj))


def quantity_at(path: str) -> Cell:
    value_at = at(path, None)
    return lambda obj: quantity(value_at(obj))


def storage_class(obj: Obj) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(_CLASS_ANNOTATION) or obj["spec"].get("storageClassName") or "")


def phase(obj: Obj) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return str(status_of(obj).get("phase", ""))


def _if_bound(cell: Cell) -> Cell:
    """What a claim has, once it has a volume."""
    return lambda claim: cell(claim) if claim["spec"].get("volumeName") else ""


def bound_quantity(path: str) -> Cell:
    return _if_bound(quantity_at(path))


def bound_access_modes(path: str) -> Cell:
    return _if_bound(access_modes(path))


def mark_default(objects: Sequence[Obj], rows: list[Obj]) -> None:
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


def audiences(driver: Obj) -> str:
    requests = driver["spec"].get("tokenRequests")
    return UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
