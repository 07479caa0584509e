"""PersistentVolumeClaim.

Upstream: pkg/registry/core/persistentvolumeclaim/strategy.go, pkg/apis/core/validation, pkg/api/persistentvolumeclaim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import difference, internal
from konverge.apiserver.kinds.core.pod.defaults import default_claim_spec, default_resource_list
from konverge.apiserver.kinds.core.resource_names import is_native, resource_amount
from konverge.apiserver.kinds.core.volume.warnings import claim_spec_warnings
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    creation,
    field,
    given,
    one_of,
    required_saying,
    section,
    struct,
    update,
)
from konverge.apiserver.kinds.rules.defaults import fill, section_of, take
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain, qualified_name
from konverge.apiserver.kinds.rules.quantities import NANO, amount, quantity_positive
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def access_modes(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeClaimSpec
    """Known modes; ReadWriteOncePod stands alone."""
    for mode in value:
        if mode not in ACCESS_MODES:
            report.not_supported(path, mode, ACCESS_MODES)
    known = {mode for mode in value if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        return report.forbidden(path, "may not use ReadWriteOncePod with other access modes")
    return True


def _storage_request(value: Any, path: str, report: Report) -> bool:  # upstream: ValidatePersistentVolumeClaimSpec
    requests = (value.get("resources") or {}).get("requests") or {}
    place = f"{path}.resources[storage]"
    if "storage" not in requests:
        return report.required(place)
    amount = requests["storage"]
    return quantity_positive(amount, place, report) and resource_amount("storage", amount, place, report)


def _group_of(value: Any, path: str, report: Report) -> bool:  # upstream: validateDataSource, validateDataSourceRef
    group, kind = value.get("apiGroup") or "", value.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        report.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    return not group or dns_subdomain(group, f"{path}.apiGroup", report)


_SOURCE = (field("name", required_saying("")), field("kind", required_saying("")), _group_of)


def _sources_agree(value: Any, path: str, report: Report) -> bool:  # upstream: isDataSourceEqualDataSourceRef
    source, reference = value.get("dataSource"), value.get("dataSourceRef")
    if source is None or reference is None:
        return True
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        return report.invalid(path, {}, detail)
    matches = all(source.get(key) == reference.get(key) for key in ("apiGroup", "kind", "name"))
    return matches or report.invalid(path, {}, "must match dataSourceRef")


claim_spec = struct(  # upstream: ValidatePersistentVolumeClaimSpec
    field("accessModes", required_saying("at least 1 access mode is required")),
    field("selector", label_selector),
    field("accessModes", access_modes),
    _storage_request,
    field("storageClassName", dns_subdomain),
    given("volumeMode", one_of(*VOLUME_MODES)),
    field("dataSource", struct(*_SOURCE)),
    field("dataSourceRef", struct(*_SOURCE, field("namespace", dns_label))),
    _sources_agree,
    field("volumeAttributesClassName", dns_subdomain),
)


CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_RESIZE = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)

Spec = dict[str, Any]


def _defaults(claim: Obj) -> None:  # upstream: SetDefaults_PersistentVolumeClaim
    default_claim_spec(section_of(claim, "spec"))
    status = section_of(claim, "status")
    fill(status, {"phase": "Pending"})
    default_resource_list(status.get("capacity"))


# upstream: EnforceDataSourceBackwardsCompatibility, NormalizeDataSources
def _normalise_sources(spec: Spec, old: Spec | None) -> None:
    """dataSource is the old, dataSourceRef the new way to name what a volume is filled from."""
    in_use = old is not None and (old.get("dataSource") is not None or old.get("dataSourceRef") is not None)
    reference = spec.get("dataSourceRef")
    if reference is not None and reference.get("namespace") and (old is None or old.get("dataSourceRef") is None):
        # Sources in other namespaces are an alpha feature.
        del spec["dataSourceRef"]
        reference = None
    if not in_use and reference is None and not _is_claim_or_snapshot(spec.get("dataSource")):
        spec.pop("dataSource", None)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {name: reference.get(name, "") for name in ("kind", "name")}
        if reference.get("apiGroup") is not None:
            spec["dataSource"]["apiGroup"] = reference["apiGroup"]


def _is_claim_or_snapshot(source: Spec | None) -> bool:  # upstream: dataSourceIsPvcOrSnapshot
    if source is None:
        return False
    group, kind = source.get("apiGroup") or "", source.get("kind")
    return (group, kind) in (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _prepare_create(claim: Obj, context: Context) -> None:  # upstream: persistentvolumeclaimStrategy.PrepareForCreate
    claim["status"] = {"phase": "Pending"}
    _normalise_sources(claim["spec"], None)


# upstream: persistentvolumeclaimStrategy.PrepareForUpdate
def _prepare_update(claim: Obj, old: Obj, context: Context) -> None:
    claim["status"] = old["status"]
    _normalise_sources(claim["spec"], old["spec"])


_SPEC = section("spec", claim_spec)


def _annotation(obj: Obj) -> str | None:
    annotation: str | None = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION)
    return annotation


def _storage(claim: Obj) -> Any:
    return ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")


def _class_moved(new: Obj, old: Obj) -> bool:  # upstream: validateStorageClassUpgradeFromAnnotation
    """The class may move from the annotation to the field, if it stays the same."""
    before, after = _annotation(old), _annotation(new)
    wanted = new["spec"].get("storageClassName")
    if before is None or old["spec"].get("storageClassName") is not None:
        return False
    return bool(wanted == before and (after is None or after == before))


# upstream: ValidatePersistentVolumeClaimUpdate
def _unchanged_spec(new: Obj, old: Obj, path: str, report: Report) -> bool:
    spec, before = dict(new["spec"]), dict(old["spec"])
    if not before.get("volumeName") and spec.get("volumeName"):
        before["volumeName"] = spec["volumeName"]
    if _class_moved(new, old):
        spec.pop("storageClassName", None)
    else:
        _class_kept(new, old, spec, before, report)
    if new["status"].get("phase") == "Bound":
        _bound_may_grow(spec, before)
    if spec != before:
        shown = difference(*(internal("core.PersistentVolumeClaimSpec", each) for each in (before, spec)))
        detail = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        report.forbidden("spec", f"{detail}\n{shown}")
    return _sizes_and_classes(new, old, report)


# upstream: validateStorageClassUpgradeFromNil
def _class_kept(new: Obj, old: Obj, spec: Spec, before: Spec, report: Report) -> None:
    after, annotated = _annotation(new) or "", _annotation(old)
    if after != (annotated or ""):
        report.invalid(f"metadata.annotations.{CLASS_ANNOTATION}", after, IMMUTABLE)
    wanted = spec.get("storageClassName")
    if wanted is not None and before.get("storageClassName") is None and annotated in (None, wanted):
        spec.pop("storageClassName", None)


def _bound_may_grow(spec: Spec, before: Spec) -> None:  # upstream: ValidatePersistentVolumeClaimUpdate
    requests = (spec.get("resources") or {}).get("requests")
    if requests:
        was = ((before.get("resources") or {}).get("requests") or {}).get("storage", "0")
        spec["resources"] = {**spec["resources"], "requests": {**requests, "storage": was}}
    take(spec, before, "volumeAttributesClassName")


def _sizes_and_classes(new: Obj, old: Obj, report: Report) -> bool:  # upstream: ValidatePersistentVolumeClaimUpdate
    granted = (old["status"].get("capacity") or {}).get("storage")
    if amount(_storage(new)) < amount(_storage(old)) and amount(_storage(new)) <= amount(granted):
        detail = "field can not be less than status.capacity"
        report.forbidden("spec.resources.requests.storage", detail)
    mode = new["spec"].get("volumeMode")
    if mode != old["spec"].get("volumeMode"):
        report.invalid("volumeMode", mode, IMMUTABLE)
    wanted, path = new["spec"].get("volumeAttributesClassName"), "spec.volumeAttributesClassName"
    if wanted == old["spec"].get("volumeAttributesClassName"):
        return True
    if old["status"].get("currentVolumeAttributesClassName") is None or wanted:
        return True
    target = "nil" if wanted is None else "empty string"
    detail = f"update to {target} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return report.forbidden(path, detail)


def basic_amount(value: Any, path: str, report: Report) -> bool:  # upstream: validateBasicResource
    """Not negative, in whole units."""
    units = max(-(-amount(value) // NANO), -(2**63))  # as many digits as a message can hold
    return units >= 0 or report.invalid(path, units, "must be a valid resource quantity")


def _resource_key(name: str, path: str, report: Report) -> bool:  # upstream: validatePersistentVolumeClaimResourceKey
    if not qualified_name(name, path, report):
        return False
    return not is_native(name) or name == "storage" or report.not_supported(path, name, ("storage",))


# upstream: ValidatePersistentVolumeClaimStatusUpdate
def _status(new: Obj, old: Obj, path: str, report: Report) -> bool:
    status = new["status"]
    if not new["spec"].get("accessModes"):
        report.required("Spec.accessModes")
    for name, value in sorted((status.get("capacity") or {}).items()):
        basic_amount(value, f"status.capacity[{name}]", report)
    for name, value in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        _resource_key(name, "status.allocatedResourceStatuses", report)
        if value not in _RESIZE:
            report.not_supported("status.allocatedResourceStatuses", name, sorted(_RESIZE))
    for name, value in sorted((status.get("allocatedResources") or {}).items()):
        place = f"status.allocatedResources[{name}]"
        if _resource_key(name, "status.allocatedResources", report) and basic_amount(value, place, report):
            resource_amount("storage", value, place, report)
    return True


# upstream: GetWarningsForPersistentVolumeClaim
def _warnings(claim: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    if _annotation(claim) is not None:
        detail = 'deprecated since v1.8; use "storageClassName" attribute instead'
        yield f"metadata.annotations[{CLASS_ANNOTATION}]: {detail}"
    yield from claim_spec_warnings(claim["spec"], "spec")


PERSISTENT_VOLUME_CLAIM = Strategy(  # upstream: persistentvolumeclaimStrategy
    defaults=_defaults,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate_create=creation(_SPEC),
    validate_update=update(_SPEC, _unchanged_spec),
    warnings=_warnings,
    status=StatusRules(validate=update(_status)),
    returns_deleted=True,
)
