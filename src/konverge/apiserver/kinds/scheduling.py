"""scheduling.k8s.io: PriorityClass. Upstream: pkg/apis/scheduling/validation."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, creation, given, one_of, required, unchanged, update
from konverge.apiserver.kinds.framework.lifecycle import first_generation
from konverge.apiserver.kinds.rules.defaults import fill_unset
from konverge.apiserver.strategy import Obj, Strategy

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_RESERVED = "priority class names with 'system-' prefix are reserved for system use only. error: "


def _defaults(obj: Obj) -> None:  # upstream: SetDefaults_PriorityClass
    fill_unset(obj, {"preemptionPolicy": "PreemptLowerPriority"})


def _system_error(name: str, value: int, is_default: bool) -> str:  # upstream: IsKnownSystemPriorityClass
    """Why this is not one of the two built-in classes."""
    if name not in SYSTEM:
        return f"{name} is not a known system priority class"
    if value != SYSTEM[name]:
        return f"value of {name} PriorityClass must be {SYSTEM[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if is_default else ""


def _value(obj: Any, path: str, report: Report) -> bool:  # upstream: ValidatePriorityClass
    name, value = obj["metadata"].get("name", ""), obj.get("value") or 0
    if name.startswith("system-"):
        error = _system_error(name, value, bool(obj.get("globalDefault")))
        return not error or report.forbidden("metadata.name", _RESERVED + error)
    detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
    return value <= HIGHEST_USER_PRIORITY or report.forbidden("value", detail)


def _value_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidatePriorityClassUpdate
    same = (new.get("value") or 0) == (old.get("value") or 0)
    return same or report.forbidden("value", "may not be changed in an update.")


STRATEGIES = {  # upstream: priorityClassStrategy
    "PriorityClass": Strategy(
        defaults=_defaults,
        validate_create=creation(_value, given("preemptionPolicy", required, one_of("PreemptLowerPriority", "Never"))),
        validate_update=update(_value_kept, unchanged("preemptionPolicy")),
        prepare_create=first_generation,
    )
}
