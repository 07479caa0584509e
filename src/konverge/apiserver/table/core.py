"""The core group, Events (which two groups serve), and networking: ingresses, policies, addresses, endpoint slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from konverge.apiserver.strategy import Obj
from konverge.apiserver.table.cells import NONE, UNKNOWN, Cell, at, condition, name, since, some, status_of

_DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"
_HOSTS_SHOWN = 3
_ROLE_PREFIX, _ROLE_LABEL = "node-role.kubernetes.io/", "kubernetes.io/role"


# --- services


def cluster_ip(service: Obj) -> str:
    addresses = service["spec"].get("clusterIPs")
    return addresses[0] if addresses else NONE


def external_ip(service: Obj) -> str:
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


def ports(service: Obj) -> str:
    """Upstream: makePortString."""
    shown = []
    for port in service["spec"].get("ports") or ():
        node_port = f":{port['nodePort']}" if port.get("nodePort") else ""
        shown.append(f"{port.get('port', 0)}{node_port}/{port.get('protocol', '')}")
    return ",".join(shown) or NONE


def endpoints(obj: Obj) -> str:
    """Upstream: formatEndpoints."""
    subsets = obj.get("subsets") or ()
    if not subsets:
        return NONE
    total = sum(len(subset.get("addresses") or ()) * max(len(subset.get("ports") or ()), 1) for subset in subsets)
    return some(_addresses(subsets), total, empty="")


def _addresses(subsets: Sequence[Obj]) -> Iterator[str]:
    for subset in subsets:
        ports = [port.get("port", 0) for port in subset.get("ports") or ()]
        for port in ports or [None]:
            for address in subset.get("addresses") or ():
                yield address.get("ip", "") if port is None else _host_port(address.get("ip", ""), port)


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


# --- nodes


def node_status(node: Obj) -> str:
    ready = condition(node, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if (node.get("spec") or {}).get("unschedulable"):
        states.append("SchedulingDisabled")
    return ",".join(states)


def roles(node: Obj) -> str:
    """Upstream: findNodeRoles."""
    roles = set()
    for key, value in (node["metadata"].get("labels") or {}).items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key.removeprefix(_ROLE_PREFIX))
        elif key == _ROLE_LABEL:
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def node_address(kind: str) -> Cell:
    addresses = at("status.addresses", ())
    return lambda node: next((entry.get("address", "") for entry in addresses(node) if entry.get("type") == kind), NONE)


def kernel(node: Obj) -> str:
    info = status_of(node).get("nodeInfo") or {}
    architecture = info.get("architecture")
    return (info.get("kernelVersion") or UNKNOWN) + (f" ({architecture})" if architecture else "")


# --- quotas and events


def quota(part: str) -> Cell:
    """Used and hard of each resource; those of `limits.…` have a column of their own."""

    def cell(quota: Obj) -> str:
        status = status_of(quota)
        hard, used = status.get("hard") or {}, status.get("used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") is (part == "limits")]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


def message(event: Obj) -> str:
    return str(event.get("message", "")).strip()


def first_seen(event: Obj) -> str:
    return since(event.get("firstTimestamp") or event.get("eventTime"))


def last_seen(event: Obj) -> str:
    if event.get("series"):
        return since(event["series"].get("lastObservedTime"))
    return since(event.get("lastTimestamp"), first_seen(event))


def event_count(event: Obj) -> int:
    if event.get("series"):
        return int(event["series"].get("count", 0))
    return int(event.get("count") or 1)


def involved(event: Obj) -> str:
    involved = event.get("involvedObject") or {}
    kind = involved.get("kind", "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def source(event: Obj) -> str:
    """Upstream: formatEventSourceComponentInstance."""
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    instance = source.get("host") or event.get("reportingInstance") or ""
    return f"{component}, {instance}" if instance else component


def _healthy(obj: Obj) -> Obj:
    healthy: Obj = next((c for c in obj.get("conditions") or () if c.get("type") == "Healthy"), {})
    return healthy


def of_healthy(field: str) -> Cell:
    return lambda obj: str(_healthy(obj).get(field, ""))


def healthy(obj: Obj) -> str:
    return {"": "Unknown", "True": "Healthy"}.get(_healthy(obj).get("status", ""), "Unhealthy")


# --- ingresses, addresses, endpoint slices


def hosts(ingress: Obj) -> str:
    """The first hosts. The others are counted by rules, whether they have a host or not. Upstream: formatHosts."""
    rules = ingress["spec"].get("rules") or []
    shown: list[str] = []
    more = False
    for rule in rules:
        more = more or len(shown) == _HOSTS_SHOWN
        if not more and rule.get("host"):
            shown.append(rule["host"])
    if not shown:
        return "*"
    joined = ",".join(shown)
    return f"{joined} + {len(rules) - _HOSTS_SHOWN} more..." if more else joined


def address(ingress: Obj) -> str:
    return ",".join(load_balancer(ingress))


def ingress_ports(ingress: Obj) -> str:
    return "80, 443" if ingress["spec"].get("tls") else "80"


def class_name(obj: Obj) -> str:
    default = (obj["metadata"].get("annotations") or {}).get(_DEFAULT_INGRESS_CLASS) == "true"
    return name(obj) + (" (default)" if default else "")


def parameters(obj: Obj) -> str:
    parameters = (obj.get("spec") or {}).get("parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") is not None else ""
    return f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"


def parent(obj: Obj) -> str:
    parent = (obj.get("spec") or {}).get("parentRef")
    if not parent:
        return NONE
    resource = parent.get("resource", "") + (f".{parent['group']}" if parent.get("group") else "")
    parts = [resource.lower(), parent.get("namespace", ""), parent.get("name", "")]
    return "/".join(part for index, part in enumerate(parts) if part or index == 2)


def slice_ports(obj: Obj) -> str:
    """Upstream: formatDiscoveryPorts."""
    shown = [
        str(port["port"]) if port.get("port") is not None else port.get("name", "*") for port in obj.get("ports") or ()
    ]
    return some(shown, len(shown))


def slice_endpoints(obj: Obj) -> str:
    """Upstream: formatDiscoveryEndpoints."""
    shown = [address for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return some(shown, len(shown))
