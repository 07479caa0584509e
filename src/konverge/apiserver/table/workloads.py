"""Workloads: apps, batch and policy."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import (
    NONE,
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
    succeeded, wanted = at("status.succeeded", 0)(job), job["spec"].get("completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
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
    found = at(path, None)
    return lambda obj: "N/A" if found(obj) is None else str(found(obj))


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
}
