"""Cluster IPs and node ports: which are allocated, and to which Service.

The stored Services hold them. `Allocators` keeps an index of that, so that a create need not read
them all: a claim names its Service, and counts only as long as that Service is stored with the value, or the request
that claims is under way. So a claim of a request that failed later is void by itself.

The server makes one (`Allocators(cidr, services=…)`) and offers it to strategies as `Context.service_allocators`;
without it the index is built from the stored Services for each request that needs it.

Upstream: pkg/registry/core/service/ipallocator, pkg/registry/core/service/portallocator.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from itertools import chain
from typing import Any, Generic, TypeVar

from konverge import clock
from konverge.apiserver.strategy import Context, Obj

DEFAULT_RANGE = "10.96.0.0/16"
FIRST_PORT, LAST_PORT = 30000, 32767
_TRIES = 8
IP_TAKEN = "provided IP is already allocated"
IP_OUTSIDE = "the provided network does not match the current range"
PORT_TAKEN = "provided port is already allocated"
PORT_OUTSIDE = f"provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"

Owner = tuple[str, str]
Value = TypeVar("Value", str, int)


class Full(Exception):
    """Nothing is left to allocate."""


def ips_of(service: Obj) -> list[str]:
    """The cluster IPs that a Service holds."""
    return [ip for ip in service["spec"].get("clusterIPs") or () if ip and ip != "None"]


def ports_of(service: Obj) -> list[int]:  # upstream: collectServiceNodePorts
    """The node ports that a Service holds, that of its health check included."""
    spec = service["spec"]
    ports = [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]
    return ports + ([spec["healthCheckNodePort"]] if spec.get("healthCheckNodePort") else [])


def owner_of(service: Obj) -> Owner:
    metadata = service["metadata"]
    return metadata.get("namespace") or "", metadata.get("name") or ""


class _Claims(Generic[Value]):
    """Values and the Services that hold them."""

    def __init__(self, values_of: Any) -> None:
        self._values_of = values_of
        self._owners: dict[Value, Owner] = {}
        self._pending: dict[Value, Context] = {}
        """The requests that have claimed a value and are not yet stored."""

    def add(self, service: Obj) -> None:
        self._owners.update(dict.fromkeys(self._values_of(service), owner_of(service)))

    def drop(self, service: Obj) -> None:
        owner = owner_of(service)
        for value in self._values_of(service):
            if self._owners.get(value) == owner:
                del self._owners[value]

    def taken(self, value: Value, request: Allocation) -> bool:
        owner = self._owners.get(value)
        if owner is None:
            return False
        if self._pending.get(value, request.context) is not request.context:
            return True
        stored = request.stored(owner)
        if stored is not None and value in self._values_of(stored):
            return True
        del self._owners[value]
        return False

    def claim(self, value: Value, owner: Owner, context: Context) -> None:
        self._owners[value] = owner
        self._pending[value] = context

    def settle(self, context: Context) -> None:
        """A request has ended: what it claimed is stored, or void."""
        for value in [value for value, request in self._pending.items() if request is context]:
            del self._pending[value]


class Allocators:
    """The cluster IPs of one range and the node ports."""

    def __init__(self, cidr: str = DEFAULT_RANGE, services: Iterable[Obj] = ()) -> None:
        self.network = ipaddress.ip_network(cidr)
        self.ips: _Claims[str] = _Claims(ips_of)
        self.ports: _Claims[int] = _Claims(ports_of)
        for service in services:
            self.ips.add(service)
            self.ports.add(service)

    def settle(self, context: Context) -> None:
        """The write of a Service has ended, well or not."""
        self.ips.settle(context)
        self.ports.settle(context)

    def release(self, service: Obj) -> None:  # upstream: releaseAllocatedResources
        """Forget what a removed Service had."""
        self.ips.drop(service)
        self.ports.drop(service)


class Allocation:
    """What one request allocates. A dry run claims nothing, and gets stand-ins that no real request could get."""

    def __init__(self, service: Obj, context: Context) -> None:
        self.context = context
        self.dry_run = context.dry_run
        self._owner = owner_of(service)
        self._pools = allocators_of(context)
        self._fresh: set[int | str] = set()
        self._stored: dict[Owner, Obj | None] = {}
        self._rest = iter(range(FIRST_PORT, LAST_PORT + 1))

    def stored(self, owner: Owner) -> Obj | None:
        """A stored Service, read once: all that a request allocates, it allocates in one go."""
        if owner not in self._stored:
            self._stored[owner] = self.context.lookup("", "services", *owner)
        return self._stored[owner]

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return self._pools.network

    def take_ip(self, ip: str) -> str:
        """Why this IP cannot be had, or "" when it is ours now."""
        address, network = ipaddress.ip_address(ip), self.network
        if address not in network and not self.dry_run:
            return IP_OUTSIDE
        if not network.network_address < address < network.broadcast_address:  # type: ignore[operator]
            return f"the provided IP ({ip}) is not in the valid range. The range of valid IPs is {network}"
        if self.dry_run:
            return ""
        if self._pools.ips.taken(ip, self):
            return IP_TAKEN
        self._keep(ip)
        return ""

    def next_ip(self) -> str:
        if self.dry_run:
            return str(self.network.network_address)
        size = self.network.num_addresses
        for offset in _spread(1, size - 1):
            ip = str(self.network[offset])
            if not self._pools.ips.taken(ip, self):
                self._keep(ip)
                return ip
        raise Full

    def take_port(self, port: int) -> str:
        """Why this port cannot be had, or "" when it is ours now."""
        if not self.dry_run and not FIRST_PORT <= port <= LAST_PORT:
            return PORT_OUTSIDE
        if port in self._fresh or self._pools.ports.taken(port, self):
            return PORT_TAKEN
        self._keep(port)
        return ""

    def next_port(self) -> int:
        if self.dry_run:
            stand_in = max((port for port in self._fresh if isinstance(port, int)), default=LAST_PORT + 1) + 1
            self._keep(stand_in)
            return stand_in
        for port in chain(self._random_ports(), self._rest):
            if port not in self._fresh and not self._pools.ports.taken(port, self):
                self._keep(port)
                return port
        raise Full

    def _random_ports(self) -> Iterable[int]:
        """A few tries; when most ports are taken, one walk over all of them finds what is left for the request."""
        return (clock.rng().randrange(FIRST_PORT, LAST_PORT + 1) for _ in range(_TRIES))

    def _keep(self, value: str | int) -> None:
        self._fresh.add(value)
        if self.dry_run:
            return
        if isinstance(value, str):
            self._pools.ips.claim(value, self._owner, self.context)
        else:
            self._pools.ports.claim(value, self._owner, self.context)


def _spread(low: int, high: int) -> Iterable[int]:
    """All numbers from low up to high, beginning at a random one."""
    start = clock.rng().randrange(low, high)
    yield from range(start, high)
    yield from range(low, start)


def allocators_of(context: Context) -> Allocators:
    """The server's allocators, or ones derived from what is stored now."""
    offered: Allocators | None = getattr(context, "service_allocators", None)
    return Allocators(services=context.scan("", "services")) if offered is None else offered
