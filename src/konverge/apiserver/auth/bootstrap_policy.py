"""The roles and bindings that every cluster has, from data/rbac.json.gz (tools/generate_rbac.py).

Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy.
"""

from __future__ import annotations

import gzip
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.auth.rbac import GROUP
from konverge.apiserver.meta.system import timestamp

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects

_LABEL = "kubernetes.io/bootstrapping"
_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate"


def create_all(objects: Objects) -> None:
    """Create what is missing."""
    data = gzip.decompress(resources.files("konverge.apiserver").joinpath("data/rbac.json.gz").read_bytes())
    now = timestamp()
    for plural, items in msgspec.json.decode(data).items():
        for item in items:
            objects.create(GROUP, plural, _object(item, now))


def _object(item: dict[str, Any], now: str) -> dict[str, Any]:
    labels = {_LABEL: "rbac-defaults", **item.pop("labels", {})}
    metadata: dict[str, Any] = {"name": item.pop("name")}
    if "namespace" in item:
        metadata["namespace"] = item.pop("namespace")
    metadata["labels"] = labels
    metadata["annotations"] = {_ANNOTATION: "true"}
    metadata["managedFields"] = [_managed(item, labels, now)]
    return {"metadata": metadata, **item}


def _managed(item: dict[str, Any], labels: dict[str, str], now: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "f:metadata": {
            "f:annotations": {".": {}, f"f:{_ANNOTATION}": {}},
            "f:labels": {".": {}, **{f"f:{label}": {} for label in labels}},
        }
    }
    for key in item:
        if key == "aggregationRule":
            fields["f:aggregationRule"] = {".": {}, "f:clusterRoleSelectors": {}}
        elif key != "rules" or "aggregationRule" not in item:
            fields[f"f:{key}"] = {}
    return {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": f"{GROUP}/v1",
        "time": now,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
