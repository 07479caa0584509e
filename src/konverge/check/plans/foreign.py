"""An object of others under a name that the operator uses: of the same kind, with contents of its own."""

from __future__ import annotations

import copy
from typing import Any

from konverge.check.model import Obj

LABEL = {"app": "of-others"}


def stranger(obj: Obj) -> Obj | None:
    """An object of the same kind and name that has nothing to do with the operator; None for kinds without one."""
    made = _CONTENTS.get(obj.get("kind", ""))
    if made is None:
        return None
    metadata = {"name": obj["metadata"]["name"], "labels": dict(LABEL)}
    if obj["metadata"].get("namespace"):
        metadata["namespace"] = obj["metadata"]["namespace"]
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, **made(obj)}


def _data(obj: Obj) -> Obj:
    return {"data": {"of-others": "eWVz" if obj["kind"] == "Secret" else "yes"}}


def _service(obj: Obj) -> Obj:
    return {"spec": {"selector": dict(LABEL), "ports": [{"name": "others", "port": 9}]}}


def _workload(obj: Obj) -> Obj:
    """The same pods under other labels: whatever the cluster accepts of the original it accepts of this."""
    spec: dict[str, Any] = copy.deepcopy(obj["spec"])
    for field in ("volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy"):
        spec.pop(field, None)
    template = {
        "metadata": {"labels": dict(LABEL)},
        "spec": {"containers": [{"name": "of-others", "image": "example.invalid/of-others:1"}]},
    }
    kept = {key: spec[key] for key in ("serviceName",) if key in spec}
    return {"spec": {**kept, "replicas": 1, "selector": {"matchLabels": dict(LABEL)}, "template": template}}


def _claim(obj: Obj) -> Obj:
    return {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}


_CONTENTS: dict[str, Any] = {
    "ConfigMap": _data,
    "Secret": _data,
    "Service": _service,
    "Deployment": _workload,
    "StatefulSet": _workload,
    "PersistentVolumeClaim": _claim,
    "ServiceAccount": lambda obj: {},
}
