"""Event, in its core form. events.k8s.io requires more: see `kinds/events.py`.

Upstream: pkg/apis/core/validation/events.go, pkg/registry/core/event/strategy.go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.apiserver.kinds.framework.declare import Report, as_created, creation, update
from konverge.apiserver.kinds.framework.lifecycle import selectable
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


def _plain(name: str) -> Callable[[Obj], str]:
    return lambda event: event.get(name) or ""


REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
"""The members of an ObjectReference."""

FIELD_SELECTORS: dict[str, Callable[[Obj], str]] = {  # upstream: ToSelectableFields
    **selectable(*(f"involvedObject.{name}" for name in REFERENCE)),
    **{name: _plain(name) for name in ("reason", "reportingComponent", "type")},
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
