"""The objects that are there from the start: namespaces, the server's own Service, priorities, roles.

They are written directly to the store: at start there are no watchers, and nothing has to be validated.
"""

from __future__ import annotations

import gzip
import ipaddress
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver.auth.rbac import GROUP
from konverge.apiserver.meta.system import timestamp

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects

_POLICY_LABEL = "kubernetes.io/bootstrapping"
_POLICY_ANNOTATION = "rbac.authorization.kubernetes.io/autoupdate"
NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITIES = {  # upstream: SystemPriorityClasses (pkg/apis/scheduling/v1/helpers.go)
    "system-cluster-critical": (
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    "system-node-critical": (
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
}


def create_all(objects: Objects, cluster_ips: str) -> None:
    """Create what is missing; a server with a data directory has most of it already."""
    cluster_ip = str(ipaddress.ip_network(cluster_ips)[1])
    for name in NAMESPACES:
        objects.create("", "namespaces", _namespace(name))
    objects.create("networking.k8s.io", "servicecidrs", _service_cidr(cluster_ips))
    objects.create("", "services", _service(cluster_ip))
    objects.create("networking.k8s.io", "ipaddresses", _ip_address(cluster_ip))
    objects.create("", "configmaps", _authentication())
    objects.create("", "configmaps", _token_tracking())
    for name, (value, description) in _PRIORITIES.items():
        objects.create("scheduling.k8s.io", "priorityclasses", _priority_class(name, value, description))
    for group, plural, group_objects in generated():
        for obj in group_objects:
            objects.create(group, plural, _dated(obj))


def generated() -> list[tuple[str, str, list[dict[str, Any]]]]:
    """(group, plural, objects) of what is the same on every server."""
    data = resources.files("konverge.apiserver").joinpath("data/bootstrap.json").read_bytes()
    return msgspec.json.decode(data, type=list[tuple[str, str, list[dict[str, Any]]]])


def _dated(obj: dict[str, Any]) -> dict[str, Any]:
    """With conditions that changed just now."""
    for condition in obj.get("status", {}).get("conditions", ()):
        condition["lastTransitionTime"] = timestamp()
    return obj


def _service_cidr(cluster_ips: str) -> dict[str, Any]:
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(), "reason": ""}
    condition["message"] = "Kubernetes default Service CIDR is ready"
    return {
        "metadata": {"name": "kubernetes"},
        "spec": {"cidrs": [cluster_ips]},
        "status": {"conditions": [condition]},
    }


def _ip_address(address: str) -> dict[str, Any]:
    labels = {
        "ipaddress.kubernetes.io/ip-family": "IPv4",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    parent = {"resource": "services", "namespace": "default", "name": "kubernetes"}
    return {"metadata": {"name": address, "labels": labels}, "spec": {"parentRef": parent}}


def _authentication() -> dict[str, Any]:
    """What aggregated servers read to verify the proxy in front of them. Empty before the server listens with TLS, or
    has an APIService: then it is published (`aggregation/connections.py`)."""
    return {
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {
            "client-ca-file": "",
            "requestheader-allowed-names": "[]",
            "requestheader-client-ca-file": "",
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-username-headers": '["X-Remote-User"]',
        },
    }


def _token_tracking() -> dict[str, Any]:
    """Since when tokens in Secrets are tracked: a controller reads it before it removes unused ones."""
    name = "kube-apiserver-legacy-service-account-token-tracking"
    return {"metadata": {"name": name, "namespace": "kube-system"}, "data": {"since": timestamp().partition("T")[0]}}


def _namespace(name: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/metadata.name": name},
            "managedFields": _managed({"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/metadata.name": {}}}}),
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _managed(fields: dict[str, Any], api_version: str = "v1") -> list[dict[str, Any]]:
    entry = {"manager": "kube-apiserver", "operation": "Update", "apiVersion": api_version, "time": timestamp()}
    return [{**entry, "fieldsType": "FieldsV1", "fieldsV1": fields}]


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


# --- the endpoints of the server's own Service

_OWN_SERVICE = ("default", "kubernetes")


def publish_endpoints(objects: Objects, address: str, port: int) -> None:
    """Write where the server is reached: the endpoints of Service default/kubernetes.

    They replace those that the server may have left when it ran before.
    Upstream: pkg/controlplane/controller/kubernetesservice.
    """
    namespace, name = _OWN_SERVICE
    ports = [{"name": "https", "protocol": "TCP", "port": port}]
    subset = {"addresses": [{"ip": address}], "ports": ports}
    endpoint = {"addresses": [address], "conditions": {"ready": True}}
    family = "IPv6" if ":" in address else "IPv4"
    slice_ = {"addressType": family, "endpoints": [endpoint], "ports": ports}
    skip_mirror = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    _write(objects, "", "endpoints", {"name": name, "labels": skip_mirror}, {"subsets": [subset]})
    labels = {"kubernetes.io/service-name": name}
    _write(objects, "discovery.k8s.io", "endpointslices", {"name": name, "generation": 1, "labels": labels}, slice_)
    objects.update("", "services", namespace, name, lambda service: _target(service, port))


def _write(objects: Objects, group: str, plural: str, metadata: dict[str, Any], content: dict[str, Any]) -> None:
    namespace, name = _OWN_SERVICE
    if objects.create(group, plural, {"metadata": {**metadata, "namespace": namespace}, **content}) is None:
        objects.update(group, plural, namespace, name, lambda endpoints: endpoints | content)


def _target(service: dict[str, Any], port: int) -> None:
    service["spec"]["ports"][0]["targetPort"] = port


# --- roles and bindings


def create_policy(objects: Objects) -> None:
    """Create the missing ones of the roles and bindings that every cluster has.

    Upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy. Data: tools/generate_rbac.py.
    """
    data = gzip.decompress(resources.files("konverge.apiserver").joinpath("data/rbac.json.gz").read_bytes())
    for plural, items in msgspec.json.decode(data).items():
        for item in items:
            objects.create(GROUP, plural, _role_or_binding(item))


def _role_or_binding(item: dict[str, Any]) -> dict[str, Any]:
    labels = {_POLICY_LABEL: "rbac-defaults", **item.pop("labels", {})}
    metadata: dict[str, Any] = {"name": item.pop("name")}
    if "namespace" in item:
        metadata["namespace"] = item.pop("namespace")
    metadata["labels"] = labels
    metadata["annotations"] = {_POLICY_ANNOTATION: "true"}
    metadata["managedFields"] = _managed(_policy_fields(item, labels), f"{GROUP}/v1")
    return {"metadata": metadata, **item}


def _policy_fields(item: dict[str, Any], labels: dict[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "f:metadata": {
            "f:annotations": {".": {}, f"f:{_POLICY_ANNOTATION}": {}},
            "f:labels": {".": {}, **{f"f:{label}": {} for label in labels}},
        }
    }
    for key in item:
        if key == "aggregationRule":
            fields["f:aggregationRule"] = {".": {}, "f:clusterRoleSelectors": {}}
        elif key != "rules" or "aggregationRule" not in item:
            fields[f"f:{key}"] = {}
    return fields
