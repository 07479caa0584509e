"""autoscaling/v1 of a HorizontalPodAutoscaler, and back.

v1 has one number, the target of the CPU. Everything else of v2 travels in annotations, so that a client of v1 which
reads and writes an object loses nothing of it: the other metrics and the conditions in v1's own (older) field names,
the behaviour as the server's internal struct.

Upstream: pkg/apis/autoscaling/v1/conversion.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from konverge.apiserver.field_errors import render
from konverge.apiserver.go.structs import internal
from konverge.apiserver.kinds.framework.declare import dig
from konverge.apiserver.kinds.rules.defaults import fill_unset
from konverge.apiserver.strategy import Obj

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_ROUND_TRIP = (
    _METRICS,
    _CURRENT,
    _CONDITIONS,
    _BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)

_Fields = Mapping[str, tuple[tuple[str, str, Any], ...]]
_SELECTOR = ("selector", "metric.selector", None)


# upstream: Convert_autoscaling_ObjectMetricSource_To_v1_ObjectMetricSource (and of the other sources)
# upstream: Convert_autoscaling_ObjectMetricStatus_To_v1_ObjectMetricStatus (and of the other sources)
def _fields(member: str, *, average: str | None, external: str | None) -> _Fields:
    """(v1 name, path in v2, what v1 writes when it is absent) of each kind of source, in the order of v1's structs.

    `member` is "target" or "current"; the rest is what v1 writes for an absent average of a resource, and for an absent
    value of an external metric.
    """
    metric_name = ("metricName", "metric.name", "")
    utilization = (f"{member}AverageUtilization", f"{member}.averageUtilization", None)
    of_resource = (("name", "name", ""), utilization, (f"{member}AverageValue", f"{member}.averageValue", average))
    return {
        "object": (
            ("target", "describedObject", {}),
            metric_name,
            (f"{member}Value", f"{member}.value", "0"),
            _SELECTOR,
            ("averageValue", f"{member}.averageValue", None),
        ),
        "pods": (
            metric_name,
            (f"{member}AverageValue", f"{member}.averageValue", "0"),
            _SELECTOR,
        ),
        "resource": of_resource,
        "containerResource": (*of_resource, ("container", "container", "")),
        "external": (
            metric_name,
            ("metricSelector", "metric.selector", None),
            (f"{member}Value", f"{member}.value", external),
            (f"{member}AverageValue", f"{member}.averageValue", None),
        ),
    }


_SPEC_FIELDS = _fields("target", average=None, external=None)
_STATUS_FIELDS = _fields("current", average="0", external="0")
_CONDITION = ("type", "status", "lastTransitionTime", "reason", "message", "observedGeneration")


def _put(obj: Obj, path: str, value: Any) -> None:
    *way, last = path.split(".")
    for key in way:
        obj = obj.setdefault(key, {})
    obj[last] = value


def _older(metric: Obj, fields: _Fields) -> Obj:
    """A metric of v2 with v1's names."""
    made: Obj = {"type": metric.get("type", "")}
    for source, names in fields.items():
        if metric.get(source) is not None:
            values = ((name, dig(metric[source], path.split(".")), empty) for name, path, empty in names)
            written = ((name, empty if value is None else value) for name, value, empty in values)
            made[source] = {name: value for name, value in written if value is not None}
    return made


def _newer(metric: Obj, fields: _Fields) -> Obj:
    """A metric of v1 with v2's names."""
    made: Obj = {"type": metric.get("type", "")}
    for source, names in fields.items():
        if metric.get(source) is not None:
            made[source] = {}
            for name, path, _ in names:
                if metric[source].get(name) is not None:
                    _put(made[source], path, metric[source][name])
            if fields is _SPEC_FIELDS:
                _add_target_type(made[source], source)
    return made


# upstream: Convert_v1_ResourceMetricSource_To_autoscaling_ResourceMetricSource (and of the other sources)
def _add_target_type(source: Obj, kind: str) -> None:
    """v1 does not say what kind of target it means: it follows from what is set."""
    target = source.setdefault("target", {})
    if kind in ("resource", "containerResource"):
        target["type"] = "AverageValue" if target.get("averageUtilization") is None else "Utilization"
    elif kind == "object":
        target["type"] = "Value" if target.get("averageValue") is None else "AverageValue"
        if target["type"] == "AverageValue" and target.get("value") == "0":
            del target["value"]
    elif kind == "external":
        target["type"] = "AverageValue" if target.get("value") is None else "Value"
    else:
        target["type"] = "AverageValue"


def _is_cpu_target(metric: Obj) -> bool:
    resource = metric.get("resource") or {}
    utilization = (resource.get("target") or {}).get("averageUtilization")
    return metric.get("type") == "Resource" and resource.get("name") == "cpu" and utilization is not None


def default_v1(obj: Obj) -> None:  # upstream: SetDefaults_HorizontalPodAutoscaler
    """Defaults of the served form."""
    fill_unset(obj["spec"], {"minReplicas": 1})


def from_v2(obj: Obj) -> Obj:  # upstream: Convert_autoscaling_HorizontalPodAutoscaler_To_v1_HorizontalPodAutoscaler
    """What a client of autoscaling/v1 sees."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    notes = _without_round_trip(obj)
    metrics = spec.pop("metrics", None) or []
    cpu = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu_target(metric)]
    if cpu:
        spec["targetCPUUtilizationPercentage"] = cpu[0]
    others = [_older(metric, _SPEC_FIELDS) for metric in metrics if not _is_cpu_target(metric)]
    if others:
        notes[_METRICS] = render(others)
    behavior = spec.pop("behavior", None)
    if behavior is not None:
        notes[_BEHAVIOR] = render(internal("autoscaling.HorizontalPodAutoscalerBehavior", behavior))
    _status_from_v2(status, notes)
    if notes:
        obj["metadata"]["annotations"] = notes
    return obj


# upstream: Convert_autoscaling_HorizontalPodAutoscalerStatus_To_v1_HorizontalPodAutoscalerStatus
def _status_from_v2(status: Obj, notes: dict[str, str]) -> None:
    status.setdefault("currentReplicas", 0)
    current = status.pop("currentMetrics", None) or []
    for metric in current:
        utilization = dig(metric, ["resource", "current", "averageUtilization"])
        if metric.get("type") == "Resource" and dig(metric, ["resource", "name"]) == "cpu" and utilization is not None:
            status["currentCPUUtilizationPercentage"] = utilization
    if current:
        notes[_CURRENT] = render([_older(metric, _STATUS_FIELDS) for metric in current])
    conditions = status.pop("conditions", None)
    if conditions:
        notes[_CONDITIONS] = render([{name: c.get(name) for name in _CONDITION if name in c} for c in conditions])


def to_v2(obj: Obj) -> Obj:  # upstream: Convert_v1_HorizontalPodAutoscaler_To_autoscaling_HorizontalPodAutoscaler
    """What is stored of an object in autoscaling/v1."""
    spec, status = obj.setdefault("spec", {}), obj.setdefault("status", {})
    notes = (obj.get("metadata") or {}).get("annotations") or {}
    metrics = [_newer(metric, _SPEC_FIELDS) for metric in _listed(notes.get(_METRICS))]
    cpu = spec.pop("targetCPUUtilizationPercentage", None)
    if cpu is not None or not metrics:
        target = {"type": "Utilization", "averageUtilization": 80 if cpu is None else cpu}
        metrics.append({"type": "Resource", "resource": {"name": "cpu", "target": target}})
    spec["metrics"] = metrics
    behavior = _behavior(notes.get(_BEHAVIOR))
    if behavior:
        spec["behavior"] = behavior
    _status_to_v2(status, notes)
    _without_round_trip(obj)
    return obj


# upstream: Convert_v1_HorizontalPodAutoscalerStatus_To_autoscaling_HorizontalPodAutoscalerStatus
def _status_to_v2(status: Obj, notes: dict[str, str]) -> None:
    utilization = status.pop("currentCPUUtilizationPercentage", None)
    current = [_newer(metric, _STATUS_FIELDS) for metric in _listed(notes.get(_CURRENT))]
    if not current and utilization is not None:
        source = {"name": "cpu", "current": {"averageUtilization": utilization}}
        current = [{"type": "Resource", "resource": source}]
    status["currentMetrics"] = current or None  # v2 writes null
    conditions = _listed(notes.get(_CONDITIONS))
    if conditions:
        status["conditions"] = conditions


def _without_round_trip(obj: Obj) -> dict[str, str]:  # upstream: DropRoundTripHorizontalPodAutoscalerAnnotations
    """Removes the round-trip annotations from the object, and returns what is left of its annotations."""
    metadata = obj.setdefault("metadata", {})
    notes = {name: text for name, text in (metadata.get("annotations") or {}).items() if name not in _ROUND_TRIP}
    if notes:
        metadata["annotations"] = notes
    else:
        metadata.pop("annotations", None)
    return notes


def _listed(text: str | None) -> list[Obj]:
    """The objects of an annotation; one that cannot be read is ignored, as anyone may have written it."""
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return []
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def _behavior(text: str | None) -> Obj | None:
    """The behaviour, whose members have Go's names in the annotation."""
    try:
        behavior = json.loads(text or "null")
    except ValueError:
        return None
    return _lowered(behavior) if isinstance(behavior, dict) else None


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name[:1].lower() + name[1:]: _lowered(member) for name, member in value.items() if member is not None}
