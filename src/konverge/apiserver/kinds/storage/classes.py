"""StorageClass, VolumeAttributesClass and CSIStorageCapacity.

Upstream: pkg/apis/storage/validation, pkg/api/storage/util.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from konverge.apiserver.kinds.core.nodes import deprecated_label
from konverge.apiserver.kinds.framework.declarative_validation import Declared
from konverge.apiserver.kinds.framework.declare import (
    Report,
    creation,
    distinct,
    field,
    given,
    items,
    one_of,
    required,
    required_saying,
    same,
    struct,
    text,
    unchanged,
    update,
)
from konverge.apiserver.kinds.framework.lifecycle import kept
from konverge.apiserver.kinds.rules.defaults import each, fill_unset
from konverge.apiserver.kinds.rules.names import dns_subdomain, map_size, qualified_name
from konverge.apiserver.kinds.rules.quantities import quantity_not_negative
from konverge.apiserver.kinds.rules.selectors import label_selector
from konverge.apiserver.strategy import Context, Obj, Strategy

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


def _topology_term(value: Any, path: str, report: Report) -> bool:  # upstream: ValidateTopologySelectorTerm
    keys: set[str] = set()
    for index, expression in enumerate(value.get("matchLabelExpressions") or ()):
        place = f"{path}.matchLabelExpressions[{index}]"
        _REQUIREMENT(expression, place, report)
        key = expression.get("key") or ""
        if key in keys:
            report.duplicate(f"{place}.key", key)
        keys.add(key)
    return True


# upstream: validateTopologySelectorLabelRequirement
_REQUIREMENT = struct(field("values", required, items(distinct)), text("key", qualified_name))


def _topologies(value: Any, path: str, report: Report) -> bool:  # upstream: validateAllowedTopologies
    seen: list[dict[str, set[str]]] = []
    for index, term in enumerate(value):
        _topology_term(term, f"{path}[{index}]", report)
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
_DECLARED = Declared("storage/v1.StorageClass")


# upstream: GetWarningsForStorageClass
def _class_warnings(obj: Obj, old: Obj | None, context: Context) -> Iterable[str]:
    for i, term in enumerate(each(obj, "allowedTopologies")):
        for j, expression in enumerate(each(term, "matchLabelExpressions")):
            detail = deprecated_label(expression.get("key") or "")
            if detail:
                yield f"allowedTopologies[{i}].matchLabelExpressions[{j}].key: {detail}"


STORAGE_CLASS = Strategy(  # upstream: storageClassStrategy
    defaults=_default_class,
    validate_create=creation(*_CLASS, _DECLARED.created),
    validate_update=update(*_CLASS, _DECLARED.updated),
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
