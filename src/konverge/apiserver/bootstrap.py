"""The objects that are there from the start: namespaces, the server's own Service, priorities.

They are written straight to the store: at start nobody watches, and no rule needs to be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.apiserver.objects import Objects

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = {
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def create_all(objects: Objects, cluster_ip: str) -> None:
    """Create what is missing; a server with a data directory has most of it already."""
    for name in NAMESPACES:
        objects.create("", "namespaces", _namespace(name))
    objects.create("", "services", _service(cluster_ip))
    for name, (value, description) in _PRIORITIES.items():
        objects.create("scheduling.k8s.io", "priorityclasses", _priority_class(name, value, description))


def _namespace(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _service(cluster_ip: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "ports": [{"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443}],
            "clusterIP": cluster_ip,
            "clusterIPs": [cluster_ip],
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
        },
        "status": {"loadBalancer": {}},
    }


def _priority_class(name: str, value: int, description: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "generation": 1},
        "value": value,
        "description": description,
        "preemptionPolicy": "PreemptLowerPriority",
    }
