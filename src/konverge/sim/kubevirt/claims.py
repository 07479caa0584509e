"""The claim that a DataVolume gets. Pure.

Under `storage` the importer needs room for the file system beside the image, so the claim is larger than what was asked
for; under `pvc` it is exactly what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import Any

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.quantity import Quantity
from konverge.sim.kubevirt.kinds import DataVolume, Obj, reference

OVERHEAD = 0.06
LEGACY = "cdi.kubevirt.io/storage.usePopulator"
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
ADOPTION = "cdi.kubevirt.io/allowClaimAdoption"
DEFAULT_VIRT = "storageclass.kubevirt.io/is-default-virt-class"
_MIB = 1 << 20
_SOURCES = {"pvc": "VolumeCloneSource", "snapshot": "VolumeCloneSource", "upload": "VolumeUploadSource"}


def uses_populator(volume: DataVolume, default: bool) -> bool:
    """The cluster's way, unless the DataVolume says otherwise."""
    word = volume.metadata.annotations.get(LEGACY)
    return default if word is None else word == "true"


def waits(volume: DataVolume, kind: StorageClass | None) -> bool:
    """Whether its class waits for a pod, and it does so too."""
    later = kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"
    return later and BIND_NOW not in volume.metadata.annotations


def claim_for(volume: DataVolume, source: str, size: str, classes: Iterable[StorageClass], *, populator: bool) -> Obj:
    """`source` is the word for what fills it, `size` what a clone takes when none is asked for."""
    requested: Obj = volume.spec.get("storage") or volume.spec.get("pvc") or {}
    mode = requested.get("volumeMode", "Filesystem")
    spec: Obj = {
        "accessModes": requested.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": mode,
        "resources": {"requests": {"storage": _requested(volume, mode, size)}},
    }
    name = requested.get("storageClassName") or (_virt_default(classes) if "storage" in volume.spec else "")
    if name:
        spec["storageClassName"] = name
    if populator:
        kind = _SOURCES.get(source, "VolumeImportSource")
        named = f"{_dashed(kind)}-{volume.metadata.uid}"
        spec["dataSourceRef"] = {"apiGroup": "cdi.kubevirt.io", "kind": kind, "name": named}
    meta = volume.metadata
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": {**meta.labels, "app": "containerized-data-importer"},
        "annotations": {"cdi.kubevirt.io/storage.contentType": volume.spec.get("contentType", "kubevirt")},
        "ownerReferences": [reference(volume)],
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def _requested(volume: DataVolume, mode: str, size: str) -> str:
    requested: Obj = volume.spec.get("storage") or volume.spec.get("pvc") or {}
    asked = str(((requested.get("resources") or {}).get("requests") or {}).get("storage") or size)
    if "storage" not in volume.spec or mode == "Block":
        return asked
    return f"{ceil(float(Quantity(asked)) / (1 - OVERHEAD) / _MIB)}Mi"


def _virt_default(classes: Iterable[StorageClass]) -> str:
    marked = (cls_.metadata.name for cls_ in classes if cls_.metadata.annotations.get(DEFAULT_VIRT) == "true")
    return min(marked, default="")


def _dashed(kind: str) -> str:
    """VolumeImportSource → volume-import-source."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("-")


def asked_size(claim: PersistentVolumeClaim | None) -> str:
    """What a claim asks for, as a clone of it does."""
    requests: dict[str, Any] = claim.spec.resources.requests if claim is not None and claim.spec.resources else {}
    return str(requests.get("storage", "1Gi"))
