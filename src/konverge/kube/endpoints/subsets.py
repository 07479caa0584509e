"""Endpoints: the addresses of a Service's pods, grouped into subsets that share their ports. Pure functions.

An address that is ready for one port is ready in that port's subset; addresses with exactly the same ports share a
subset. An address that is listed as ready and as not ready is not ready.

Upstream: RepackSubsets (pkg/api/v1/endpoints/util.go),
pkg/controller/endpoint/endpoints_controller.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from konverge.kube import pods as podlib
from konverge.kube.endpoints import service_pods
from konverge.kube.endpoints.port_order import endpoints_ports
from konverge.objects.kinds.core_v1 import EndpointAddress, EndpointPort, EndpointSubset, ObjectReference, Pod, Service

CAPACITY = 1000
"""Addresses in one Endpoints object; slices have all. Upstream: maxCapacity."""


class _Port(NamedTuple):
    """A port as a key; None stands for an address without ports."""

    name: str | None
    number: int
    protocol: str | None
    app_protocol: str | None


class _Address(NamedTuple):
    ip: str
    uid: str


def of_service(service: Service, pods: Iterable[Pod]) -> list[EndpointSubset]:
    """The subsets of a Service with these pods."""
    publish_not_ready = bool(service.spec.publish_not_ready_addresses)
    subsets: list[EndpointSubset] = []
    for pod in pods:
        if not service_pods.is_reachable(pod, terminating=publish_not_ready):
            continue
        ips = service_pods.addresses(pod, service_pods.families(service)[0])
        if not ips:
            continue
        address = _address(service, pod, ips[0])
        ready = publish_not_ready or podlib.is_ready(pod)
        subsets += [_subset(address, ports, ready) for ports in _ports(service, pod)]
    return repack(subsets)


def _ports(service: Service, pod: Pod) -> list[list[EndpointPort]]:
    if not service.spec.ports:
        return [[]] if service.spec.cluster_ip == "None" else []
    return [
        [EndpointPort(name=port.name, port=number, protocol=port.protocol, app_protocol=port.app_protocol)]
        for port in service.spec.ports
        if (number := service_pods.port_number(pod, port)) is not None
    ]


def _address(service: Service, pod: Pod, ip: str) -> EndpointAddress:
    meta = pod.metadata
    return EndpointAddress(
        ip=ip,
        hostname=service_pods.hostname(pod, service),
        node_name=pod.spec.node_name or None,
        target_ref=ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid),
    )


def _subset(address: EndpointAddress, ports: list[EndpointPort], ready: bool) -> EndpointSubset:
    subset = EndpointSubset(ports=ports)
    (subset.addresses if ready else subset.not_ready_addresses).append(address)
    return subset


def with_readiness(subset: EndpointSubset) -> list[tuple[EndpointAddress, bool]]:
    """The addresses of a subset, each with whether it is ready."""
    ready, not_ready = subset.addresses, subset.not_ready_addresses
    return [*((address, True) for address in ready), *((address, False) for address in not_ready)]


def repack(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """The same addresses and ports in the canonical layout: no pair of address and port is in two subsets."""
    addresses: dict[_Address, EndpointAddress] = {}
    offers: dict[_Port | None, dict[_Address, bool]] = {}
    for subset in subsets:
        ports: list[_Port | None] = [_Port(p.name, p.port, p.protocol, p.app_protocol) for p in subset.ports]
        for address, ready in with_readiness(subset):
            key = _Address(address.ip, (address.target_ref.uid if address.target_ref else "") or "")
            addresses.setdefault(key, address)
            for port in ports or [None]:
                states = offers.setdefault(port, {})
                states[key] = ready and states.get(key, True)
    # Addresses without a port are a separate group: in a subset with ports they would seem to offer these.
    groups: dict[tuple[bool, tuple[tuple[_Address, bool], ...]], list[_Port]] = {}
    for offered, states in offers.items():
        group = groups.setdefault((offered is not None, tuple(sorted(states.items()))), [])
        if offered is not None:
            group.append(offered)
    return sorted((_packed(addresses, states, ports) for (_, states), ports in groups.items()), key=_rank)


def _packed(
    addresses: dict[_Address, EndpointAddress], states: tuple[tuple[_Address, bool], ...], ports: list[_Port]
) -> EndpointSubset:
    return EndpointSubset(
        addresses=[addresses[key] for key, ready in states if ready],
        not_ready_addresses=[addresses[key] for key, ready in states if not ready],
        ports=endpoints_ports(
            EndpointPort(name=p.name, port=p.number, protocol=p.protocol, app_protocol=p.app_protocol) for p in ports
        ),
    )


def _rank(subset: EndpointSubset) -> tuple[list[tuple[int, str, str]], list[str]]:
    ports = [(port.port, port.protocol or "", port.name or "") for port in subset.ports]
    return ports, [address.ip for address in (*subset.addresses, *subset.not_ready_addresses)]


def truncate(subsets: list[EndpointSubset], capacity: int = CAPACITY) -> bool:
    """Truncate to the capacity, ready addresses first; False when there was nothing to cut. Upstream:
    truncateEndpoints.
    """
    total = sum(len(subset.addresses) + len(subset.not_ready_addresses) for subset in subsets)
    if total <= capacity:
        return False
    for name in ("addresses", "not_ready_addresses"):
        for subset in subsets:
            kept = getattr(subset, name)[:capacity]
            setattr(subset, name, kept)
            capacity -= len(kept)
    subsets[:] = [subset for subset in subsets if subset.addresses or subset.not_ready_addresses]
    return True
