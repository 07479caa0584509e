"""Types, owners and objects for the tests of merge."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.merge import Owner, reset_fields
from konverge.apiserver.schema import TypeNode, from_structural, lookup

Obj = dict[str, Any]
STRING = {"type": "string"}
STACK = from_structural(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "ports": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "proto"],
                        "items": {
                            "type": "object",
                            "properties": {
                                "port": {"type": "integer"},
                                "proto": {"type": "string", "default": "TCP"},
                                "name": STRING,
                            },
                        },
                    },
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
                    "args": {"type": "array", "items": STRING},
                    "env": {"type": "object", "additionalProperties": STRING},
                    "atom": {
                        "type": "object",
                        "x-kubernetes-map-type": "atomic",
                        "properties": {"a": STRING, "b": STRING},
                    },
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                    "n": {"type": "integer"},
                },
            },
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }
)


def builtin(group: str, version: str, kind: str) -> TypeNode:
    node = lookup(group, version, kind)
    assert node is not None
    return node


CONFIG_MAP = builtin("", "v1", "ConfigMap")
DEPLOYMENT = builtin("apps", "v1", "Deployment")


def stack_owner(manager: str, now: str = "2026-01-01T00:00:01Z", **more: Any) -> Owner:
    own = reset_fields.may_own("x.io", "stacks", more.get("subresource", ""))
    return Owner(node=STACK, manager=manager, api_version="x.io/v1", kind="Stack", now=now, may_own=own, **more)


def map_owner(manager: str, now: str = "2026-01-01T00:00:01Z") -> Owner:
    return Owner(node=CONFIG_MAP, manager=manager, api_version="v1", kind="ConfigMap", now=now)


def stack(spec: Obj | None, **more: Any) -> Obj:
    obj = {"apiVersion": "x.io/v1", "kind": "Stack", "metadata": {"name": "s"}, **more}
    return obj if spec is None else {**obj, "spec": spec}


def config_map(data: Obj | None, **metadata: Any) -> Obj:
    obj: Obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}
    return obj if data is None else {**obj, "data": data}


def owned(obj: Obj) -> dict[str, Any]:
    """The fields that each manager owns, by `manager operation`."""
    entries = obj["metadata"].get("managedFields", [])
    return {f"{entry['manager']} {entry['operation']}": entry["fieldsV1"] for entry in entries}
