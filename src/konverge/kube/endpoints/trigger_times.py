"""When the change happened that an Endpoints or a slice shows: clients measure their latency from there.

The time is that of the oldest change since the last reconcile: of a pod's readiness, or of the Service's creation.

Upstream: TriggerTimeTracker (k8s.io/endpointslice/util/trigger_time_tracker.go).
"""

from __future__ import annotations

from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.runtime import Request

ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time"


class Triggers:
    """The times of each Service's pods in its last reconcile. Times are texts of one form, so they sort."""

    def __init__(self) -> None:
        self._known: dict[Request, dict[str, str]] = {}

    def changed(self, service: Service, pods: list[Pod]) -> str | None:
        """The oldest change that no earlier reconcile has seen; the Service's creation at the first one."""
        request = Request(service.metadata.namespace, service.metadata.name)
        present = {pod.metadata.name: time for pod in pods if (time := _ready_changed(pod))}
        before = self._known.get(request)
        self._known[request] = present
        if before is None:
            return service.metadata.creation_timestamp
        return min((time for name, time in present.items() if time > before.get(name, "")), default=None)

    def forget(self, request: Request) -> None:
        self._known.pop(request, None)


def _ready_changed(pod: Pod) -> str | None:
    return next((c.last_transition_time for c in pod.status.conditions if c.type == "Ready"), None)
