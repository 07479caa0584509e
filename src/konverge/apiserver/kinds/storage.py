"""storage.k8s.io: StorageClass, VolumeAttributesClass, CSIStorageCapacity, CSIDriver, CSINode, VolumeAttachment.

Upstream: pkg/registry/storage, pkg/apis/storage/validation, pkg/api/storage/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.nodes import deprecated_label
from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    creation,
    distinct,
    distinct_by,
    field,
    given,
    items,
    one_of,
    required,
    required_saying,
    same,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import (
    empty_is_null,
    generation_of_spec,
    kept,
    metadata_kept,
    prepared,
)
from konverge.apiserver.kinds.rules.conditions import longest
from konverge.apiserver.kinds.rules.defaults import each, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import dns_subdomain, map_size, qualified_name
from konverge.apiserver.kinds.rules.numbers import MAX_INT32, at_least, not_negative, token_expiration, within
from konverge.apiserver.kinds.rules.quantities import quantity_not_negative
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

# --- classes

_MOST_PARAMETERS = 512
_PARAMETERS_SIZE = 256 * 1024


def _lowered_name(value: Any, path: str, report: Report) -> bool:  # upstream: validateProvisioner
    """The message shows the name as it was compared: in small letters."""
    return qualified_name(value.lower(), path, report)


def _parameters(value: Any, path: str, report: Report) -> bool:  # upstream: validateParameters
    if len(value) > _MOST_PARAMETERS:
        return report.too_long(path, _MOST_PARAMETERS)
    if "" in value:
        report.invalid(path, "", "field can not be empty.")
    return map_size(value) <= _PARAMETERS_SIZE or report.too_long(path, _PARAMETERS_SIZE)


def _default_class(obj: Obj) -> None:  # upstream: SetDefaults_StorageClass
    fill_unset(obj, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


# upstream: validateTopologySelectorLabelRequirement
_REQUIREMENT = struct(field("values", required, items(distinct)), text("key", qualified_name))
# upstream: ValidateTopologySelectorTerm
_TERM = struct(field("matchLabelExpressions", items(_REQUIREMENT, distinct_by("key"))))


def _topologies(value: Any, path: str, report: Report) -> bool:  # upstream: validateAllowedTopologies
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(value):
        _TERM(term, f"{path}[{index}]", report)
        expressions = term.get("matchLabelExpressions") or ()
        chosen = {expression.get("key") or "": set(expression.get("values") or ()) for expression in expressions}
        if not chosen or chosen in seen:  # the real server compares with the empty slots of the terms to come, too
            report.duplicate(f"{path}[{index}].matchLabelExpressions", "")
        seen.append(chosen)
    return True


_CLASS = (  # upstream: ValidateStorageClass
    field("provisioner", _lowered_name),
    field("parameters", _parameters),
    field("reclaimPolicy", one_of("Delete", "Retain")),
    given("volumeBindingMode", one_of("Immediate", "WaitForFirstConsumer")),
    field("allowedTopologies", _topologies),
)
_DECLARED_CLASS = Declared("storage/v1.StorageClass")


# upstream: GetWarningsForStorageClass
def _class_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    for i, term in enumerate(each(obj, "allowedTopologies")):
        for j, expression in enumerate(each(term, "matchLabelExpressions")):
            detail = deprecated_label(expression.get("key") or "")
            if detail:
                yield f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {detail}"


STORAGE_CLASS = Strategy(  # upstream: storageClassStrategy
    defaults=_default_class,
    validate_create=creation(*_CLASS, _DECLARED_CLASS.created),
    validate_update=update(*_CLASS, _DECLARED_CLASS.updated),
    warnings=_class_warnings,
    returns_deleted=True,
)


_ATTRIBUTES_CLASS = (  # upstream: ValidateVolumeAttributesClass
    text("driverName", required, _lowered_name),
    field("parameters", required_saying("must contain at least one key/value pair"), _parameters),
)


def _frozen(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateVolumeAttributesClassUpdate
    for name in ("driverName", "parameters"):
        if not same(new.get(name), old.get(name)):
            report.forbidden(name, f"updates to {name} are forbidden.")
    return True


VOLUME_ATTRIBUTES_CLASS = Strategy(  # upstream: volumeAttributesClassStrategy
    validate_create=creation(*_ATTRIBUTES_CLASS),
    validate_update=update(_frozen, *_ATTRIBUTES_CLASS),
    returns_deleted=True,
)


_CAPACITY = (  # upstream: ValidateCSIStorageCapacity
    field("nodeTopology", label_selector),
    text("storageClassName", dns_subdomain),
    field("capacity", quantity_not_negative),
)


# upstream: GetWarningsForCSIStorageCapacity
def _capacity_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    topology = obj.get("nodeTopology") or {}
    for key in sorted(topology.get("matchLabels") or ()):
        detail = deprecated_label(key)
        if detail:
            yield f"nodeTopology.matchLabels.{key}: {detail}"
    for index, expression in enumerate(each(topology, "matchExpressions")):
        detail = deprecated_label(expression.get("key") or "")
        if detail:
            yield f"nodeTopology.matchExpressions[{index}].key: {detail}"


CSI_STORAGE_CAPACITY = Strategy(  # upstream: csiStorageCapacityStrategy
    validate_create=creation(*_CAPACITY),
    validate_update=update(*_CAPACITY, kept("nodeTopology", "*meta.LabelSelector"), unchanged("storageClassName")),
    warnings=_capacity_warnings,
    unconditional_update=False,
)


# --- drivers

_DRIVER_DEFAULTS = {
    "attachRequired": True,
    "podInfoOnMount": False,
    "storageCapacity": False,
    "fsGroupPolicy": "ReadWriteOnceWithFSType",
    "requiresRepublish": False,
    "seLinuxMount": False,
    "preventPodSchedulingIfMissing": False,
}
_TOKENS_IN_CONTEXT = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible "
    "logging of tokens in volume attributes"
)


def _default_driver(obj: Obj) -> None:  # upstream: SetDefaults_CSIDriver
    spec = section_of(obj, "spec")
    fill_unset(spec, _DRIVER_DEFAULTS)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def _token(value: Any, path: str, report: Report) -> bool:  # upstream: validateTokenRequests
    if not distinct(value.get("audience") or "", f"{path}.audience", report):
        return False
    seconds = value.get("expirationSeconds")
    return seconds is None or token_expiration(seconds, f"{path}.expirationSeconds", report)


def _lifecycle_modes(value: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeLifecycleModes
    for mode in value:
        one_of("Persistent", "Ephemeral")(mode, path, report)
    return True


def _tokens_in_secrets(value: Any, path: str, report: Report) -> bool:  # upstream: validateServiceAccountTokenInSecrets
    chosen = value.get("serviceAccountTokenInSecrets")
    if chosen is None or value.get("tokenRequests"):
        return True
    detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
    return report.invalid(f"{path}.serviceAccountTokenInSecrets", chosen, detail)


_DRIVER = section(  # upstream: validateCSIDriverSpec
    "spec",
    given("fsGroupPolicy", one_of("File", "None", "ReadWriteOnceWithFSType")),
    field("tokenRequests", items(_token)),
    field("volumeLifecycleModes", _lifecycle_modes),
    field("nodeAllocatableUpdatePeriodSeconds", at_least(10, "must be greater than or equal to 10 seconds")),
    _tokens_in_secrets,
)


def _attachment_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateCSIDriverUpdate
    """The real server misspells the path."""
    value = new["spec"].get("attachRequired")
    return value == old["spec"].get("attachRequired") or report.invalid("spec.attachedRequired", value, IMMUTABLE)


# upstream: csiDriverStrategy.WarningsOnCreate
def _driver_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    tokens = obj["spec"].get("tokenRequests")
    changed = old is None or not same(tokens, old["spec"].get("tokenRequests"))
    if tokens and changed and obj["spec"].get("serviceAccountTokenInSecrets") is None:
        return [_TOKENS_IN_CONTEXT]
    return ()


CSI_DRIVER = Strategy(  # upstream: csiDriverStrategy
    defaults=_default_driver,
    prepare_update=generation_of_spec,  # upstream: csiDriverStrategy.PrepareForUpdate; a new driver has none
    validate_create=creation(_DRIVER),
    validate_update=update(_DRIVER, _attachment_kept, unchanged("spec.volumeLifecycleModes")),
    warnings=_driver_warnings,
    unconditional_update=False,
    returns_deleted=True,
)


def _no_empty_lists(obj: Obj) -> None:  # upstream: csiNodeStrategy.PrepareForCreate, PrepareForUpdate
    spec = section_of(obj, "spec")
    empty_is_null(spec, "drivers")
    for entry in each(spec, "drivers"):
        empty_is_null(entry, "topologyKeys")


def _no_health(obj: Obj, old: Obj, context: Context) -> None:  # upstream: csiNodeStatusStrategy.PrepareForUpdate
    """The health of volumes is an alpha feature, and off: nothing of it is stored."""
    metadata_kept(obj, old, context)
    obj["status"] = old.get("status") or {}


def _node_id(value: Any, path: str, report: Report) -> bool:  # upstream: validateCSINodeDriverNodeID
    return len(value) <= 256 or report.invalid(path, value, "must be 256 characters or less")


def _topology_keys(value: Any, path: str, report: Report) -> bool:  # upstream: validateCSINodeDriver
    """Reported at the driver."""
    seen: set[str] = set()
    for key in value.get("topologyKeys") or ():
        if not key:
            report.required(path)
        if key in seen:
            report.duplicate(path, key)
        seen.add(key)
        qualified_name(key, path, report)
    return True


_NODE = section(  # upstream: validateCSINodeSpec
    "spec",
    field(
        "drivers",
        items(
            struct(
                text("name", required, csi_driver_name),
                text("nodeID", required, _node_id),
                field("allocatable", struct(field("count", not_negative))),
                distinct_by("name"),  # upstream: validateCSINodeDrivers
                _topology_keys,
            )
        ),
    ),
)


def _drivers_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateCSINodeUpdate
    """A driver that stays on the node does not change, except for its allocatable count."""
    before = {driver.get("name"): driver for driver in each(old["spec"], "drivers")}
    for entry in each(new["spec"], "drivers"):
        mine, theirs = _without_count(entry), _without_count(before.get(entry.get("name"), entry))
        if not same(mine, theirs):
            report.invalid("spec.drivers", internal("storage.CSINodeDriver", mine), IMMUTABLE)
    return True


def _without_count(entry: Obj) -> Obj:
    return {name: value for name, value in entry.items() if name != "allocatable"}


CSI_NODE = Strategy(  # upstream: csiNodeStrategy
    **prepared(_no_empty_lists, status=("storage.k8s.io", "v1", "CSINode")),
    validate_create=creation(_NODE),
    validate_update=update(_NODE, _drivers_kept),
    status=StatusRules(prepare=_no_health),
    unconditional_update=False,
    returns_deleted=True,
)


# --- attachments

_METADATA_SIZE = 256 * 1024
_LONGEST_MESSAGE = 1024


def _source(value: Any, path: str, report: Report) -> bool:  # upstream: validateVolumeAttachmentSource
    inline, name = value.get("inlineVolumeSpec"), value.get("persistentVolumeName")
    detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    if (inline is None) == (name is None):
        return report.required(path, detail) if inline is None else report.forbidden(path, detail)
    if name == "":
        return report.required(f"{path}.persistentVolumeName", "must specify non empty persistentVolumeName")
    return True


def _error(name: str) -> Any:  # upstream: validateVolumeError
    return field(
        name,
        struct(
            field("message", longest(_LONGEST_MESSAGE)),
            field("errorCode", within(0, MAX_INT32)),
        ),
    )


def _metadata(value: Any, path: str, report: Report) -> bool:  # upstream: validateAttachmentMetadata
    return map_size(value) <= _METADATA_SIZE or report.too_long(path, _METADATA_SIZE)


_ATTACHMENT = (  # upstream: ValidateVolumeAttachment
    section("spec", section("source", _source), text("nodeName", dns_subdomain)),
    section("status", field("attachmentMetadata", _metadata), _error("attachError"), _error("detachError")),
    section("spec", section("source", given("persistentVolumeName", dns_subdomain))),
)
_DECLARED_ATTACHMENT = Declared("storage/v1.VolumeAttachment")
_STORED_ATTACHER = section("spec", text("attacher", required, csi_driver_name))

VOLUME_ATTACHMENT = Strategy(  # upstream: volumeAttachmentStrategy
    **prepared(status=("storage.k8s.io", "v1", "VolumeAttachment")),
    validate_create=creation(*_ATTACHMENT, _DECLARED_ATTACHMENT.created),
    validate_update=update(_STORED_ATTACHER, *_ATTACHMENT, _DECLARED_ATTACHMENT.updated),
    status=StatusRules(prepare=metadata_kept, validate=update(*_ATTACHMENT)),
    unconditional_update=False,
    returns_deleted=True,
)

STRATEGIES = {
    "StorageClass": STORAGE_CLASS,
    "VolumeAttributesClass": VOLUME_ATTRIBUTES_CLASS,
    "CSIDriver": CSI_DRIVER,
    "CSINode": CSI_NODE,
    "CSIStorageCapacity": CSI_STORAGE_CAPACITY,
    "VolumeAttachment": VOLUME_ATTACHMENT,
}
