"""Validation of a definition's spec: group, scope, versions, names, columns, subresources, schemas.

Upstream: validateCustomResourceDefinitionSpec (apiextensions-apiserver
pkg/apis/apiextensions/validation/validation.go).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from konverge.apiserver.crd.cel.rule_validation import Budget, check_default, check_rules, root_context
from konverge.apiserver.crd.definition import accepted, conversion_validation, default_validation, structural_validation
from konverge.apiserver.crd.definition.schema_validation import Checker, Place
from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.field_path import FieldPathError, resolve
from konverge.apiserver.crd.schema.structural import schema_of
from konverge.apiserver.field_errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many
from konverge.apiserver.go.structs import field_names, internal
from konverge.apiserver.strategy import Obj
from konverge.objects.names import dns_1035_errors, dns_subdomain_errors

MAX_SELECTABLE = 8  # upstream: MaxSelectableFields
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_COMMON_AT_ROOT = {"type", "properties", "required", "description"}
_VERSIONS = "[]apiextensions.CustomResourceDefinitionVersion"
_SHARED = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


class Hub(msgspec.Struct):
    """A definition in the API server's internal form: parts that all versions share stand once, at `spec.validation`,
    `spec.subresources` and so on, and errors name those paths.

    `shared` holds these parts (None: differing or absent), `versions` the rest. Upstream:
    Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec.
    """

    shared: dict[str, Any]
    versions: list[Obj] = msgspec.field(default_factory=list)
    absent: bool = False
    """There is no list of versions, which is shown otherwise than an empty one."""


def lift(spec: Mapping[str, Any]) -> Hub:
    versions = [dict(version) for version in spec.get("versions") or ()]
    shared: dict[str, Any] = dict.fromkeys(_SHARED)
    for part in _SHARED if versions else ():
        first = versions[0].get(part)
        if all((version.get(part) or None) == (first or None) for version in versions):
            shared[part] = first
            for version in versions:
                version.pop(part, None)
    return Hub(shared, versions, absent=spec.get("versions") is None)


class Options(msgspec.Struct, frozen=True):
    """What an update must not break further. Each is True unless the stored definition breaks it already.

    Upstream: validationOptions.
    """

    recognized_reviews: bool = True
    schemas: bool = True
    valid_types: bool = True
    structural: bool = True
    pruned_defaults: bool = True
    atomic_sets: bool = True
    list_keys: bool = True
    same_schemas: frozenset[str] = frozenset()
    """Versions whose schema does not change: the cost of their rules was accepted when they were written."""
    many_selectable: frozenset[str] = msgspec.field(default_factory=frozenset)


def check(spec: Obj, options: Options) -> Iterator[FieldError]:
    hub = lift(spec)
    yield from _group(spec.get("group") or "")
    yield from _one_of("spec.scope", spec.get("scope") or "", ["Cluster", "Namespaced"])
    if schema_of(hub.shared["schema"]) is None:
        for index, version in enumerate(hub.versions):
            if schema_of(version.get("schema")) is None and (options.schemas or version.get("served")):
                detail = "" if options.schemas else "because otherwise all fields are pruned"
                yield required(f"spec.versions[{index}].schema.openAPIV3Schema", detail)
    for index, version in enumerate(hub.versions):
        path = f"spec.versions[{index}]"
        yield from _label(version.get("name") or "", f"{path}.name")
        yield from _version(version, path, options, _has_status(hub, version))
    yield from _versions(hub)
    for name in ("plural", "singular", "kind", "listKind"):
        if not (spec.get("names") or {}).get(name):
            yield required(f"spec.names.{name}")
    yield from names(spec.get("names") or {}, "spec.names")
    yield from _shared(hub, options)
    yield from conversion_validation.check(
        spec.get("conversion"), "spec.conversion", recognized=options.recognized_reviews
    )


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif errors := dns_subdomain_errors(group):
        yield invalid("spec.group", group, ",".join(errors))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def _one_of(path: str, value: str, accepted: list[str]) -> Iterator[FieldError]:
    if not value:
        yield required(path)
    elif value not in accepted:
        yield not_supported(path, value, accepted)


def _has_status(hub: Hub, version: Obj) -> bool:
    subresources = version.get("subresources") or hub.shared["subresources"] or {}
    return subresources.get("status") is not None


def _version(version: Obj, path: str, options: Options, has_status: bool) -> Iterator[FieldError]:
    for error in _deprecation(version):
        yield invalid(f"{path}.deprecationWarning", version.get("deprecationWarning"), error)
    same = version.get("name") in options.same_schemas
    yield from _validation(version.get("schema"), f"{path}.schema", options, has_status=has_status, same_schema=same)
    yield from _parts(version, path, options, version.get("name") or "")


def _parts(owner: Mapping[str, Any], path: str, options: Options, version: str) -> Iterator[FieldError]:
    yield from _subresources(owner.get("subresources") or {}, f"{path}.subresources")
    for index, column in enumerate(owner.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")
    selectable = owner.get("selectableFields") or []
    if selectable:
        schema = schema_of(owner.get("schema"))
        if schema is None:
            yield invalid(
                f"{path}.selectableFields", "", "may only be set when `version.schema.openAPIV3Schema` is not included"
            )
        else:
            yield from _selectable(selectable, schema, f"{path}.selectableFields", version in options.many_selectable)


def _shared(hub: Hub, options: Options) -> Iterator[FieldError]:
    first = hub.versions[0].get("name") if hub.versions else ""
    has_status = _has_status(hub, {}) or any(_has_status(hub, version) for version in hub.versions)
    yield from _validation(
        hub.shared["schema"],
        "spec.validation",
        options,
        has_status=has_status,
        same_schema=first in options.same_schemas,
    )
    shared = {**hub.shared}
    if shared["schema"] is None and shared["selectableFields"]:
        yield invalid("spec.selectableFields", "", "may only be set when validations.schema is included")
        shared["selectableFields"] = None
    yield from _parts(shared, "spec", options, "")


def _deprecation(version: Obj) -> Iterator[str]:  # upstream: validateDeprecationWarning
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    for index, char in enumerate(warning):
        if char != " " and unicodedata.category(char)[0] in "CZ":
            at = len(warning[:index].encode())
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            return


def _versions(hub: Hub) -> Iterator[FieldError]:
    names = [version.get("name") for version in hub.versions]
    details = ["must contain unique version names"] if len(set(names)) < len(names) else []
    if sum(bool(version.get("storage")) for version in hub.versions) != 1:
        details.append("must have exactly one version marked as storage version")
    for detail in details:
        yield invalid("spec.versions", None if hub.absent else internal(_VERSIONS, hub.versions), detail)
    if names and names[0]:  # the internal form repeats the first version's name at the top, where it is validated too
        yield from _label(names[0], "spec.version")


def names(given: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Names of a definition's spec or status, as far as they are set. Upstream:
    ValidateCustomResourceDefinitionNames."""
    for name in ("plural", "singular"):
        if given.get(name):
            yield from _label(given[name], f"{path}.{name}")
    for name in ("kind", "listKind"):
        if given.get(name) and (errors := dns_1035_errors(given[name].lower())):
            detail = "may have mixed case, but should otherwise match: " + ",".join(errors)
            yield invalid(f"{path}.{name}", given[name], detail)
    for index, value in enumerate(given.get("shortNames") or ()):
        yield from _label(value, f"{path}.shortNames[{index}]")
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    for index, value in enumerate(given.get("categories") or ()):
        yield from _label(value, f"{path}.categories[{index}]")


def _label(value: str, path: str) -> Iterator[FieldError]:
    if errors := dns_1035_errors(value):
        yield invalid(path, value, ",".join(errors))


def _column(column: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Upstream: ValidateCustomResourceColumnDefinition."""
    if not column.get("name"):
        yield required(f"{path}.name")
    kind, form, where = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if kind not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    if form and form not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not where:
        yield required(f"{path}.JSONPath")
    else:
        yield from _simple_path(where, f"{path}.JSONPath")


def _simple_path(text: str, path: str, *, under: tuple[str, ...] = (), parent: str = "") -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")
    elif under and not text.startswith(tuple(f".{name}." for name in under)):
        yield invalid(path, text, f"should be a json path under {parent}")


def _subresources(subresources: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", "spec"), ("statusReplicasPath", "status")):
        if not scale.get(name):
            yield required(f"{path}.scale.{name}")
        else:
            yield from _simple_path(scale[name], f"{path}.scale.{name}", under=(root,), parent=f".{root}")
    if scale.get("labelSelectorPath"):
        selector, place = scale["labelSelectorPath"], f"{path}.scale.labelSelectorPath"
        yield from _simple_path(selector, place, under=("spec", "status"), parent="either .spec or .status")


def _selectable(fields: list[Obj], schema: Mapping[str, Any], path: str, too_many_before: bool) -> Iterator[FieldError]:
    """Upstream: ValidateCustomResourceSelectableFields."""
    seen: set[str] = set()
    for index, selectable in enumerate(fields):
        place, where = f"{path}[{index}].jsonPath", selectable.get("jsonPath") or ""
        if not where:
            yield required(place)
            continue
        try:
            printed, target = resolve(where, schema, brackets=False)
        except FieldPathError as error:
            yield invalid(place, where, f"is an invalid path: {error}")
            continue
        if printed.partition(".")[0] == "metadata":
            yield invalid(place, where, "must not point to fields in metadata")
        if target.get("type") not in ("string", "boolean", "integer"):
            detail = "must point to a field of type string, boolean or integer. "
            yield invalid(place, where, detail + "Enum string fields and strings with formats are allowed.")
        if printed in seen:
            yield duplicate(place, where)
        seen.add(printed)
    if len(seen) > MAX_SELECTABLE and not too_many_before:
        yield too_many(path, len(seen), MAX_SELECTABLE)


def _validation(
    validation: Mapping[str, Any] | None, path: str, options: Options, *, has_status: bool, same_schema: bool
) -> Iterator[FieldError]:
    raw = schema_of(validation)
    if raw is None:
        return
    strictness = (options.pruned_defaults, options.valid_types, options.atomic_sets, options.list_keys)
    key = accepted.key(raw, *strictness, has_status, same_schema)
    strictest = accepted.key(raw, *(True for _ in strictness), has_status, False)
    if accepted.was_accepted(strictest) or accepted.was_accepted(key):
        return
    errors = list(_schema(raw, f"{path}.openAPIV3Schema", options, has_status=has_status, same_schema=same_schema))
    if not errors:
        accepted.remember(key)
    yield from errors


def _schema(
    raw: Mapping[str, Any], at: str, options: Options, *, has_status: bool, same_schema: bool
) -> Iterator[FieldError]:
    """Upstream: validateCustomResourceDefinitionValidation."""
    if has_status:
        yield from _root_keywords(raw, at)
    if raw.get("nullable"):
        yield forbidden(f"{at}.nullable", "nullable cannot be true at the root")
    errors: list[FieldError] = []
    unsupported = structural_validation.unsupported(raw)
    context = None
    budget = Budget(hold=not same_schema)
    if not unsupported:
        errors = structural_validation.check(raw, at)
        if not errors:
            root = structural.build(raw)
            errors = default_validation.check(root, at, pruned=options.pruned_defaults, rules=check_default)
            context = None if errors else root_context(raw, budget)
    checker = Checker(options.valid_types, options.atomic_sets, options.list_keys, check_rules)
    findings = checker.check(raw, Place(at, root=True), context)
    errors += findings.schema + findings.rules
    if unsupported and not errors:
        errors.append(invalid(at, "", unsupported))
    yield from errors
    yield from budget.exceeded(at)


def _root_keywords(raw: Mapping[str, Any], path: str) -> Iterator[FieldError]:  # upstream: allowedAtRootSchema
    """With a status subresource the schema of `status` is used alone, so the root may not hold more than properties."""
    if raw.get("type") == "object" and raw.keys() <= _COMMON_AT_ROOT:
        return
    allowed = _AT_ROOT.split()
    for title, name in field_names("apiextensions.JSONSchemaProps"):
        if not raw.get(name) and raw.get(name) != 0:
            continue
        if title == "Type":
            if raw[name] != "object":
                reason = 'only "object" is allowed as the type at the root of the schema'
                detail = f"{reason} if the status subresource is enabled"
                yield invalid(f"{path}.type", raw[name], detail)
                return
        elif title not in allowed:
            detail = (
                f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            )
            yield invalid(path, internal("apiextensions.JSONSchemaProps", raw), detail)
            return
