"""The spec of a PersistentVolumeClaim: in claims, in StatefulSets and in ephemeral volumes.

claim_spec(claim["spec"], "spec", report)
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.core.resource_names import resource_amount
from konverge.apiserver.kinds.framework.declare import Report, field, given, one_of, required_saying, struct
from konverge.apiserver.kinds.rules.names import dns_label, dns_subdomain
from konverge.apiserver.kinds.rules.quantities import quantity_positive
from konverge.apiserver.kinds.rules.selectors import label_selector

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def access_modes(value: Any, path: str, report: Report) -> bool:
    """Known modes; ReadWriteOncePod stands alone."""
    for mode in value:
        if mode not in ACCESS_MODES:
            report.not_supported(path, mode, ACCESS_MODES)
    known = {mode for mode in value if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        return report.forbidden(path, "may not use ReadWriteOncePod with other access modes")
    return True


def _storage(value: Any, path: str, report: Report) -> bool:
    requests = (value.get("resources") or {}).get("requests") or {}
    place = f"{path}.resources[storage]"
    if "storage" not in requests:
        return report.required(place)
    amount = requests["storage"]
    return quantity_positive(amount, place, report) and resource_amount("storage", amount, place, report)


def _group_of(value: Any, path: str, report: Report) -> bool:
    group, kind = value.get("apiGroup") or "", value.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        report.invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
    return not group or dns_subdomain(group, f"{path}.apiGroup", report)


_SOURCE = (field("name", required_saying("")), field("kind", required_saying("")), _group_of)


def _sources_agree(value: Any, path: str, report: Report) -> bool:
    source, reference = value.get("dataSource"), value.get("dataSourceRef")
    if source is None or reference is None:
        return True
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        return report.invalid(path, {}, detail)
    matches = all(source.get(key) == reference.get(key) for key in ("apiGroup", "kind", "name"))
    return matches or report.invalid(path, {}, "must match dataSourceRef")


claim_spec = struct(
    field("accessModes", required_saying("at least 1 access mode is required")),
    field("selector", label_selector),
    field("accessModes", access_modes),
    _storage,
    field("storageClassName", dns_subdomain),
    given("volumeMode", one_of(*VOLUME_MODES)),
    field("dataSource", struct(*_SOURCE)),
    field("dataSourceRef", struct(*_SOURCE, field("namespace", dns_label))),
    _sources_agree,
    field("volumeAttributesClassName", dns_subdomain),
)
