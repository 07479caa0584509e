"""What the steps ask of pods."""

from __future__ import annotations

from konverge import clock
from konverge.objects.kinds.core_v1 import ContainerStatus, Pod
from konverge.objects.times import parse_time

REVISION = "controller-revision-hash"


def is_ready(pod: Pod) -> bool:
    """By the Ready condition, wherever it stands: Kubernetes adds conditions from time to time."""
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions) and not is_going(pod)


def ready_for(pod: Pod) -> float:
    """Seconds; 0 when it is not ready."""
    since = [one.last_transition_time for one in pod.status.conditions if one.type == "Ready"]
    return seconds_since(since[0]) if is_ready(pod) else 0.0


def is_going(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def is_outdated(pod: Pod, revision: str | None) -> bool:
    """Made from an older template than the one that counts."""
    return bool(revision) and pod.metadata.labels.get(REVISION, revision) != revision


def ordinal(pod: Pod) -> int:
    return ordinal_of(pod.metadata.name)


def ordinal_of(name: str) -> int:
    """Which pod of its StatefulSet one of this name is; -1: none."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else -1


def seconds_since(time: str | None) -> float:
    """How long ago a time of the API was; 0 where there is none."""
    return clock.now() - parse_time(time).timestamp() if time else 0.0


def useless_for(pod: Pod) -> float:
    """Seconds for which a pod has been running without being ready; 0 when it is ready, or never ran."""
    if is_ready(pod) or pod.status.phase != "Running" or waiting(pod):
        return 0.0
    since = next((one.last_transition_time for one in pod.status.conditions if one.type == "Ready"), None)
    return seconds_since(since or pod.metadata.creation_timestamp)


def waiting(pod: Pod) -> str:
    """Why a container does not run, as the kubelet says it; another pod in its place would wait for the same."""
    for status in [*pod.status.init_container_statuses, *pod.status.container_statuses]:
        if text := _waiting(status):
            return text
    return ""


def _waiting(status: ContainerStatus) -> str:
    held = status.state.waiting if status.state is not None else None
    if held is None or held.reason in (None, "ContainerCreating", "PodInitializing"):
        return ""
    return f"{held.reason}: {held.message}" if held.message else f"{held.reason}"


def trouble(pod: Pod) -> str:
    """Why a pod is not ready, in a few words; empty when there is nothing to say."""
    if is_ready(pod):
        return ""
    if is_going(pod):
        return f"{pod.metadata.name} is being deleted"
    if text := waiting(pod):
        return f"{pod.metadata.name}: {text}"
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"{pod.metadata.name}: {condition.reason}: {condition.message or 'no node takes it'}"
    return f"{pod.metadata.name} is not ready"
