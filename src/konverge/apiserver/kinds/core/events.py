"""Event, in its core form and in the new form, events.k8s.io/v1, which is in the same storage.

The two forms name the same fields differently, and the new one requires more: the reporting controller and the action.

Upstream: pkg/apis/core/validation/events.go, pkg/registry/core/event/strategy.go, pkg/apis/events/v1/conversion.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.framework.conversion import Conversion
from konverge.apiserver.kinds.framework.declare import IMMUTABLE, Report, as_created, creation, same, unchanged, update
from konverge.apiserver.kinds.framework.lifecycle import kept, selectable
from konverge.apiserver.kinds.rules.names import path_segment_name, qualified_name
from konverge.apiserver.strategy import Obj, Strategy

_MISMATCH = "does not match event.namespace"


def legacy_rules(reporter: str) -> Callable[[Any, str, Report], bool]:  # upstream: legacyValidateEvent
    """The rules of both forms; `reporter` is the name of the reporting controller's field in the served form."""

    def check(event: Any, path: str, report: Report) -> bool:
        namespace = event["metadata"].get("namespace") or ""
        involved = (event.get("involvedObject") or {}).get("namespace") or ""
        if not event.get("eventTime"):
            expected = involved == namespace if involved else namespace in ("", "default")
            return expected or report.invalid("involvedObject.namespace", involved, _MISMATCH)
        if not involved and namespace not in ("default", "kube-system"):
            report.invalid("involvedObject.namespace", involved, _MISMATCH)
        _reporting(event, reporter, report)
        return True

    return check


def _reporting(event: Any, reporter: str, report: Report) -> None:  # upstream: legacyValidateEvent
    controller = event.get("reportingComponent") or ""
    if not controller:
        report.required(reporter)
    qualified_name(controller, reporter, report)
    for name, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        value = event.get(name) or ""
        if not value:
            report.required(name)
        if len(value.encode()) > limit:
            report.invalid(name, "", f"can have at most {limit} characters")
    if len((event.get("message") or "").encode()) > 1024:
        report.invalid("message", "", "can have at most 1024 characters")


def _source(event: Obj) -> str:
    return (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""


REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
"""The members of an ObjectReference."""

FIELD_SELECTORS: dict[str, Callable[[Obj], str]] = {  # upstream: ToSelectableFields
    **selectable(*(f"involvedObject.{name}" for name in REFERENCE), "reason", "reportingComponent", "type"),
    "source": _source,
}

_RULES = legacy_rules("reportingComponent")

EVENT = Strategy(  # upstream: eventStrategy
    validate_create=creation(_RULES),
    validate_update=update(as_created(_RULES)),
    name_check=path_segment_name,
    create_on_update=True,
    default_propagation="Unsupported",
    field_selectors=FIELD_SELECTORS,
)


# (name in events.k8s.io/v1, name in v1); all other members have one name.
_RENAMED = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("reportingController", "reportingComponent"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
)
_TO_CORE = dict(_RENAMED)
_FROM_CORE = {core: new for new, core in _RENAMED}

# Members that a form always writes, with what it writes when nothing is known.
_ALWAYS_IN_CORE: dict[str, Any] = {
    "involvedObject": dict,
    "source": dict,
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
_ALWAYS_IN_NEW: dict[str, Any] = {
    "regarding": dict,
    "deprecatedSource": dict,
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "eventTime": None,
}
_OMITTED_EMPTY = ("note", "message", "reason", "type", "action", "reportingController", "reportingInstance", "count")


def _renamed(obj: Obj, names: dict[str, str], always: dict[str, Any]) -> Obj:
    renamed = {names.get(name, name): value for name, value in obj.items()}
    for name, empty in always.items():
        if renamed.get(name) is None:
            renamed[name] = empty() if callable(empty) else empty
    return {name: value for name, value in renamed.items() if value or name in always or name not in _OMITTED_EMPTY}


def to_core(obj: Obj) -> Obj:  # upstream: Convert_v1_Event_To_core_Event
    return _renamed(obj, _TO_CORE, _ALWAYS_IN_CORE)


def from_core(obj: Obj) -> Obj:  # upstream: Convert_core_Event_To_v1_Event
    return _renamed(obj, _FROM_CORE, _ALWAYS_IN_NEW)


def _defaults(obj: Obj) -> None:
    """Events have no defaults."""


def _series(event: Any, path: str, report: Report) -> bool:  # upstream: validateV1EventSeries
    series = event.get("series")
    if series is None:
        return True
    if (series.get("count") or 0) < 2:
        report.invalid("series.count", "", "should be at least 2")
    return bool(series.get("lastObservedTime")) or report.required("series.lastObservedTime")


def _new_fields(event: Any, path: str, report: Report) -> bool:  # upstream: ValidateEventCreate
    """Fields that the new form requires, and fields that only the old one may have."""
    if event.get("eventTime") is None:
        report.required("eventTime")
    kind = event.get("type") or ""
    if kind not in ("Normal", "Warning"):
        report.invalid("type", "", f"has invalid value: {kind}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if event.get(name):
            report.invalid(name, "", "needs to be unset")
    return True


def _changed_series(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateEventUpdate
    return same(new.get("series"), old.get("series")) or _series(new, path, report)


def _controller_kept(new: Obj, old: Obj, path: str, report: Report) -> bool:  # upstream: ValidateEventUpdate
    """Reported under the name that the field has in the new form."""
    name = new.get("reportingComponent") or ""
    unchanged_name = name == (old.get("reportingComponent") or "")
    return unchanged_name or report.invalid("reportingController", name, IMMUTABLE)


_NEW_RULES = legacy_rules("reportingController")
_INVOLVED = "core.ObjectReference"

STRATEGIES = {
    "Event": Strategy(
        validate_create=creation(_NEW_RULES, _series, _new_fields),
        validate_update=update(
            as_created(_NEW_RULES),
            _changed_series,
            kept("involvedObject", _INVOLVED),
            unchanged("reason", "message", absent=""),
            kept("source", "core.EventSource"),
            unchanged("firstTimestamp", "lastTimestamp"),
            unchanged("count", absent=0),
            unchanged("type", absent=""),
            unchanged("eventTime"),
            unchanged("action", absent=""),
            kept("related", f"*{_INVOLVED}"),
            _controller_kept,
            unchanged("reportingInstance", absent=""),
        ),
        create_on_update=True,
        default_propagation="Unsupported",
        field_selectors=FIELD_SELECTORS,
    )
}


CONVERSIONS = {  # upstream: AddFieldLabelConversionsForEvent
    "Event": Conversion(
        table="/events",
        storage_version="v1",
        defaults=_defaults,
        to_storage=to_core,
        from_storage=from_core,
        reported_group="",
        field_labels={
            **{f"regarding.{name}": f"involvedObject.{name}" for name in REFERENCE},
            "reportingController": "reportingComponent",
            "reason": "reason",
            "type": "type",
        },
    )
}
