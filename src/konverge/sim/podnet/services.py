"""What is behind the address of a Service, port by port. Upstream: pkg/proxy/topology.go, pkg/proxy/serviceport.go."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterable
from dataclasses import dataclass

from konverge.objects.kinds.core_v1 import Pod, Service, ServicePort
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointPort, EndpointSlice
from konverge.wire import routes

log = logging.getLogger("konverge.sim.podnet")

LABEL = "kubernetes.io/service-name"
_AFFINITY_TIME = 10800
_PROTOCOLS = {"TCP": "tcp", "UDP": "udp"}
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")
ANY = "0.0.0.0"  # noqa: S104 - in the network of a node

Backend = tuple[str, int]
"""Address and port of an endpoint."""


@dataclass(frozen=True, slots=True)
class Front:
    """What is connected to."""

    protocol: str
    """`tcp` or `udp`."""
    address: str
    port: int
    node: str = ""
    """Whose network it is of; that of the Services without one."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Where a connection goes."""

    backends: tuple[Backend, ...]
    affinity: int = 0
    """Seconds for which a client keeps its backend."""


def behind(service: Service, slices: Iterable[EndpointSlice], nodes: Iterable[str] = ()) -> dict[Front, Behind]:
    """Those fronts of a Service that have something behind them: what has nothing refuses connections.

    Its node ports are fronts of each node, on all of the node's addresses.
    """
    address = service.spec.cluster_ip or ""
    if address in ("", "None") or ":" in address or service.spec.type == "ExternalName":
        return {}
    own = [part for part in slices if part.address_type == "IPv4" and _is_of(part, service)]
    fronts: dict[Front, Behind] = {}
    for port in service.spec.ports:
        protocol = _PROTOCOLS.get(port.protocol or "TCP")
        if protocol is None:
            continue
        ways = {Front(protocol, address, port.port): _backends(port, own)}
        if port.node_port and service.spec.type in _WITH_NODE_PORTS:
            local = service.spec.external_traffic_policy == "Local"
            for node in nodes:
                ways[Front(protocol, ANY, port.node_port, node)] = _backends(port, own, node if local else "")
        fronts |= {front: Behind(backends, _affinity(service)) for front, backends in ways.items() if backends}
    return fronts


def _is_of(part: EndpointSlice, service: Service) -> bool:
    meta = part.metadata
    return (meta.namespace, meta.labels.get(LABEL)) == (service.metadata.namespace, service.metadata.name)


def host_ports(pod: Pod, address: str) -> dict[Front, Behind]:
    """The ports of its node that a pod asks for, and where they lead."""
    fronts: dict[Front, Behind] = {}
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for port in container.ports:
            protocol = _PROTOCOLS.get(port.protocol or "TCP")
            if protocol is not None and port.host_port and _can_be_bound(port.host_ip or ANY, pod):
                front = Front(protocol, port.host_ip or ANY, port.host_port, pod.spec.node_name or "")
                fronts[front] = Behind(((address, port.container_port),))
    return fronts


def _can_be_bound(host_ip: str, pod: Pod) -> bool:
    """No API server looks at a hostIP: it may be any text, and long."""
    try:
        ipaddress.IPv4Address(host_ip)
    except ValueError:
        meta = pod.metadata
        log.warning("the hostIP of a port of %s/%s is no IPv4 address: %.80r", meta.namespace, meta.name, host_ip)
        return False
    return True


def _backends(port: ServicePort, slices: Iterable[EndpointSlice], node: str = "") -> tuple[Backend, ...]:
    """Ready endpoints, of one node if that is wanted; where there is none, those that end but still serve."""
    ready: set[Backend] = set()
    ending: set[Backend] = set()
    for part in slices:
        numbers = [entry.port for entry in part.ports if entry.port and _named(entry) == _named(port)]
        for endpoint in part.endpoints if numbers else ():
            place = (endpoint.addresses[0], numbers[0])
            if (node and endpoint.node_name != node) or _leads_out(endpoint):
                continue
            if _is(endpoint, "ready", default=True):
                ready.add(place)
            elif _is(endpoint, "serving") and _is(endpoint, "terminating"):
                ending.add(place)
    return tuple(sorted(ready or ending))


def _leads_out(endpoint: Endpoint) -> bool:
    """Whether it is a pod's that has an address of elsewhere: a pod's annotation may name any, and that is no way out.

    Who may write EndpointSlices may leave the pod out and lead wherever they want.
    """
    target = endpoint.target_ref
    return target is not None and target.kind == "Pod" and not routes.is_local(endpoint.addresses[0])


def _named(port: ServicePort | EndpointPort) -> tuple[str, str]:
    return port.name or "", port.protocol or "TCP"


def _is(endpoint: Endpoint, condition: str, *, default: bool = False) -> bool:
    value = getattr(endpoint.conditions, condition, None)
    return default if value is None else bool(value)


def _affinity(service: Service) -> int:
    if service.spec.session_affinity != "ClientIP":
        return 0
    config = service.spec.session_affinity_config
    client = config.client_ip if config is not None else None
    return (client.timeout_seconds if client is not None else None) or _AFFINITY_TIME
