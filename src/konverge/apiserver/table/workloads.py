"""Workloads and what scales them: apps, autoscaling, batch and policy."""

from __future__ import annotations

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, UNKNOWN, at, duration, is_true, quantity, seconds, since, status_of

_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")
_METRICS_SHOWN = 2
_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def ready(obj: Obj) -> str:
    return f"{at('status.readyReplicas', 0)(obj)}/{at('spec.replicas', 0)(obj)}"


def controller(obj: Obj) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "") + (f".{group}" if group else "")
            return f"{kind.lower()}/{owner.get('name', '')}"
    return NONE


def job_status(job: Obj) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((state for state in _JOB_STATES if is_true(job, state)), "Running")


def completions(job: Obj) -> str:
    succeeded, completions = at("status.succeeded", 0)(job), job["spec"].get("completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = job["spec"].get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def job_duration(job: Obj) -> str:
    status = status_of(job)
    if not status.get("startTime"):
        return ""
    if not status.get("completionTime"):
        return since(status["startTime"])
    return duration(seconds(status["completionTime"]) - seconds(status["startTime"]))


# --- autoscaling


def metrics(obj: Obj) -> str:
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
