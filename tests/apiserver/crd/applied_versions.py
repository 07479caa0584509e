"""Writes in two versions of a kind: a field has another name in each, or is known to one alone, or has another default.

The sequences and what kube-apiserver answered to them (recorded/applied_versions.json). The same requests go to a live
server in tests/real.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from konverge.wire.message import Headers, Response
from tests.apiserver.api import APPLY, MERGE
from tests.apiserver.crd.recordings import Row

GROUP = "applied.example.com"
Step = tuple[Any, ...]
"""(verb, version, manager, body[, subresource]), where `force` is an apply too; ("webhook", "fails" or "works"); or
("drop", version)."""
STRING = {"type": "string"}
RENAMED = {"v1": "size", "v2": "dims"}
ALONE = {"v1": "only1", "v2": "only2"}


def _version(name: str, storage: str) -> Row:
    fields: Row = {
        "color": {"type": "string", "default": "red"},
        "depth": {"type": "string", "default": f"of {name}"},
        "args": {"type": "array", "items": STRING},
        "env": {"type": "object", "additionalProperties": STRING},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
    }
    fields |= {names[name]: STRING for names in (RENAMED, ALONE) if name in names}
    status = {"type": "object", "properties": {"phase": STRING}}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": fields}, "status": status}}
    return {
        "name": name,
        "served": True,
        "storage": name == storage,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }


def definition(name: str, storage: str, webhook: Row | None) -> Row:
    """A kind of its own for each `name`; v0 has neither of the fields that differ."""
    client = {"conversionReviewVersions": ["v1"], "clientConfig": webhook}
    conversion = {"strategy": "Webhook", "webhook": client} if webhook else {"strategy": "None"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"boxes.{name}.{GROUP}"},
        "spec": {
            "group": f"{name}.{GROUP}",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "kind": "Box"},
            "conversion": conversion,
            "versions": [_version(version, storage) for version in ("v0", "v1", "v2")],
        },
    }


def selectable(name: str, storage: str, webhook: Row | None) -> Row:
    """The same, whose objects are selected by the field that has another name in each version."""
    made = definition(name, storage, webhook)
    for version in made["spec"]["versions"]:
        if version["name"] in RENAMED:
            version["selectableFields"] = [{"jsonPath": f".spec.{RENAMED[version['name']]}"}]
    return made


class Webhook:
    """Renames the field, and loses the one that the other version does not know."""

    def __init__(self) -> None:
        self.fails = False

    def __call__(self, request: Row) -> Response:
        result = {"status": "Failed", "message": "no conversion today"} if self.fails else {"status": "Success"}
        made = [] if self.fails else [convert(obj, request["desiredAPIVersion"]) for obj in request["objects"]]
        response = {"uid": request["uid"], "result": result, "convertedObjects": made}
        body = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response}
        return Response(200, Headers.of({"content-type": "application/json"}), json.dumps(body).encode())


def convert(obj: Row, desired: str) -> Row:
    out = {**obj, "apiVersion": desired}
    source, target = version_of(obj), version_of(out)
    if isinstance(obj.get("spec"), dict):
        spec = dict(obj["spec"])
        spec.pop(ALONE.get(source), None)
        if (value := spec.pop(RENAMED.get(source), None)) is not None and target in RENAMED:
            spec[RENAMED[target]] = value
        out["spec"] = spec
    return out


def exchange(step: Step, group: str, namespace: str, live: Callable[[str], Row]) -> tuple[str, str, Row, str, Row]:
    """Method, path, body, media type and query of a step; `live` reads the object at a path, for a PUT."""
    verb, version, manager, body, *subresource = step
    collection = f"/apis/{group}/{version}/namespaces/{namespace}/boxes"
    path = "/".join((collection, "a", *subresource))
    query = {"fieldManager": manager}
    whole = {"apiVersion": f"{group}/{version}", "kind": "Box", "metadata": {"name": "a"}, **body}
    if verb == "create":
        return "POST", collection, whole, "application/json", query
    if verb == "merge":
        return "PATCH", path, body, MERGE, query
    if verb == "put":
        revision = live(f"{collection}/a")["metadata"].get("resourceVersion", "")  # none in an error
        return "PUT", path, {**whole, "metadata": {"name": "a", "resourceVersion": revision}}, "application/json", query
    return "PATCH", path, whole, APPLY, query | ({"force": "true"} if verb == "force" else {})


def version_of(obj: Row) -> str:
    return str(obj["apiVersion"].rpartition("/")[2])


def seen(code: int, answer: Row) -> Row:
    """What an answer says of the object and its managers."""
    if code >= 300:  # upstream has conflicts in the order of a map
        causes = sorted((answer.get("details") or {}).get("causes", ()), key=json.dumps)
        return {"code": code, "message": sorted(answer["message"].split("\n")), "causes": causes}
    metadata = answer["metadata"]
    managers = [
        [entry["manager"], entry["operation"], version_of(entry), entry.get("subresource", ""), entry["fieldsV1"]]
        for entry in metadata.get("managedFields", ())
    ]
    shown = {"code": code, "spec": answer.get("spec"), "generation": metadata["generation"]}
    return shown | {"status": answer.get("status"), "managers": sorted(managers, key=json.dumps)}


def _apply(version: str, manager: str, verb: str = "apply", **spec: Any) -> Step:
    return verb, version, manager, {"spec": spec}


SEQUENCES: dict[str, list[Step]] = {
    "a renamed field goes with its manager": [
        _apply("v1", "one", size="1"),
        _apply("v2", "one", dims="1"),
        _apply("v2", "one"),
    ],
    "a renamed field changes, another one is taken back": [
        _apply("v1", "one", size="1", color="blue"),
        _apply("v2", "one", dims="2"),
    ],
    "a conflict over a renamed field": [
        _apply("v1", "one", size="1"),
        _apply("v2", "two", dims="2"),
        _apply("v2", "two", "force", dims="2"),
    ],
    "two managers share a field in two versions": [
        _apply("v1", "one", size="1"),
        _apply("v2", "two", dims="1"),
        _apply("v1", "one"),
        _apply("v2", "two"),
    ],
    "defaults of two versions": [
        _apply("v1", "one", depth="of v1"),
        _apply("v2", "two", depth="of v2"),
        _apply("v2", "two", depth="of v1"),
        _apply("v2", "one"),
        _apply("v2", "two"),
    ],
    "a field that the other version does not know": [
        _apply("v1", "one", only1="x", size="1"),
        _apply("v2", "one", only2="y"),
        _apply("v2", "one", dims="1"),
    ],
    "a field that the version of another manager does not know": [
        _apply("v1", "one", only1="x", size="1"),
        _apply("v2", "two", only2="y"),
        _apply("v2", "two", only2="z"),
    ],
    "lists and maps": [
        _apply("v1", "one", tags=["a", "b"], args=["x"], env={"a": "1", "b": "2"}),
        _apply("v2", "one", tags=["a"], env={"a": "1"}),
        _apply("v1", "one"),
    ],
    "updates": [
        ("create", "v1", "one", {"spec": {"size": "1"}}),
        ("merge", "v2", "two", {"spec": {"dims": "2"}}),
        ("merge", "v1", "one", {"spec": {"size": "3", "color": "blue"}}),
        ("put", "v2", "two", {"spec": {"dims": "4"}}),
    ],
    "an apply over an update": [
        ("create", "v1", "one", {"spec": {"size": "1"}}),
        _apply("v2", "two", dims="2"),
        _apply("v2", "two", "force", dims="2"),
        _apply("v2", "two"),
    ],
    "the status": [
        _apply("v1", "one", color="blue"),
        ("apply", "v1", "status", {"status": {"phase": "a"}}, "status"),
        ("apply", "v2", "two", {"spec": {"color": "blue"}, "status": {"phase": "b"}}),
        ("force", "v2", "two", {"status": {"phase": "c"}}, "status"),
    ],
    "a webhook that fails": [
        _apply("v1", "one", size="1"),
        _apply("v2", "two", color="blue"),
        ("webhook", "fails"),
        _apply("v2", "two", color="green"),
        ("merge", "v1", "three", {"spec": {"color": "green"}}),
        _apply("v1", "one", size="2"),
        ("put", "v1", "three", {"spec": {"size": "3"}}),
        ("webhook", "works"),
        _apply("v1", "one", size="3"),
    ],
    "a version that is gone": [
        _apply("v0", "one", color="blue"),
        _apply("v1", "two", color="blue"),
        ("drop", "v0"),
        _apply("v1", "two", color="green"),
        ("merge", "v1", "three", {"spec": {"color": "green"}}),
        _apply("v1", "one", color="green"),
    ],
}
FORMS = {"stored as v1": ("v1", True), "stored as v2": ("v2", True), "without a webhook": ("v1", False)}
