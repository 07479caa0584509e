"""The core group, and Events (which two groups serve)."""

from __future__ import annotations

from typing import Any

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table import pods
from konverge.apiserver.table.cells import (
    AGED,
    NONE,
    UNKNOWN,
    Cell,
    age,
    at,
    condition,
    container_images,
    container_names,
    count,
    labels_at,
    name,
    since,
    some,
    status_of,
    text_at,
)  # fmt: skip
from konverge.apiserver.table.storage import CLAIM, VOLUME

_ROLE_PREFIX, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


# --- services


def _cluster_ip(service: Obj) -> str:
    addresses = service["spec"].get("clusterIPs")
    return addresses[0] if addresses else NONE


def _external_ip(service: Obj) -> str:
    """Upstream: getServiceExternalIP."""
    spec = service["spec"]
    external = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(external) or NONE
        case "LoadBalancer":
            return ",".join(load_balancer(service) + external) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return UNKNOWN


def load_balancer(obj: Obj) -> list[str]:
    """The addresses of a load balancer, sorted, each once. Upstream: loadBalancerStatusStringer."""
    points = (status_of(obj).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({address for point in points if (address := point.get("ip") or point.get("hostname"))})


def _ports(service: Obj) -> str:
    """Upstream: makePortString."""
    shown = []
    for port in service["spec"].get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


def _endpoints(obj: Obj) -> str:
    """Upstream: formatEndpoints."""
    subsets = obj.get("subsets") or ()
    if not subsets:
        return NONE
    shown: list[str] = []
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = [port.get("port", 0) for port in subset.get("ports") or ()]
        shown += [_host_port(address, port) for port in ports for address in addresses] if ports else addresses
    return some(shown, len(shown), empty="")


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


# --- nodes


def _node_status(node: Obj) -> str:
    ready = condition(node, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def _roles(node: Obj) -> str:
    """Upstream: findNodeRoles."""
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Cell:
    addresses = at("status.addresses", ())
    return lambda node: next((entry.get("address", "") for entry in addresses(node) if entry.get("type") == kind), NONE)


def _kernel(node: Obj) -> str:
    info = status_of(node).get("nodeInfo") or {}
    architecture = info.get("architecture")
    return (info.get("kernelVersion") or UNKNOWN) + (f" ({architecture})" if architecture else "")


# --- quotas and events


def _quota(*, limits: bool) -> Cell:
    """Used and hard of each resource; those of `limits.…` have a column of their own."""

    def cell(quota: Obj) -> str:
        status = status_of(quota)
        hard, used = status.get("hard") or {}, status.get("used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") is limits]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def _first_seen(event: Obj) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"))


def _last_seen(event: Obj) -> str:
    if event.get("series"):
        return since(event["series"].get("lastObservedTime"))
    return since(event.get("lastTimestamp"), _first_seen(event))


def _event_count(event: Obj) -> int:
    if event.get("series"):
        return int(event["series"].get("count", 0))
    return int(event.get("count") or 1)


def _involved(event: Obj) -> str:
    involved = event.get("involvedObject") or {}
    kind = involved.get("kind", "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _source(event: Obj) -> str:
    """Upstream: formatEventSourceComponentInstance."""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _healthy(obj: Obj, field: str) -> str:
    healthy: Obj = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
    if field != "status":
        return str(healthy.get(field, ""))
    return {"": "Unknown", "True": "Healthy"}.get(healthy.get("status", ""), "Unhealthy")


KINDS: dict[str, dict[str, Any]] = {
    "Pod": pods.POD,
    "PodTemplate": {
        "Name": name,
        "Containers": container_names("template.spec.containers"),
        "Images": container_images("template.spec.containers"),
        "Pod Labels": labels_at("template.metadata.labels"),
    },
    "ReplicationController": {
        "Name": name,
        "Desired": at("spec.replicas", 0),
        "Current": at("status.replicas", 0),
        "Ready": at("status.readyReplicas", 0),
        "Age": age,
        "Containers": container_names("spec.template.spec.containers"),
        "Images": container_images("spec.template.spec.containers"),
        "Selector": labels_at("spec.selector"),
    },
    "Service": {
        "Name": name,
        "Type": at("spec.type"),
        "Cluster-IP": _cluster_ip,
        "External-IP": _external_ip,
        "Port(s)": _ports,
        "Age": age,
        "Selector": labels_at("spec.selector"),
    },
    "Endpoints": {"Name": name, "Endpoints": _endpoints, "Age": age},
    "ConfigMap": {"Name": name, "Data": count("data", "binaryData"), "Age": age},
    "Secret": {"Name": name, "Type": at("type"), "Data": count("data"), "Age": age},
    "ServiceAccount": AGED,
    "Namespace": {"Name": name, "Status": at("status.phase"), "Age": age},
    "Node": {
        "Name": name,
        "Status": _node_status,
        "Roles": _roles,
        "Age": age,
        "Version": at("status.nodeInfo.kubeletVersion"),
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "OS-Image": text_at("status.nodeInfo.osImage", UNKNOWN),
        "Kernel-Version": _kernel,
        "Container-Runtime": text_at("status.nodeInfo.containerRuntimeVersion", UNKNOWN),
    },
    "PersistentVolume": VOLUME,
    "PersistentVolumeClaim": CLAIM,
    "ResourceQuota": {"Name": name, "Request": _quota(limits=False), "Limit": _quota(limits=True), "Age": age},
    "Event": {
        "Last Seen": _last_seen,
        "Type": at("type"),
        "Reason": at("reason"),
        "Object": _involved,
        "Subobject": at("involvedObject.fieldPath"),
        "Source": _source,
        "Message": lambda event: event.get("message", "").strip(),
        "First Seen": _first_seen,
        "Count": _event_count,
        "Name": name,
    },
    "ComponentStatus": {
        "Name": name,
        "Status": lambda obj: _healthy(obj, "status"),
        "Message": lambda obj: _healthy(obj, "message"),
        "Error": lambda obj: _healthy(obj, "error"),
    },
}
CONDITIONS = {"Pod": pods.conditions}
