"""The schemas of custom kinds as they are published: OpenAPI v3 in full, v2 as far as it can express them.

`schema_for` and `list_schema_for` give the schemas of a kind and of its list, `model_name` the names under which they
are published. What every kind shares (`apiVersion`, `kind`, the description of `metadata`) is passed by the publisher,
which has it already for the built-in kinds. Upstream: pkg/controller/openapi/builder/builder.go and openapi/v2.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from konverge.apiserver.crd.schema.structural import schema_of
from konverge.apiserver.strategy import Obj

_JUNCTORS = ("allOf", "oneOf", "anyOf", "not")
_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts that all kinds have in common."""

    api_version: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    kind: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    metadata: str = ""
    """Description of `metadata` of an object."""
    list_metadata: str = ""


def model_name(group: str, version: str, kind: str) -> str:
    """`com.example.v1.Kind`"""
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def schema_for(definition: Obj, version: str, shared: Shared | None = None, *, v2: bool = False) -> Obj:
    """The schema of a kind in one version."""
    shared = shared or Shared()
    spec = definition["spec"]
    raw = schema_of(_version(spec, version).get("schema"))
    hidden = (
        v2
        and raw is not None
        and (raw.get("x-kubernetes-preserve-unknown-fields") or spec.get("preserveUnknownFields"))
    )
    if raw is None or hidden:
        made: Obj = {"type": "object"}
    else:
        made = _reduced(raw) if v2 else _unfolded(raw)
        properties = made.setdefault("properties", {})
        properties["metadata"] = _reference(_OBJECT_META, shared.metadata, v2)
        properties["apiVersion"], properties["kind"] = dict(shared.api_version), dict(shared.kind)
        _complete_embedded(made, shared, v2)
        made["properties"] = dict(sorted(made["properties"].items()))
    made["x-kubernetes-group-version-kind"] = [
        {"group": spec["group"], "kind": spec["names"]["kind"], "version": version}
    ]
    return _with_selectable(made, spec, version, v2)


def list_schema_for(definition: Obj, version: str, shared: Shared | None = None, *, v2: bool = False) -> Obj:
    """The schema of a list of the kind."""
    shared = shared or Shared()
    spec, names = definition["spec"], definition["spec"]["names"]
    item = _ref(model_name(spec["group"], version, names["kind"]), v2)
    docs = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
    made: Obj = {
        "description": f"{names['listKind']} is a list of {names['kind']}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": dict(shared.api_version),
            "items": {"description": f"List of {names['plural']}. More info: {docs}", "type": "array", "items": item},
            "kind": dict(shared.kind),
            "metadata": _reference(_LIST_META, shared.list_metadata, v2),
        },
        "x-kubernetes-group-version-kind": [{"group": spec["group"], "kind": names["listKind"], "version": version}],
    }
    return _with_selectable(made, spec, version, v2)


def _version(spec: Obj, name: str) -> Obj:
    named: Obj = next((version for version in spec["versions"] if version["name"] == name), {})
    return named


def _with_selectable(made: Obj, spec: Obj, version: str, v2: bool) -> Obj:
    fields = _version(spec, version).get("selectableFields") or []
    if fields and not v2:
        paths = [{"fieldPath": selectable["jsonPath"].removeprefix(".")} for selectable in fields]
        made["x-kubernetes-selectable-fields"] = paths
    return made


def _ref(name: str, v2: bool) -> Obj:
    return {"$ref": f"#/{'definitions' if v2 else 'components/schemas'}/{name}"}


def _reference(name: str, description: str, v2: bool) -> Obj:
    """A reference with a description: in v3 nothing may stand beside `$ref`, so it is wrapped."""
    text = {"description": description} if description else {}
    return {**text, **_ref(name, v2)} if v2 else {**text, "allOf": [_ref(name, v2)]}


def _unfolded(raw: Mapping[str, Any]) -> Obj:
    """v3: as written, with the meaning of int-or-string added. Upstream: Unfold (schema/unfold.go)."""
    made = deepcopy(dict(raw))
    if raw.get("x-kubernetes-int-or-string") and not raw.get("anyOf") and not _has_pattern(raw):
        made["anyOf"] = deepcopy(_INT_OR_STRING)
    return _descend(made, _unfolded)


def _has_pattern(raw: Mapping[str, Any]) -> bool:
    return bool(raw.get("allOf")) and raw["allOf"][0].get("anyOf") == _INT_OR_STRING


# upstream: ToStructuralOpenAPIV2 (pkg/controller/openapi/v2/conversion.go)
def _reduced(raw: Mapping[str, Any]) -> Obj:
    """v2: without alternatives, defaults and null; what old versions of kubectl cannot read becomes untyped."""
    made = {name: deepcopy(value) for name, value in raw.items() if name not in (*_JUNCTORS, "default")}
    nullable = made.pop("nullable", False)
    keeps = bool(made.get("x-kubernetes-preserve-unknown-fields"))
    if nullable or keeps:
        made.pop("items", None)
        made.pop("properties", None)
    if nullable or (keeps and made.get("type") == "object") or (made.get("type") == "array" and "items" not in made):
        made.pop("type", None)
    nulls = [name for name, sub in (raw.get("properties") or {}).items() if sub.get("nullable")]
    required = [name for name in made.get("required") or () if name not in nulls]
    made.pop("required", None)
    if required:
        made["required"] = required
    return _descend(made, _reduced)


def _descend(made: Obj, change: Any) -> Obj:
    if isinstance(made.get("properties"), dict):
        made["properties"] = {name: change(sub) for name, sub in sorted(made["properties"].items())}
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            made[name] = change(made[name])
    return made


def _complete_embedded(made: Obj, shared: Shared, v2: bool) -> None:
    """Embedded objects have a kind, a version and metadata, whatever the schema says of them."""
    for sub in (made.get("properties") or {}).values():
        _complete_embedded(sub, shared, v2)
    for name in ("items", "additionalProperties"):
        if isinstance(made.get(name), dict):
            _complete_embedded(made[name], shared, v2)
    if not made.get("x-kubernetes-embedded-resource") or (v2 and made.get("x-kubernetes-preserve-unknown-fields")):
        return
    properties = made.setdefault("properties", {})
    properties["apiVersion"], properties["kind"] = dict(shared.api_version), dict(shared.kind)
    properties["metadata"] = _reference(_OBJECT_META, shared.metadata, v2)
    made["required"] = [
        *(made.get("required") or ()),
        *(n for n in ("kind", "apiVersion") if n not in (made.get("required") or ())),
    ]
