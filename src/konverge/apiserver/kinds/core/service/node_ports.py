"""The node ports of a Service: allocated at creation, and again as its ports and type change.

Upstream: pkg/registry/core/service/storage/alloc.go.
"""

from __future__ import annotations

from typing import Any

from konverge.apiserver import status
from konverge.apiserver.kinds.core.service.allocation import Allocation, Full
from konverge.apiserver.kinds.framework.declare import Report
from konverge.apiserver.strategy import Obj

Spec = dict[str, Any]


def has_node_ports(spec: Spec) -> bool:  # upstream: needsNodePort
    return spec.get("type") in ("NodePort", "LoadBalancer")


def needs_health_check(spec: Spec) -> bool:  # upstream: needsHCNodePort
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def _wants_ports(spec: Spec) -> bool:  # upstream: shouldAllocateNodePorts
    return spec.get("type") == "NodePort" or bool(spec.get("allocateLoadBalancerNodePorts"))


def _numbers(spec: Spec) -> set[int]:  # upstream: collectServiceNodePorts
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def _next(allocation: Allocation) -> int:
    try:
        return allocation.next_port()
    except Full:
        raise status.internal("failed to allocate a nodePort: range is full") from None


def _take(service: Obj, index: int, number: int, allocation: Allocation) -> None:
    problem = allocation.take_port(number)
    if problem:
        report = Report()
        report.invalid(f"spec.ports[{index}].nodePort", number, problem)
        raise status.invalid("", "Service", service["metadata"].get("name") or "", report.errors)


def allocate_ports(service: Obj, allocation: Allocation) -> None:  # upstream: txnAllocNodePorts
    """On create. Ports with the same number (TCP and UDP 53) share one node port."""
    spec = service["spec"]
    if has_node_ports(spec):
        _allocate_each(service, allocation)
    if needs_health_check(spec):
        _allocate_health_check(spec, allocation)


def _allocate_each(service: Obj, allocation: Allocation) -> None:  # upstream: initNodePorts
    spec = service["spec"]
    shared: dict[int, int] = {}
    ports = spec.get("ports") or ()
    asked_for = {port.get("port") or 0: port["nodePort"] for port in reversed(ports) if port.get("nodePort")}
    for index, port in enumerate(ports):
        if not port.get("nodePort") and not _wants_ports(spec):
            continue
        number = port.get("port") or 0
        if number not in shared:
            asked = asked_for.get(number, 0)
            if asked:
                _take(service, index, asked, allocation)
            shared[number] = asked or _next(allocation)
            port["nodePort"] = shared[number]
        elif not port.get("nodePort"):
            port["nodePort"] = shared[number]
        elif port["nodePort"] != shared[number]:
            _take(service, index, port["nodePort"], allocation)


def _allocate_health_check(spec: Spec, allocation: Allocation) -> None:  # upstream: allocHealthCheckNodePort
    asked = spec.get("healthCheckNodePort")
    if not asked:
        spec["healthCheckNodePort"] = _next(allocation)
        return
    problem = allocation.take_port(asked)
    if problem:
        raise status.internal(f"failed to allocate requested HealthCheck NodePort {asked}: {problem}")


def keep_ports(spec: Spec, old: Spec) -> None:  # upstream: patchAllocatedValues
    """A client that does not know the node ports leaves them as they are, by the names of the ports."""
    if has_node_ports(spec) and has_node_ports(old):
        used = _numbers(spec) & _numbers(old)
        before = {port.get("name") or "": port.get("nodePort") or 0 for port in old.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = before.get(port.get("name") or "", 0)
            if not port.get("nodePort") and number and number not in used:
                port["nodePort"] = number
    if needs_health_check(spec) and needs_health_check(old) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort") or 0


# upstream: updateNodePorts, updateHealthCheckNodePort
def update_ports(service: Obj, old: Spec, allocation: Allocation) -> None:
    """On update: new numbers are allocated, old ones are free once no Service stores them."""
    spec = service["spec"]
    if has_node_ports(spec):
        known = _numbers(old)
        seen: set[tuple[str, int]] = set()
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort") or 0
            if number and number not in known:
                _take(service, index, number, allocation)
                known.add(number)
            elif not number and _wants_ports(spec):
                port["nodePort"] = _next(allocation)
            _once(port, seen)
    if needs_health_check(spec) and not needs_health_check(old):
        _allocate_health_check(spec, allocation)


def _once(port: Spec, seen: set[tuple[str, int]]) -> None:  # upstream: updateNodePorts
    """On update the real server fails on a repeated node port before it validates."""
    key = (port.get("protocol") or "", port.get("nodePort") or 0)
    if key[1] and key in seen:
        raise status.plain_500(f"duplicate nodePort: {{{key[0]} {key[1]}}}")
    seen.add(key)
