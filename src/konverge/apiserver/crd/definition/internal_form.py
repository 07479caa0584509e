"""A definition in the API server's internal form: common parts of all versions moved to the top.

Clients send schemas, subresources and columns per version; the server works on a form in which parts that all versions
share stand once, at `spec.validation`, `spec.subresources` and so on. Messages name those paths, and print values in
the form of the internal structs: this module makes both. Upstream: Convert_v1_CustomResourceDefinitionSpec_To_…
(pkg/apis/apiextensions/v1/conversion.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from konverge.apiserver.strategy import Obj

_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


@dataclass(slots=True)
class Hub:
    """`shared` holds the parts common to all versions (None: differing or absent); `versions` the rest."""

    shared: dict[str, Any]
    versions: list[Obj] = field(default_factory=list)


def lift(spec: Mapping[str, Any]) -> Hub:
    versions = [dict(version) for version in spec.get("versions") or ()]
    shared: dict[str, Any] = dict.fromkeys(_SHARED)
    for part in _SHARED if versions else ():
        first = versions[0].get(part)
        if all((version.get(part) or None) == (first or None) for version in versions):
            shared[part] = first
            for version in versions:
                version.pop(part, None)
    return Hub(shared, versions)


def schema_of(validation: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    schema = (validation or {}).get("openAPIV3Schema")
    return schema if isinstance(schema, Mapping) else None


def show_versions(hub: Hub) -> list[Obj]:
    return [_version(version) for version in hub.versions]


def _version(version: Obj) -> Obj:
    schema = version.get("schema")
    columns = version.get("additionalPrinterColumns")
    selectable = version.get("selectableFields")
    return {
        "Name": version.get("name", ""),
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": {"OpenAPIV3Schema": show_schema(schema.get("openAPIV3Schema"))} if schema is not None else None,
        "Subresources": _subresources(version.get("subresources")),
        "AdditionalPrinterColumns": [_column(column) for column in columns] if columns else None,
        "SelectableFields": [{"JSONPath": field.get("jsonPath", "")} for field in selectable] if selectable else None,
    }


def _subresources(subresources: Mapping[str, Any] | None) -> Obj | None:
    if subresources is None:
        return None
    scale = subresources.get("scale")
    shown = scale and {
        "SpecReplicasPath": scale.get("specReplicasPath", ""),
        "StatusReplicasPath": scale.get("statusReplicasPath", ""),
        "LabelSelectorPath": scale.get("labelSelectorPath"),
    }
    return {"Status": {} if subresources.get("status") is not None else None, "Scale": shown or None}


def _column(column: Mapping[str, Any]) -> Obj:
    names = ("name", "type", "format", "description", "priority", "jsonPath")
    titles = ("Name", "Type", "Format", "Description", "Priority", "JSONPath")
    empty: Any = {"priority": 0}
    return {title: column.get(name) or empty.get(name, "") for title, name in zip(titles, names, strict=True)}


def show_rule(rule: Mapping[str, Any]) -> Obj:
    return {
        "Rule": rule.get("rule", ""),
        "Message": rule.get("message", ""),
        "MessageExpression": rule.get("messageExpression", ""),
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath", ""),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }


# (name in the internal struct, member, value when absent), in the order of the struct.
_PLAIN: tuple[tuple[str, str, Any], ...] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
FIELDS = tuple((title, name) for title, name, _ in _PLAIN)


def show_schema(raw: Any) -> Obj | None:
    """A schema as its internal struct."""
    if not isinstance(raw, Mapping):
        return None
    return {title: _member(name, raw.get(name, empty), empty) for title, name, empty in _PLAIN}


def _member(name: str, value: Any, empty: Any) -> Any:
    if value is None:
        return empty
    if name in ("allOf", "oneOf", "anyOf"):
        return [show_schema(sub) for sub in value]
    if name == "not":
        return show_schema(value)
    if name in ("properties", "patternProperties", "definitions"):
        return {key: show_schema(value[key]) for key in sorted(value)}
    if name in ("additionalProperties", "additionalItems"):
        return {"Allows": value is not False, "Schema": show_schema(value)}
    if name == "items":
        listed = [show_schema(sub) for sub in value] if isinstance(value, list) else None
        return {"Schema": show_schema(value), "JSONSchemas": listed}
    if name == "x-kubernetes-validations":
        return [show_rule(rule) for rule in value]
    if name == "externalDocs":
        return {"Description": value.get("description", ""), "URL": value.get("url", "")}
    return value
