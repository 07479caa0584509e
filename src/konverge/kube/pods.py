"""What controllers ask of pods: whether they are active, ready and for how long.

Upstream: pkg/controller/controller_utils.go and pkg/api/v1/pod/util.go.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from konverge import clock
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.core_v1 import Pod, PodTemplateSpec
from konverge.objects.meta import Object, ObjectMeta
from konverge.objects.times import parse_time
from konverge.runtime.owners import set_controller_reference


# upstream: GetPodFromTemplate
def from_template(owner: Object, template: PodTemplateSpec, *, name: str = "") -> Pod:
    """A pod of a template, controlled by its owner; its name is generated unless one is given. Upstream notes the
    prefix in either case."""
    meta = template.metadata
    pod = Pod(
        metadata=ObjectMeta(
            name=name,
            generate_name=_prefix(owner.metadata.name),
            namespace=owner.metadata.namespace,
            labels=dict(meta.labels),
            annotations=dict(meta.annotations),
            finalizers=list(meta.finalizers),
        ),
        spec=from_dict(type(template.spec), to_dict(template.spec)),
    )
    set_controller_reference(owner, pod)
    return pod


# upstream: getPodsPrefix
def _prefix(name: str) -> str:
    return f"{name}-" if len(name) < 253 else name  # a name may have 253 characters


def replicas_of(workload: Any) -> int:
    """The desired replicas of a Deployment, a set or a ReplicationController; 1 is the API's default."""
    return 1 if workload.spec.replicas is None else workload.spec.replicas


def is_terminated(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def is_active(pod: Pod) -> bool:
    """Neither finished nor being deleted. Upstream: IsPodActive."""
    return not is_terminated(pod) and pod.metadata.deletion_timestamp is None


def ready_since(pod: Pod) -> str | None:
    """When the pod became ready, or None when it is not."""
    for condition in pod.status.conditions:
        if condition.type == "Ready":
            return (condition.last_transition_time or "") if condition.status == "True" else None
    return None


def is_ready(pod: Pod) -> bool:
    return ready_since(pod) is not None


# upstream: IsPodAvailable, nextPodAvailabilityCheck
def available_in(pod: Pod, min_ready_seconds: int | None) -> float | None:
    """Seconds until a ready pod counts as available: 0 when it does, None when it is not ready."""
    since = ready_since(pod)
    if since is None:
        return None
    if not min_ready_seconds or not since:
        return 0.0
    due = parse_time(since) + timedelta(seconds=min_ready_seconds)
    return max(0.0, (due - clock.utc_now()).total_seconds())


# upstream: PatchPodStatus (pkg/util/pod), whose patch says in which order the conditions are
def condition_patch(pod: Pod, condition: dict[str, Any]) -> dict[str, Any]:
    """The part of a strategic patch of the status that sets a condition; a new one comes last."""
    types = [present.type for present in pod.status.conditions if present.type != condition["type"]]
    position = next((i for i, c in enumerate(pod.status.conditions) if c.type == condition["type"]), len(types))
    types.insert(position, condition["type"])
    return {"$setElementOrder/conditions": [{"type": type_} for type_ in types], "conditions": [condition]}


def descending(text: str) -> tuple[int, ...]:
    """A sort key by which later times come first."""
    return tuple(-ord(character) for character in text)
