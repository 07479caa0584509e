"""What is behind the address of a Service, port by port. Upstream: pkg/proxy/topology.go, pkg/proxy/serviceport.go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from konverge.objects.kinds.core_v1 import Service, ServicePort
from konverge.objects.kinds.discovery_v1 import Endpoint, EndpointSlice

LABEL = "kubernetes.io/service-name"
_AFFINITY_TIME = 10800
_PROTOCOLS = {"TCP": "tcp", "UDP": "udp"}

Backend = tuple[str, int]
"""Address and port of an endpoint."""


@dataclass(frozen=True, slots=True)
class Front:
    """What is connected to."""

    protocol: str
    """`tcp` or `udp`."""
    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Behind:
    """Where a connection goes."""

    backends: tuple[Backend, ...]
    affinity: int = 0
    """Seconds for which a client keeps its backend."""


def behind(service: Service, slices: Iterable[EndpointSlice]) -> dict[Front, Behind]:
    """Those fronts of a Service that have something behind them: what has nothing refuses connections."""
    address = service.spec.cluster_ip or ""
    if address in ("", "None") or ":" in address or service.spec.type == "ExternalName":
        return {}
    own = [part for part in slices if part.address_type == "IPv4" and _is_of(part, service)]
    fronts: dict[Front, Behind] = {}
    for port in service.spec.ports:
        protocol = _PROTOCOLS.get(port.protocol or "TCP")
        backends = _backends(port, own)
        if protocol is not None and backends:
            fronts[Front(protocol, address, port.port)] = Behind(backends, _affinity(service))
    return fronts


def _is_of(part: EndpointSlice, service: Service) -> bool:
    meta = part.metadata
    return (meta.namespace, meta.labels.get(LABEL)) == (service.metadata.namespace, service.metadata.name)


def _backends(port: ServicePort, slices: Iterable[EndpointSlice]) -> tuple[Backend, ...]:
    """Ready endpoints; where there is none, those that end but still serve."""
    ready: set[Backend] = set()
    ending: set[Backend] = set()
    for part in slices:
        numbers = [entry.port for entry in part.ports if (entry.name or "") == (port.name or "") and entry.port]
        for endpoint in part.endpoints if numbers else ():
            place = (endpoint.addresses[0], numbers[0])
            if _is(endpoint, "ready", default=True):
                ready.add(place)
            elif _is(endpoint, "serving") and _is(endpoint, "terminating"):
                ending.add(place)
    return tuple(sorted(ready or ending))


def _is(endpoint: Endpoint, condition: str, *, default: bool = False) -> bool:
    value = getattr(endpoint.conditions, condition, None)
    return default if value is None else bool(value)


def _affinity(service: Service) -> int:
    if service.spec.session_affinity != "ClientIP":
        return 0
    config = service.spec.session_affinity_config
    client = config.client_ip if config is not None else None
    return (client.timeout_seconds if client is not None else None) or _AFFINITY_TIME
