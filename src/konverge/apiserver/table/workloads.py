"""Workloads and what scales them: apps, autoscaling, batch and policy."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cell,
    age,
    at,
    container_images,
    container_names,
    count,
    duration,
    is_true,
    labels_at,
    name,
    quantity,
    seconds,
    selector_at,
    since,
    status_of,
)  # fmt: skip
from konverge.objects.labels import SelectorError, from_selector_dict

_TEMPLATE = "spec.template.spec.containers"
_JOB_TEMPLATE = "spec.jobTemplate.spec.template.spec.containers"
_CONTAINERS: dict[str, Cell] = {"Containers": container_names(_TEMPLATE), "Images": container_images(_TEMPLATE)}
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
_METRICS_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _ready(obj: Obj) -> str:
    return f"{at('status.readyReplicas', 0)(obj)}/{at('spec.replicas', 0)(obj)}"


def _deployment_selector(obj: Obj) -> str:
    try:
        return str(from_selector_dict(obj["spec"].get("selector")))
    except SelectorError:
        return "<invalid>"


def _controller(obj: Obj) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "") + (f".{group}" if group else "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


def _job_status(job: Obj) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((state for state in _JOB_STATES if is_true(job, state)), "Running")


def _completions(job: Obj) -> str:
    succeeded, completions = at("status.succeeded", 0)(job), job["spec"].get("completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = job["spec"].get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(job: Obj) -> str:
    status = status_of(job)
    if not status.get("startTime"):
        return ""
    if not status.get("completionTime"):
        return since(status["startTime"])
    return duration(seconds(status["completionTime"]) - seconds(status["startTime"]))


def _suspend(job: Obj) -> str:
    return {True: "True", False: "False"}.get(job["spec"].get("suspend"), UNSET)


def _amount(path: str) -> Cell:
    """A number or a percentage."""
    value_at = at(path, "N/A")
    return lambda obj: str(value_at(obj))


# --- autoscaling


def _metrics(obj: Obj) -> str:
    """Current and target of each metric, the first few of them. Upstream: formatHPAMetrics."""
    specs = obj["spec"].get("metrics") or []
    if not specs:
        return NONE
    statuses = status_of(obj).get("currentMetrics") or []
    padded = [*statuses[: len(specs)], *[{}] * (len(specs) - len(statuses))]
    shown = [_metric(spec, status) for spec, status in zip(specs, padded, strict=True)]
    joined = ", ".join(shown[:_METRICS_SHOWN])
    return f"{joined} + {len(shown) - _METRICS_SHOWN} more..." if len(shown) > _METRICS_SHOWN else joined


def _metric(spec: Obj, status: Obj) -> str:
    source = _SOURCES.get(spec.get("type", ""), "")
    if not source:
        return "<unknown type>"
    metric, observed = spec.get(source) or {}, status.get(source)
    target, current = metric.get("target") or {}, None if observed is None else observed.get("current") or {}
    if source == "pods":
        return f"{_current(current, 'averageValue')}/{quantity(target.get('averageValue'))}"
    if source in ("resource", "containerResource"):
        return f"{metric.get('name', '')}: {_resource_metric(target, current)}"
    if target.get("averageValue") is not None:
        known = current if current and current.get("averageValue") is not None else None
        return f"{_current(known, 'averageValue')}/{quantity(target['averageValue'])} (avg)"
    return f"{_current(current, 'value')}/{quantity(target.get('value'))}"


def _current(current: Obj | None, key: str) -> str:
    return UNKNOWN if current is None else quantity(current.get(key))


def _resource_metric(target: Obj, current: Obj | None) -> str:
    if target.get("averageValue") is not None:
        return f"{_current(current, 'averageValue')}/{quantity(target['averageValue'])}"
    used = None if current is None else current.get("averageUtilization")
    desired = target.get("averageUtilization")
    return f"{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if desired is None else f'{desired}%'}"


def _reference(obj: Obj) -> str:
    target = obj["spec"].get("scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


KINDS: dict[str, dict[str, Any]] = {
    "Deployment": {
        "Name": name,
        "Ready": _ready,
        "Up-to-date": at("status.updatedReplicas", 0),
        "Available": at("status.availableReplicas", 0),
        "Age": age,
        **_CONTAINERS,
        "Selector": _deployment_selector,
    },
    "ReplicaSet": {
        "Name": name,
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        "Age": age,
        **_CONTAINERS,
        "Selector": selector_at("spec.selector"),
    },
    "StatefulSet": {"Name": name, "Ready": _ready, "Age": age, **_CONTAINERS},
    "DaemonSet": {
        "Name": name,
        "Desired": at("status.desiredNumberScheduled", 0),
        "Current": at("status.currentNumberScheduled", 0),
        "Ready": at("status.numberReady", 0),
        "Up-to-date": at("status.updatedNumberScheduled", 0),
        "Available": at("status.numberAvailable", 0),
        "Node Selector": labels_at("spec.template.spec.nodeSelector"),
        "Age": age,
        **_CONTAINERS,
        "Selector": selector_at("spec.selector"),
    },
    "ControllerRevision": {"Name": name, "Controller": _controller, "Revision": at("revision", 0), "Age": age},
    "Job": {
        "Name": name,
        "Status": _job_status,
        "Completions": _completions,
        "Duration": _duration,
        "Age": age,
        **_CONTAINERS,
        "Selector": selector_at("spec.selector"),
    },
    "CronJob": {
        "Name": name,
        "Schedule": at("spec.schedule"),
        "Timezone": at("spec.timeZone", NONE),
        "Suspend": _suspend,
        "Active": count("status.active"),
        "Last Schedule": lambda job: since(at("status.lastScheduleTime")(job), NONE),
        "Age": age,
        "Containers": container_names(_JOB_TEMPLATE),
        "Images": container_images(_JOB_TEMPLATE),
        "Selector": selector_at("spec.jobTemplate.spec.selector"),
    },
    "PodDisruptionBudget": {
        "Name": name,
        "Min Available": _amount("spec.minAvailable"),
        "Max Unavailable": _amount("spec.maxUnavailable"),
        "Allowed Disruptions": at("status.disruptionsAllowed", 0),
        "Age": age,
    },
    "HorizontalPodAutoscaler": {
        "Name": name,
        "Reference": _reference,
        "Targets": _metrics,
        "MinPods": lambda obj: str(at("spec.minReplicas", UNSET)(obj)),
        "MaxPods": at("spec.maxReplicas", 0),
        "Replicas": at("status.currentReplicas", 0),
        "Age": age,
    },
    "Scale": {
        "Name": name,
        "Desired": at("spec.replicas", 0),
        "Available": at("status.replicas", 0),
        "Age": age,
    },
}
