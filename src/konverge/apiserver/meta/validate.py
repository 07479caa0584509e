"""Validation of an object's metadata, on creation and on update.

Upstream: apimachinery/pkg/api/validation/objectmeta.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from konverge.apiserver import field_errors
from konverge.apiserver.field_errors import FieldError, forbidden, invalid, required
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http.options import manager_errors
from konverge.apiserver.kinds.rules.names import annotation_errors, label_errors, object_name
from konverge.apiserver.strategy import Obj
from konverge.objects.names import dns_label_errors, dns_subdomain_errors, qualified_name_errors

NameCheck = Callable[[str, bool], Sequence[str]]

_SUBRESOURCE_LIMIT = 256
_subdomain = object_name(dns_subdomain_errors)

STANDARD_FINALIZERS = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def on_create(metadata: Obj, *, namespaced: bool, name_check: NameCheck | None, builtin: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    check = name_check or _subdomain
    base = metadata.get("generateName")
    if base:
        errors += [invalid("metadata.generateName", base, detail) for detail in check(base, True)]
    name = metadata.get("name")
    if not name:
        errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, detail) for detail in check(name, False)]
    return errors + _common(metadata, namespaced=namespaced, builtin=builtin)


def _common(metadata: Obj, *, namespaced: bool, builtin: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    namespace = metadata.get("namespace")
    if namespaced:
        if not namespace:
            errors.append(required("metadata.namespace"))
        else:
            errors += [invalid("metadata.namespace", namespace, detail) for detail in dns_label_errors(namespace)]
    elif namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    if (generation := metadata.get("generation", 0)) < 0:
        errors.append(invalid("metadata.generation", generation, "must be greater than or equal to 0"))
    if labels := metadata.get("labels"):
        errors += label_errors(labels, "metadata.labels")
    if annotations := metadata.get("annotations"):
        errors += annotation_errors(annotations, "metadata.annotations")
    if owners := metadata.get("ownerReferences"):
        errors += owner_errors(owners, "metadata.ownerReferences")
    if finalizers := metadata.get("finalizers"):
        errors += finalizer_errors(finalizers, "metadata.finalizers", builtin=builtin)
    if managed := metadata.get("managedFields"):
        errors += managed_field_errors(managed)
    return errors


def on_update(metadata: Obj, old: Obj, *, namespaced: bool, builtin: bool) -> list[FieldError]:
    """`metadata` has been through `system.keep`, so that only real changes remain.

    Upstream: ValidateObjectMetaAccessorUpdate.
    """
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        errors += _new_finalizers(metadata, old)
    if not metadata.get("resourceVersion"):
        errors.append(invalid("metadata.resourceVersion", "", "must be specified for an update"))
    for field in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        if metadata.get(field) != old.get(field):
            errors.append(invalid(f"metadata.{field}", metadata.get(field), "field is immutable"))
    for field, check in (
        ("labels", label_errors),
        ("annotations", annotation_errors),
        ("ownerReferences", owner_errors),
    ):
        if metadata.get(field) != old.get(field):
            errors += check(metadata.get(field), f"metadata.{field}")
    if metadata.get("finalizers") != old.get("finalizers"):
        errors += finalizer_errors(metadata.get("finalizers"), "metadata.finalizers", builtin=builtin)
    return errors + managed_field_errors(metadata.get("managedFields"))


def _new_finalizers(metadata: Obj, old: Obj) -> list[FieldError]:
    extra = sorted(set(metadata.get("finalizers") or ()) - set(old.get("finalizers") or ()))
    if not extra:
        return []
    listed = ", ".join(quote(name) for name in extra)
    detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [forbidden("metadata.finalizers", detail)]


def owner_errors(value: list[Any] | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    controller = ""
    for index, owner in enumerate(value or ()):
        errors += _owner(owner, f"{path}[{index}]")
        if owner.get("controller"):
            name = f"{owner.get('kind', '')}/{owner.get('name', '')}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                errors.append(invalid(path, value, detail))
            else:
                controller = name
    return errors


def _owner(owner: Obj, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    version = owner.get("apiVersion") or ""
    if not version:
        errors.append(required(f"{path}.apiVersion", "must not be empty"))
    elif version.count("/") > 1 or version.endswith("/"):
        errors.append(invalid(f"{path}.apiVersion", version, "must be <group>/<version> or <version>"))
    errors += [
        required(f"{path}.{field}", "must not be empty") for field in ("kind", "name", "uid") if not owner.get(field)
    ]
    if (version, owner.get("kind")) == ("v1", "Event"):
        errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def finalizer_errors(value: list[str] | None, path: str, *, builtin: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    names = value or []
    for name in names:
        errors += [invalid(path, name, detail) for detail in qualified_name_errors(name)]
    if "orphan" in names and "foregroundDeletion" in names:
        errors.append(invalid(path, names, "finalizer orphan and foregroundDeletion cannot be both set"))
    if builtin:
        for index, name in enumerate(names):
            errors += _qualified_finalizer(name, f"{path}[{index}]")
    return errors


def _qualified_finalizer(name: str, path: str) -> list[FieldError]:
    if "/" in name or name in STANDARD_FINALIZERS:
        return []
    return [invalid(path, name, "name is neither a standard finalizer name nor is it fully qualified")]


def managed_field_errors(entries: list[Obj] | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, entry in enumerate(entries or ()):
        path = f"metadata.managedFields[{index}]"
        operation = entry.get("operation") or ""
        if not operation:
            errors.append(required(f"{path}.operation", "must not be empty"))
        elif operation not in ("Apply", "Update"):
            errors.append(field_errors.not_supported(f"{path}.operation", operation, ["Apply", "Update"]))
        fields_type = entry.get("fieldsType") or ""
        if fields_type not in ("", "FieldsV1"):
            errors.append(invalid(f"{path}.fieldsType", fields_type, "must be `FieldsV1`"))
        errors += manager_errors(entry.get("manager") or "", f"{path}.manager")
        if len(entry.get("subresource") or "") > _SUBRESOURCE_LIMIT:
            errors.append(field_errors.too_long(f"{path}.subresource", _SUBRESOURCE_LIMIT))
    return errors
