"""Whether an object is ready for those that depend on it, by its kind.

The rules are kstatus's (sigs.k8s.io/cli-utils/pkg/kstatus/status: core.go, generic.go), but for two: a Job is ready
when it is complete, not when it runs, since what comes after a Job waits for its work; and a custom resource whose
class has conditions is not ready before it has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from konverge.objects.custom.resource import CustomResource
from konverge.objects.meta import Object

Obj = dict[str, Any]
Rule = Callable[[Obj, Obj], str]


def unready(kind: type[Object], obj: Obj) -> str:
    """Why an object, as plain data, is not ready; an empty text when it is.

    >>> from konverge.objects.kinds.core_v1 import PersistentVolumeClaim
    >>> unready(PersistentVolumeClaim, {"metadata": {}, "status": {"phase": "Pending"}})
    'is Pending'
    """
    meta, status = obj["metadata"], obj.get("status") or {}
    if meta.get("deletionTimestamp"):
        return "is being deleted"
    observed = status.get("observedGeneration")
    if observed is not None and observed != meta.get("generation", observed):
        return "has a change that its controller has not seen yet"
    rule = _RULES.get((kind.resource.group, kind.resource.kind))
    if rule is not None:
        return rule(obj.get("spec") or {}, status)
    if issubclass(kind, CustomResource) and not status.get("conditions") and _has_conditions(kind):
        return "has no conditions yet"
    return _by_condition("Ready")({}, status) if _condition(status, "Ready") else _stalled(status)


def _deployment(spec: Obj, status: Obj) -> str:
    if status.get("observedGeneration") is None:
        return "was not seen by its controller yet"
    wanted, updated = spec.get("replicas", 1), status.get("updatedReplicas", 0)
    progressing = _condition(status, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "makes no progress: its deadline is exceeded"
    if updated < wanted:
        return f"has {updated} of {wanted} replicas updated"
    if status.get("replicas", 0) > updated:
        return f"has {status['replicas'] - updated} old replicas left"
    return _fewer("available", status.get("availableReplicas", 0), wanted)


def _stateful_set(spec: Obj, status: Obj) -> str:
    if status.get("observedGeneration") is None:
        return "was not seen by its controller yet"
    wanted, strategy = spec.get("replicas", 1), spec.get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return ""
    if problem := _fewer("ready", status.get("readyReplicas", 0), wanted):
        return problem
    if status.get("replicas", 0) > wanted:
        return f"has {status['replicas'] - wanted} replicas too many"
    partition = (strategy.get("rollingUpdate") or {}).get("partition") or 0
    if partition:
        due = wanted - partition
        updated = status.get("updatedReplicas", 0)
        return f"has {updated} of {due} replicas updated" if updated < due else ""
    if status.get("updateRevision", "") != status.get("currentRevision", ""):
        return f"has {status.get('updatedReplicas', 0)} of {wanted} replicas updated"
    return ""


def _daemon_set(spec: Obj, status: Obj) -> str:
    if status.get("observedGeneration") is None:
        return "was not seen by its controller yet"
    wanted = status.get("desiredNumberScheduled", 0)
    if (spec.get("updateStrategy") or {}).get("type") != "OnDelete":
        updated = status.get("updatedNumberScheduled", 0)
        if updated < wanted:
            return f"has {updated} of {wanted} pods updated"
    return _fewer("available", status.get("numberAvailable", 0), wanted, "pods")


def _replica_set(spec: Obj, status: Obj) -> str:
    if status.get("observedGeneration") is None:
        return "was not seen by its controller yet"
    return _fewer("available", status.get("availableReplicas", 0), spec.get("replicas", 1))


def _job(spec: Obj, status: Obj) -> str:
    failed = _condition(status, "Failed")
    if failed.get("status") == "True":
        return f"failed: {failed.get('message') or failed.get('reason') or 'no reason was given'}"
    return "" if _condition(status, "Complete").get("status") == "True" else "is not complete"


def _pod(spec: Obj, status: Obj) -> str:
    return "" if status.get("phase") == "Succeeded" else _by_condition("Ready")(spec, status)


def _service(spec: Obj, status: Obj) -> str:
    if spec.get("type") == "LoadBalancer" and not (status.get("loadBalancer") or {}).get("ingress"):
        return "has no load balancer yet"
    return ""


def _definition(spec: Obj, status: Obj) -> str:
    names = _condition(status, "NamesAccepted")
    if names.get("status") == "False":
        return f"is refused: {names.get('message') or names.get('reason')}"
    return _by_condition("Established")(spec, status)


def _phase(*wanted: str) -> Rule:
    def rule(spec: Obj, status: Obj) -> str:
        phase = status.get("phase") or ""
        return "" if phase in wanted else f"is {phase or 'without a phase yet'}"

    return rule


def _by_condition(type: str) -> Rule:
    def rule(spec: Obj, status: Obj) -> str:
        condition = _condition(status, type)
        if condition.get("status") == "True":
            return ""
        reason = condition.get("message") or condition.get("reason")
        return f"is not {type}{f': {reason}' if reason else ''}"

    return rule


def _stalled(status: Obj) -> str:
    for type in ("Stalled", "Reconciling"):
        condition = _condition(status, type)
        if condition.get("status") == "True":
            return f"is {type}: {condition.get('message') or condition.get('reason')}"
    return ""


def _fewer(what: str, count: int, wanted: int, unit: str = "replicas") -> str:
    return f"has {count} of {wanted} {unit} {what}" if count < wanted else ""


def _condition(status: Obj, type: str) -> Obj:
    conditions = status.get("conditions")
    if not isinstance(conditions, list):
        return {}
    return next((entry for entry in conditions if isinstance(entry, dict) and entry.get("type") == type), {})


def _has_conditions(kind: type[Object]) -> bool:
    status = next(field.default_factory for field in msgspec.structs.fields(kind) if field.name == "status")
    return "conditions" in getattr(status, "__struct_fields__", ())


_RULES: dict[tuple[str, str], Rule] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _phase("Bound"),
    ("", "Namespace"): _phase("Active"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _by_condition("Available"),
}
