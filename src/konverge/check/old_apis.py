"""API versions that Kubernetes no longer has, for operators that still ask for them.

Only where the operator's file says `old_apis = true`, and the report says so: on a cluster of today such an operator
would not start. Definitions of v1beta1 are rewritten before the run (`modern`); requests for versions that are gone are
served from those that replaced them, where both have the same fields (`konverge.check.old_requests`).
"""

from __future__ import annotations

import copy
from typing import Any

from konverge.check.model import Obj

DEFINITIONS = "apiextensions.k8s.io"
_ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def modern(obj: Obj) -> Obj:
    """An object of a version that is gone, in the version of today; others as they are."""
    if not is_old(obj):
        return obj
    group, _, version = obj["apiVersion"].rpartition("/")
    if group == DEFINITIONS:
        return _definition(obj)
    return {**obj, "apiVersion": f"{group}/{REPLACED[group][version]}"}


def is_old(obj: Obj) -> bool:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return (group, version) == (DEFINITIONS, "v1beta1") or version in REPLACED.get(group, ())


REPLACED: dict[str, dict[str, str]] = {
    "policy": {"v1beta1": "v1"},
    "batch": {"v1beta1": "v1"},
    "rbac.authorization.k8s.io": {"v1beta1": "v1"},
    "coordination.k8s.io": {"v1beta1": "v1"},
    "storage.k8s.io": {"v1beta1": "v1"},
    "scheduling.k8s.io": {"v1beta1": "v1"},
    "events.k8s.io": {"v1beta1": "v1"},
    "autoscaling": {"v2beta2": "v2"},
    "apps": {"v1beta2": "v1"},
}
"""By group: versions that are gone, and those that have the same fields."""


# ------------------------------------------------------------------ definitions


def _definition(obj: Obj) -> Obj:
    """upstream: apiextensions v1beta1 conversion.go, Convert_v1beta1_CustomResourceDefinitionSpec_To_…"""
    spec = copy.deepcopy(obj["spec"])
    shared = {
        name: spec.pop(old)
        for old, name in (
            ("validation", "schema"),
            ("subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns"),
        )
        if spec.get(old) is not None
    }
    versions = spec.pop("versions", None) or [{"name": spec.get("version", ""), "served": True, "storage": True}]
    keeps_unknown = spec.pop("preserveUnknownFields", True) is not False
    for name in ("version", "validation", "subresources", "additionalPrinterColumns"):
        spec.pop(name, None)
    spec["versions"] = [_version({**shared, **version}, keeps_unknown=keeps_unknown) for version in versions]
    spec["conversion"] = {"strategy": "None"}
    metadata = {name: value for name, value in obj["metadata"].items() if name != "creationTimestamp"}
    return {"apiVersion": f"{DEFINITIONS}/v1", "kind": obj["kind"], "metadata": metadata, "spec": spec}


def _version(version: Obj, *, keeps_unknown: bool) -> Obj:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or dict(_ANYTHING)
    _make_structural(schema)
    if keeps_unknown:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    columns = [
        {("jsonPath" if name == "JSONPath" else name): value for name, value in column.items()}
        for column in version.get("additionalPrinterColumns") or ()
    ]
    rest = {name: value for name, value in version.items() if name not in ("schema", "additionalPrinterColumns")}
    return {**rest, "schema": {"openAPIV3Schema": schema}, **({"additionalPrinterColumns": columns} if columns else {})}


def _make_structural(schema: Any) -> None:
    """v1 asks for a type at every level; v1beta1 took what a reader can guess."""
    if not isinstance(schema, dict):
        return
    if "type" not in schema and not schema.get("x-kubernetes-int-or-string"):
        if "properties" in schema or "additionalProperties" in schema:
            schema["type"] = "object"
        elif "items" in schema:
            schema["type"] = "array"
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            schema["x-kubernetes-preserve-unknown-fields"] = True
    if not _is_keyed(schema):
        for name in ("x-kubernetes-list-type", "x-kubernetes-list-map-keys"):
            schema.pop(name, None)
    for child in (schema.get("properties") or {}).values():
        _make_structural(child)
    _make_structural(schema.get("items"))
    _make_structural(schema.get("additionalProperties"))


def _is_keyed(schema: Obj) -> bool:
    """Whether every key of a list that is a map is in each item: v1 refuses others, which old generators wrote."""
    items = schema.get("items") or {}
    required = items.get("required") or ()
    fields = items.get("properties") or {}
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    return all(key in required or "default" in fields.get(key, {}) for key in keys)
