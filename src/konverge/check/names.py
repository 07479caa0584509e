"""Objects as people call them: `apps/statefulsets default/rabbit` is "StatefulSet rabbit"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from konverge.check.model import Apply, Task

BUILT_IN: Mapping[str, str] = {
    "/configmaps": "ConfigMap",
    "/endpoints": "Endpoints",
    "/namespaces": "Namespace",
    "/nodes": "Node",
    "/persistentvolumeclaims": "claim",
    "/persistentvolumes": "volume",
    "/pods": "pod",
    "/secrets": "Secret",
    "/serviceaccounts": "ServiceAccount",
    "/services": "Service",
    "admissionregistration.k8s.io/mutatingwebhookconfigurations": "MutatingWebhookConfiguration",
    "admissionregistration.k8s.io/validatingwebhookconfigurations": "ValidatingWebhookConfiguration",
    "apiextensions.k8s.io/customresourcedefinitions": "CustomResourceDefinition",
    "apps/controllerrevisions": "ControllerRevision",
    "apps/daemonsets": "DaemonSet",
    "apps/deployments": "Deployment",
    "apps/replicasets": "ReplicaSet",
    "apps/statefulsets": "StatefulSet",
    "autoscaling/horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "batch/cronjobs": "CronJob",
    "batch/jobs": "Job",
    "discovery.k8s.io/endpointslices": "EndpointSlice",
    "networking.k8s.io/ingresses": "Ingress",
    "networking.k8s.io/networkpolicies": "NetworkPolicy",
    "policy/poddisruptionbudgets": "PodDisruptionBudget",
    "rbac.authorization.k8s.io/clusterrolebindings": "ClusterRoleBinding",
    "rbac.authorization.k8s.io/clusterroles": "ClusterRole",
    "rbac.authorization.k8s.io/rolebindings": "RoleBinding",
    "rbac.authorization.k8s.io/roles": "Role",
    "storage.k8s.io/storageclasses": "StorageClass",
}

_NAME = r"((?:[a-z0-9-]+/)?[a-zA-Z0-9][\w.:*-]*)"


class Names:
    """The kinds of a check: those of Kubernetes, and those that its definitions and samples name."""

    def __init__(self, custom: Mapping[str, str] | None = None) -> None:
        self._kinds = {**BUILT_IN, **(custom or {})}
        plurals = "|".join(re.escape(resource.removeprefix("/")) for resource in self._kinds)
        self._keys = re.compile(rf"(?<![\w/.-])({plurals}) {_NAME}")

    @classmethod
    def of(cls, task: Task) -> Names:
        applied = [action.object for step in task.steps for action in step.actions if isinstance(action, Apply)]
        return cls(dict(_custom([*task.setup.objects, *applied])))

    def kind(self, resource: str) -> str:
        """Of "group/plural", with or without a subresource."""
        parts = resource.split("/")
        plain = "/".join(parts[:2])
        return self._kinds.get(plain) or parts[min(1, len(parts) - 1)].removesuffix("s")

    def spoken(self, resource: str, name: str) -> str:
        return f"{self.kind(resource)} {name}"

    def in_text(self, text: str) -> str:
        """A text in which objects have the names that people call them by.

        >>> Names().in_text("apps/statefulsets default/rabbit is missing")
        'StatefulSet rabbit is missing'
        """

        def replaced(match: re.Match[str]) -> str:
            resource = match[1] if "/" in match[1] else f"/{match[1]}"
            return f"{self._kinds[resource]} {match[2].rpartition('/')[2]}"

        return self._keys.sub(replaced, text)


def _custom(objects: Iterable[dict[str, Any]]) -> Iterable[tuple[str, str]]:
    for obj in objects:
        if obj.get("kind") == "CustomResourceDefinition":
            names = obj["spec"]["names"]
            yield f"{obj['spec']['group']}/{names['plural']}", names["kind"]
