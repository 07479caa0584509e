"""CustomResourceDefinition as a kind: defaults, preparation and validation of creates and updates.

Upstream: pkg/registry/customresourcedefinition/strategy.go and pkg/apis/apiextensions/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from konverge.apiserver.crd.definition import (
    default_validation,
    schema_validation,
    spec_validation,
    structural_validation,
    termination,
)
from konverge.apiserver.crd.definition.conversion_validation import recognizes
from konverge.apiserver.crd.definition.naming import EMPTY_NAMES, is_true
from konverge.apiserver.crd.schema import structural
from konverge.apiserver.crd.schema.structural import Schema, schema_of
from konverge.apiserver.field_errors import FieldError, invalid, required
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.go.strfmt import effective
from konverge.apiserver.go.url import UrlError, parse_url
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

APPROVED = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


def defaults(obj: Obj) -> None:
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    names["plural"] = names.get("plural") or ""
    names["kind"] = kind = names.get("kind") or ""
    if kind:
        names["singular"] = names.get("singular") or kind.lower()
        names["listKind"] = names.get("listKind") or f"{kind}List"
    if spec.get("conversion") is None:
        spec["conversion"] = {"strategy": "None"}
    client = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if client is not None and client.get("port") is None:
        client["port"] = 443
    status = obj.setdefault("status", {})
    status.setdefault("conditions", None)
    status.setdefault("acceptedNames", dict(EMPTY_NAMES))
    if not status.get("storedVersions"):
        status["storedVersions"] = _storage(obj)


def _storage(obj: Obj) -> list[str] | None:
    names = [version["name"] for version in obj["spec"].get("versions") or () if version.get("storage")]
    return names[:1] or None


def prepare_create(obj: Obj, context: Context) -> None:
    obj["status"] = {"conditions": None, "acceptedNames": dict(EMPTY_NAMES), "storedVersions": _storage(obj)}


def prepare_update(obj: Obj, old: Obj, context: Context) -> None:
    obj["status"] = dict(old.get("status") or {})
    stored = list(obj["status"].get("storedVersions") or ())
    for name in _storage(obj) or ():
        if name not in stored:
            stored.append(name)
    obj["status"]["storedVersions"] = stored


def validate_create(obj: Obj, context: Context) -> Iterator[FieldError]:
    spec = obj.get("spec") or {}
    wanted = f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}"
    if obj["metadata"].get("name") != wanted:
        yield invalid("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    yield from spec_validation.check(spec, spec_validation.Options())
    yield from _after_spec(obj, None)


def validate_update(obj: Obj, old: Obj, context: Context) -> Iterator[FieldError]:
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    yield from spec_validation.check(spec, _tolerance(obj, old))
    names, old_names = spec.get("names") or {}, before.get("names") or {}
    if is_true(old, "Established"):
        yield from _immutable("spec.scope", spec.get("scope"), before.get("scope"))
        yield from _immutable("spec.names.kind", names.get("kind"), old_names.get("kind"))
    yield from _immutable("spec.group", spec.get("group"), before.get("group"))
    yield from _immutable("spec.names.plural", names.get("plural"), old_names.get("plural"))
    yield from _after_spec(obj, old)


def _immutable(path: str, new: Any, old: Any) -> Iterator[FieldError]:
    if new != old:
        yield invalid(path, new, "field is immutable")


def validate_status(obj: Obj, old: Obj, context: Context) -> Iterator[FieldError]:
    yield from spec_validation.names((obj.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames")


def _after_spec(obj: Obj, old: Obj | None) -> Iterator[FieldError]:
    status = obj.get("status") or {}
    yield from spec_validation.names(status.get("acceptedNames") or {}, "status.acceptedNames")
    yield from _stored(status.get("storedVersions"), obj["spec"].get("versions") or [])
    yield from _approval(obj, old)
    if obj["spec"].get("preserveUnknownFields") and not (old and old["spec"].get("preserveUnknownFields")):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        yield invalid("spec.preserveUnknownFields", True, detail)


def _stored(stored: list[str] | None, versions: list[Obj]) -> Iterator[FieldError]:
    """Upstream: ValidateCustomResourceDefinitionStoredVersions."""
    path = "status.storedVersions"
    if not stored:
        yield invalid(path, stored, "must have at least one stored version")
        return
    known = {version.get("name") for version in versions}
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(path, stored, f"must have the storage version {version.get('name')}")
    for index, name in enumerate(stored):
        if name not in known:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"{path}[{index}]", name, detail)


def _approval(obj: Obj, old: Obj | None) -> Iterator[FieldError]:  # upstream: validateAPIApproval
    group = obj["spec"].get("group") or ""
    if not f".{group}".endswith((".k8s.io", ".kubernetes.io")):
        return
    state = _approval_state(obj)
    if old is not None and _approval_state(old) == state:
        return
    path = f"metadata.annotations[{APPROVED}]"
    if state == "missing":
        yield required(path, f"protected groups must have approval annotation {quote(APPROVED)}, {_SEE}")
    elif state == "invalid":
        detail = f"protected groups must have approval annotation {quote(APPROVED)} with either a URL or a reason "
        yield invalid(path, _annotation(obj), f'{detail}starting with "unapproved", {_SEE}')


def _annotation(obj: Obj) -> str:
    return (obj["metadata"].get("annotations") or {}).get(APPROVED) or ""


def _approval_state(obj: Obj) -> str:
    text = _annotation(obj)
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    try:
        url = parse_url(text)
    except UrlError:
        return "invalid"
    return "approved" if url.host and url.scheme else "invalid"


def _schemas(obj: Obj) -> list[Schema]:
    schemas = (schema_of(version.get("schema")) for version in obj["spec"].get("versions") or ())
    return [schema for schema in schemas if schema is not None]


def _tolerance(obj: Obj, old: Obj) -> spec_validation.Options:
    """What the stored definition breaks already may stay broken. Upstream: ValidateCustomResourceDefinitionUpdate."""
    schemas = _schemas(old)
    nodes = [sub for schema in schemas for sub in structural.walk(schema)]
    sound = [schema for schema in schemas if not structural_validation.unsupported(schema)]
    old_versions = {version["name"]: version for version in old["spec"].get("versions") or ()}
    new_versions = [version for version in obj["spec"].get("versions") or () if version.get("name") in old_versions]

    def unchanged(part: str) -> frozenset[str]:
        pairs = ((version, old_versions[version["name"]]) for version in new_versions)
        return frozenset(version["name"] for version, before in pairs if version.get(part) == before.get(part))

    return spec_validation.Options(
        recognized_reviews=recognizes(old["spec"].get("conversion")),
        schemas=len(schemas) == len(old_versions),
        valid_types=all(not sub.get("type") or sub["type"] in schema_validation.TYPES for sub in nodes),
        structural=len(sound) == len(schemas) and not any(structural_validation.check(schema, "") for schema in sound),
        pruned_defaults=not any(default_validation.has_unpruned(structural.build(schema)) for schema in sound),
        atomic_sets=not any(list(schema_validation.set_items(sub, "")) for sub in nodes),
        list_keys=not any(list(schema_validation.map_keys(sub, "")) for sub in nodes),
        same_schemas=unchanged("schema"),
        many_selectable=unchanged("selectableFields"),
    )


def warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    before = set(_warnings(old)) if old is not None else set()
    return [text for text in _warnings(obj) if text not in before]


def _warnings(obj: Obj) -> list[str]:
    nodes = [sub for schema in _unique(_schemas(obj)) for sub in structural.walk(schema)]
    unknown_formats = [
        f"unrecognized format {quote(sub['format'])}"
        for sub in nodes
        if sub.get("format") and not effective(sub.get("type") or "", sub["format"])
    ]
    sets = [sub["items"] for sub in nodes if sub.get("x-kubernetes-list-type") == "set" and sub.get("items")]
    types = {items.get("type") for items in sets if isinstance(items, dict)}
    what, text = "x-kubernetes-list-type: set", "is not supported by server-side apply or CEL validation rules"
    kinds = (kind for kind in ("array", "object") if kind in types)
    return unknown_formats + [f'{what} for items of type "{kind}" {text}' for kind in kinds]


def _unique(schemas: list[Schema]) -> list[Schema]:
    """A schema that all versions share is used once."""
    return schemas[:1] if all(schema == schemas[0] for schema in schemas) else schemas


STRATEGY = Strategy(
    defaults=defaults,
    prepare_create=prepare_create,
    prepare_update=prepare_update,
    validate_create=validate_create,
    validate_update=validate_update,
    warnings=warnings,
    status=StatusRules(validate=validate_status),
    generation=True,
    unconditional_update=False,
    returns_deleted=True,
    held=termination.holds,
    on_marked=termination.mark,
)
