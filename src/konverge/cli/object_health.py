"""How an object is, by what it says of itself: a state, a fraction, a reason, and how urgently a person should look.

Pure. Pods are as in `kubectl get pods`; workloads count replicas; other kinds are judged by the conditions that the
API conventions and kstatus describe, and by `status.phase`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

Obj = dict[str, Any]


class Sickness(IntEnum):
    """The order of a view: what needs eyes comes first."""

    FAILED = 0
    WAITING = 1
    DELETING = 2
    RESTARTED = 3
    FINE = 4


class Health(NamedTuple):
    """What is shown of one object."""

    sickness: Sickness
    state: str
    ready: str = ""
    restarts: int = 0
    reason: str = ""


_BAD = frozenset(("Failed", "Error", "Degraded", "Lost", "Unknown", "CrashLoopBackOff", "Evicted", "OOMKilled"))
_GOOD = frozenset(("Running", "Ready", "ready", "Active", "Bound", "Available", "Succeeded", "Completed", "Healthy"))
_READY_TYPES = ("Ready", "Available")
_FAILED_TYPES = ("Failed", "Stalled", "Degraded", "ReplicaFailure")


def health_of(obj: Obj) -> Health:
    """
    >>> health_of({"kind": "Deployment", "spec": {"replicas": 3}, "status": {"readyReplicas": 2}})
    Health(sickness=<Sickness.WAITING: 1>, state='converging', ready='2/3', restarts=0, reason='')
    """
    if obj.get("kind") == "Pod":
        return _pod(obj)
    state, ready = state_of(obj)
    reason = _reason(obj)
    if state == "deleting":
        waits = ", ".join((obj.get("metadata") or {}).get("finalizers") or ())
        return Health(Sickness.DELETING, state, ready, 0, f"waits for {waits}" if waits else "")
    return Health(_sickness(obj, state, ready), state, ready, 0, reason)


def state_of(obj: Obj) -> tuple[str, str]:
    """A word and a fraction.

    >>> state_of({"spec": {"replicas": 3}, "status": {"phase": "Running", "readyReplicas": 2}})
    ('Running', '2/3')
    >>> state_of({"spec": {"replicas": 1}, "status": {"readyReplicas": 1}})
    ('ready', '1/1')
    """
    spec, status = _mapping(obj, "spec"), _mapping(obj, "status")
    wanted, ready = spec.get("replicas"), status.get("readyReplicas") or 0
    if obj.get("kind") == "DaemonSet":
        wanted, ready = status.get("desiredNumberScheduled", 0), status.get("numberReady", 0)
    count = "" if wanted is None else f"{ready}/{wanted}"
    if _mapping(obj, "metadata").get("deletionTimestamp"):
        return "deleting", count
    if status.get("phase"):
        return str(status["phase"]), count
    if obj.get("kind") == "Job":
        return _job(spec, status)
    if wanted is not None:
        return ("ready" if ready >= wanted else "converging"), count
    main = _condition(obj, _READY_TYPES)
    if main is None:
        return ("converging" if status or "generation" not in _mapping(obj, "metadata") else ""), ""
    return ("ready" if main.get("status") == "True" else str(main.get("reason") or "not ready")), ""


def _job(spec: Obj, status: Obj) -> tuple[str, str]:
    done = f"{status.get('succeeded', 0)}/{spec.get('completions') or 1}"
    for condition in status.get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            return ("Completed" if condition["type"] == "Complete" else "Failed"), done
    return "Active" if status.get("active") else "converging", done


def _pod(pod: Obj) -> Health:
    from konverge.apiserver.table.pods import summary

    counted = summary(pod)
    ready = f"{counted.ready}/{counted.total}"
    reason = _container_message(pod) or _reason(pod)
    if counted.reason == "Terminating":
        sickness = Sickness.DELETING
    elif counted.reason in ("Completed", "Succeeded"):
        return Health(Sickness.FINE, counted.reason, ready, counted.restarts)
    elif counted.reason == "Running" and counted.ready >= counted.total:
        sickness, reason = (Sickness.RESTARTED if counted.restarts else Sickness.FINE), ""
    elif counted.reason in ("Pending", "ContainerCreating", "PodInitializing", "Running", "SchedulingGated"):
        sickness = Sickness.WAITING
    else:
        sickness = Sickness.FAILED if not counted.reason.startswith("Init:") else Sickness.WAITING
    return Health(sickness, counted.reason or "Pending", ready, counted.restarts, reason)


def _container_message(pod: Obj) -> str:
    status = _mapping(pod, "status")
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("message"):
            return str(waiting["message"])
    return str(status.get("message") or "")


def _sickness(obj: Obj, state: str, ready: str) -> Sickness:
    if state in _BAD or _condition(obj, _FAILED_TYPES, "True") is not None:
        return Sickness.FAILED
    main = _condition(obj, _READY_TYPES)
    short = ready and ready.partition("/")[0] != ready.partition("/")[2] and state not in ("Completed", "Active")
    if short or (main is not None and main.get("status") != "True"):
        return Sickness.WAITING
    if _lags(obj):
        return Sickness.WAITING
    return Sickness.FINE if state in _GOOD or state == "" or main is not None else Sickness.WAITING


def _lags(obj: Obj) -> bool:
    """The controller has not seen the last change of the spec."""
    observed = _mapping(obj, "status").get("observedGeneration")
    return isinstance(observed, int) and observed < _mapping(obj, "metadata").get("generation", 0)


def _reason(obj: Obj) -> str:
    """The message of the condition that is to blame."""
    condition = _condition(obj, _FAILED_TYPES, "True")
    if condition is None:
        conditions = (_condition(obj, (kind,)) for kind in ("PodScheduled", *_READY_TYPES))
        condition = next((found for found in conditions if found is not None and found.get("status") != "True"), None)
    if condition is None:
        return str(_mapping(obj, "status").get("message") or "") if _lags(obj) else ""
    return str(condition.get("message") or condition.get("reason") or "")


def _condition(obj: Obj, types: tuple[str, ...], status: str = "") -> Obj | None:
    conditions = _mapping(obj, "status").get("conditions")
    listed = [condition for condition in conditions if isinstance(condition, dict)] if conditions else []
    for kind in types:
        for condition in listed:
            if condition.get("type") == kind and (not status or condition.get("status") == status):
                return condition
    return None


def _mapping(obj: Obj, key: str) -> Obj:
    """What a stranger's object has there, if it is a mapping: custom kinds may have anything."""
    value = obj.get(key)
    return value if isinstance(value, dict) else {}
