"""The claim that CDI makes for a DataVolume. Pure.

Under `storage` the importer needs room for the file system beside the image, so the claim is larger than what was asked
for; under `pvc` it is exactly what was asked for. Upstream: pkg/controller/datavolume/util.go and controller-base.go of
CDI.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any

from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.quantity import Quantity
from konverge.sim.kubevirt.faults import ANNOTATION as FAULTS
from konverge.sim.kubevirt.kinds import DataVolume, Obj, reference
from konverge.sim.volumes import DEFAULT

OVERHEAD = Fraction(6, 100)
"""What a file system takes for itself, as a share of the image."""
DEFAULT_VIRT = "storageclass.kubevirt.io/is-default-virt-class"
USES_POPULATOR = "cdi.kubevirt.io/storage.usePopulator"
BIND_NOW = "cdi.kubevirt.io/storage.bind.immediate.requested"
CONTENT = "cdi.kubevirt.io/storage.contentType"
CREATED_FOR = "cdi.kubevirt.io/createdForDataVolume"
_MIB = 1 << 20
_SOURCES = {"pvc": "VolumeCloneSource", "snapshot": "VolumeCloneSource", "upload": "VolumeUploadSource"}
_BLOCK = "Block"


def uses_populator(volume: DataVolume, default: bool) -> bool:
    """The cluster's way, unless the DataVolume says otherwise."""
    word = volume.metadata.annotations.get(USES_POPULATOR)
    return default if word is None else word == "true"


def waits(volume: DataVolume, kind: StorageClass | None) -> bool:
    """Whether its class waits for a pod, and it does so too."""
    later = kind is not None and kind.volume_binding_mode == "WaitForFirstConsumer"
    return later and BIND_NOW not in volume.metadata.annotations


def claim_for(volume: DataVolume, source: str, image: int, classes: Sequence[StorageClass], *, populator: bool) -> Obj:
    """`source` is the word for what fills it, `image` how large a clone is when no size is asked for."""
    requested: Obj = volume.spec.get("storage") or volume.spec.get("pvc") or {}
    mode = requested.get("volumeMode", "Filesystem")
    spec: Obj = {
        "accessModes": requested.get("accessModes") or ["ReadWriteOnce"],
        "volumeMode": mode,
        "resources": {"requests": {"storage": _requested(volume, mode, image)}},
    }
    name = requested.get("storageClassName") or (_default(classes) if "storage" in volume.spec else "")
    if name:
        spec["storageClassName"] = name
    if populator:
        kind = _SOURCES.get(source, "VolumeImportSource")
        named = f"{_dashed(kind)}-{volume.metadata.uid}"
        spec["dataSourceRef"] = {"apiGroup": "cdi.kubevirt.io", "kind": kind, "name": named}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": _metadata(volume, mode), "spec": spec}


def _metadata(volume: DataVolume, mode: str) -> Obj:
    meta = volume.metadata
    quiet = {} if mode == _BLOCK else {"alerts.k8s.io/KubePersistentVolumeFillingUp": "disabled"}
    recommended = {"app.kubernetes.io/component": "storage", "app.kubernetes.io/managed-by": "cdi-controller"}
    notes = {
        "cdi.kubevirt.io/storage.pod.restarts": "0",
        CONTENT: volume.spec.get("contentType") or "kubevirt",
        "cdi.kubevirt.io/storage.preallocation.requested": str(bool(volume.spec.get("preallocation"))).lower(),
        CREATED_FOR: meta.uid,
    }
    return {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": {"app": "containerized-data-importer", **quiet, **meta.labels, **recommended},
        "annotations": {**{key: meta.annotations[key] for key in meta.annotations if key != FAULTS}, **notes},
        "ownerReferences": [reference(volume)],
    }


def _requested(volume: DataVolume, mode: str, image: int) -> str:
    requested: Obj = volume.spec.get("storage") or volume.spec.get("pvc") or {}
    asked = ((requested.get("resources") or {}).get("requests") or {}).get("storage")
    if "storage" not in volume.spec:
        return str(asked)
    size = image if asked is None else ceil(Quantity(str(asked)).fraction)
    return str(size if mode == _BLOCK else with_overhead(size))


def with_overhead(image: int) -> int:
    """How large a file system must be for an image."""
    return ceil(ceil(Fraction(image, _MIB)) * _MIB * (1 + OVERHEAD))


def image_in(claim: PersistentVolumeClaim | None) -> int:
    """How large the image in a claim is: CDI looks into one that it has filled itself, and believes the others."""
    if claim is None:
        return 1 << 30
    requests: dict[str, Any] = claim.spec.resources.requests if claim.spec.resources else {}
    size = Quantity(str(claim.status.capacity.get("storage") or requests.get("storage", "1Gi"))).fraction
    if claim.spec.volume_mode == _BLOCK or claim.metadata.annotations.get(CONTENT) != "kubevirt":
        return ceil(size)
    return floor(size / (1 + OVERHEAD) / _MIB) * _MIB


def _default(classes: Sequence[StorageClass]) -> str:
    """The class for machines, else that for everything."""
    for note in (DEFAULT_VIRT, DEFAULT):
        marked = [kind for kind in classes if kind.metadata.annotations.get(note) == "true"]
        if marked:
            newest = max(kind.metadata.creation_timestamp or "" for kind in marked)
            return min(kind.metadata.name for kind in marked if (kind.metadata.creation_timestamp or "") == newest)
    return ""


def _dashed(kind: str) -> str:
    """VolumeImportSource → volume-import-source."""
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("-")
