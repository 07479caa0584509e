"""CSIDriver and CSINode.

Upstream: pkg/registry/storage/csidriver, pkg/registry/storage/csinode, pkg/apis/storage/validation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.core.volume.sources import csi_driver_name
from konverge.apiserver.kinds.framework.declare import (
    IMMUTABLE,
    Report,
    creation,
    distinct,
    field,
    given,
    items,
    one_of,
    required,
    same,
    section,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import (
    empty_is_null,
    metadata_kept,
    next_generation,
    status_cleared,
    status_kept,
)
from konverge.apiserver.kinds.rules.defaults import each, fill_unset, section_of
from konverge.apiserver.kinds.rules.names import qualified_name
from konverge.apiserver.kinds.rules.numbers import at_least, not_negative
from konverge.apiserver.strategy import Context, Obj, StatusRules, Strategy

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


def _tokens(value: Any, path: str, report: Report) -> bool:  # upstream: validateTokenRequests
    seen: set[str] = set()
    for index, request in enumerate(value):
        audience, seconds = request.get("audience") or "", request.get("expirationSeconds")
        place = f"{path}[{index}]"
        if audience in seen:
            report.duplicate(f"{place}.audience", audience)
        elif seconds is not None and seconds < 600:
            report.invalid(f"{place}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        elif seconds is not None and seconds > 1 << 32:
            detail = "may not specify a duration larger than 2^32 seconds"
            report.invalid(f"{place}.expirationSeconds", seconds, detail)
        seen.add(audience)
    return True


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
    field("tokenRequests", _tokens),
    field("volumeLifecycleModes", _lifecycle_modes),
    field("nodeAllocatableUpdatePeriodSeconds", at_least(10, "must be greater than or equal to 10 seconds")),
    _tokens_in_secrets,
)


def _attachment_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateCSIDriverUpdate
    """The real server misspells the path."""
    value = new["spec"].get("attachRequired")
    return value == old["spec"].get("attachRequired") or report.invalid("spec.attachedRequired", value, IMMUTABLE)


def _prepare_driver(obj: Obj, old: Obj, context: Context) -> None:  # upstream: csiDriverStrategy.PrepareForUpdate
    """The generation counts changes only: a new driver has none."""
    if obj.get("spec") != old.get("spec"):
        next_generation(obj, old)


# upstream: csiDriverStrategy.WarningsOnCreate
def _driver_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    tokens = obj["spec"].get("tokenRequests")
    changed = old is None or not same(tokens, old["spec"].get("tokenRequests"))
    if tokens and changed and obj["spec"].get("serviceAccountTokenInSecrets") is None:
        return [_TOKENS_IN_CONTEXT]
    return ()


CSI_DRIVER = Strategy(  # upstream: csiDriverStrategy
    defaults=_default_driver,
    prepare_update=_prepare_driver,
    validate_create=creation(_DRIVER),
    validate_update=update(_DRIVER, _attachment_kept, unchanged("spec.volumeLifecycleModes")),
    warnings=_driver_warnings,
    unconditional_update=False,
    returns_deleted=True,
)


def _no_empty_lists(obj: Obj) -> None:  # upstream: csiNodeStrategy.PrepareForCreate
    spec = section_of(obj, "spec")
    empty_is_null(spec, "drivers")
    for entry in each(spec, "drivers"):
        empty_is_null(entry, "topologyKeys")


_clear_status = status_cleared("storage.k8s.io", "v1", "CSINode")


def _prepare_node(obj: Obj, context: Context) -> None:  # upstream: csiNodeStrategy.PrepareForCreate
    _clear_status(obj, context)
    _no_empty_lists(obj)


def _prepare_node_update(obj: Obj, old: Obj, context: Context) -> None:  # upstream: csiNodeStrategy.PrepareForUpdate
    status_kept(obj, old, context)
    _no_empty_lists(obj)


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


def _distinct_driver(value: Any, path: str, report: Report) -> bool:  # upstream: validateCSINodeDrivers
    distinct(value.get("name") or "", f"{path}.name", report)
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
                _distinct_driver,
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
    prepare_create=_prepare_node,
    prepare_update=_prepare_node_update,
    validate_create=creation(_NODE),
    validate_update=update(_NODE, _drivers_kept),
    status=StatusRules(prepare=_no_health),
    unconditional_update=False,
    returns_deleted=True,
)
