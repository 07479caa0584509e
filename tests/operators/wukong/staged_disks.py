"""Disks for a stage: a claim, a DataVolume and a storage class as the cache shows them, and the step run on them."""

from __future__ import annotations

from typing import Any

from konverge.objects import from_dict, to_dict
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.operators.wukong.children.disks import claim_for, data_volume_for
from konverge.operators.wukong.kinds import DataVolume
from konverge.operators.wukong.names import REQUESTED_SIZE
from konverge.operators.wukong.status import VolumeStatus
from konverge.operators.wukong.steps.disks import disks
from konverge.operators.wukong.steps.machine import look
from tests.operators.wukong.specs import Spec, disk, wukong
from tests.operators.wukong.stage import Stage, controlled_by, made

IMAGE = {"image": "https://x/y.img", "storageClassName": "fast"}
ADOPT = "konverge.dev/adopt-by"
MINE = {ADOPT: "Wukong/web"}
CDI = controlled_by("DataVolume", "web-system")


def storage(*, grows: bool = True, mode: str = "Immediate") -> StorageClass:
    return from_dict(
        StorageClass,
        {"metadata": {"name": "fast"}, "provisioner": "p", "volumeBindingMode": mode, "allowVolumeExpansion": grows},
    )


def claim(phase: str | None = "Bound", size: str = "10Gi", **more: Any) -> PersistentVolumeClaim:
    """As it would have been made, unless `more` says otherwise."""
    desired = to_dict(claim_for(wukong(), wukong().spec.disks[0]))
    meta = {"labels": desired["metadata"]["labels"], "annotations": MINE, **more.pop("meta", {})}
    requests = {"resources": {"requests": {"storage": size}}, "storageClassName": "fast"}
    status = {"phase": phase, **({"capacity": {"storage": size}} if phase == "Bound" else {})}
    changed = desired["spec"] | requests | more.pop("spec", {})
    return made(PersistentVolumeClaim, "web-system", meta=meta, spec=changed, status=status, **more)


def volume(phase: str = "Succeeded", given: Spec | None = None, **more: Any) -> DataVolume:
    owner = wukong(given or disk(**IMAGE))
    desired = to_dict(data_volume_for(owner, owner.spec.disks[0]))
    meta = {"labels": desired["metadata"]["labels"], "annotations": MINE, **more.pop("meta", {})}
    status = {"phase": phase, **more.pop("status", {})}
    return made(DataVolume, "web-system", meta=meta, spec=desired["spec"], status=status, **more)


def filled(size: str = "11Gi", **more: Any) -> PersistentVolumeClaim:
    """A claim that CDI has made, for a disk that asked for 10Gi."""
    meta = {"annotations": {**MINE, REQUESTED_SIZE: "10Gi"}, **more.pop("meta", {})}
    return claim(size=size, meta=meta, owners=more.pop("owners", [CDI]), **more)


async def run(given: Spec, *objects: Any, **more: Any) -> Stage:
    stage = Stage(given, *objects, **more)
    await look(stage.state)
    await disks(stage.state)
    return stage


def entry(stage: Stage) -> VolumeStatus:
    (result,) = stage.state.volumes
    return result


def known(**fields: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "system", "pvcName": "web-system", **fields}]}
