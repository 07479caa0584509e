"""What the names of a cluster stand for: `web.shop.svc.cluster.local` and its kin, read from the API server's objects.

As CoreDNS's plugin `kubernetes` answers, with one difference: where nothing listens on the addresses of Services, the
name of a Service with an address of its own stands for its ready pods, if its ports are theirs. Where they are not, or
no pod is ready, it stands for the Service's address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from konverge.sim.applications.names.message import AAAA, ANY, CNAME, NAME_ERROR, NO_ERROR, PTR, SRV, A, Entry

DOMAIN = "cluster.local"
_REVERSE = ".in-addr.arpa"
_SERVICE_LABEL = "kubernetes.io/service-name"
Obj = dict[str, Any]


class Source(Protocol):
    """Where Services and EndpointSlices are read: `ApiServer.objects`."""

    def get(self, group: str, plural: str, namespace: str, name: str) -> Obj | None: ...

    def scan(self, group: str, plural: str, namespace: str = "") -> Iterator[Obj]: ...


@dataclass(frozen=True, slots=True)
class Result:
    code: int = NO_ERROR
    entries: list[Entry] = field(default_factory=list)
    extra: list[Entry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Backend:
    address: str
    hostname: str
    ports: list[Obj]


class Names:
    """The names of one cluster."""

    def __init__(self, objects: Source, domain: str = DOMAIN, *, proxied: bool = False) -> None:
        """`proxied`: the addresses of Services lead to their pods."""
        self._objects = objects
        self.domain = domain
        self._proxied = proxied

    def look_up(self, name: str, kind: int) -> Result:
        """What a full name stands for."""
        if name.endswith(_REVERSE):
            return self._reverse(name, kind)
        suffix = f".{self.domain}"
        if not name.endswith(suffix):
            return Result(NAME_ERROR)
        labels = name.removesuffix(suffix).split(".")
        if labels[-1] == "pod" and len(labels) == 3:
            return self._pod(name, labels[0], kind)
        if labels[-1] != "svc" or len(labels) < 3:
            return Result(NAME_ERROR)
        *rest, service_name, namespace = labels[:-1]
        service = self._objects.get("", "services", namespace, service_name)
        if service is None:
            return Result(NAME_ERROR)
        backends = self._backends(service)
        if len(rest) == 2 and rest[0].startswith("_") and rest[1].startswith("_"):
            return self._ports(name, service, backends, rest[0][1:], rest[1][1:])
        if len(rest) == 1:
            addresses = [backend.address for backend in backends if _label(backend) == rest[0]]
            return _addresses(name, addresses, kind) if addresses else Result(NAME_ERROR)
        if rest:
            return Result(NAME_ERROR)
        return self._service(name, service, backends, kind)

    def addresses(self, name: str, namespace: str = "default") -> list[str]:
        """The addresses that a process in a pod of this namespace would get for a name, full or short."""
        suffixes = ("", *(f".{domain}" for domain in search_domains(namespace, self.domain)))
        for suffix in suffixes:
            result = self.look_up(f"{name.rstrip('.')}{suffix}", A)
            if result.entries:
                return [entry.value for entry in (*result.entries, *result.extra) if entry.type == A]
        return []

    # -------------------------------------------------------------- kinds of names

    def _service(self, name: str, service: Obj, backends: list[_Backend], kind: int) -> Result:
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            target = spec.get("externalName", "").lower().rstrip(".")
            known = self.look_up(target, kind)
            return Result(NO_ERROR, [Entry(name, CNAME, target), *known.entries])
        address = spec.get("clusterIP") or "None"
        pods = [backend.address for backend in backends]
        if address == "None":
            return _addresses(name, pods, kind) if pods else Result(NAME_ERROR)
        direct = not self._proxied and pods and _same_ports(service, backends)
        return _addresses(name, pods if direct else [address], kind)

    def _ports(self, name: str, service: Obj, backends: list[_Backend], port: str, protocol: str) -> Result:
        base = self._name(service)
        result = Result()
        if (service["spec"].get("clusterIP") or "None") == "None":
            for backend in backends:
                for entry in backend.ports:
                    if entry.get("name") == port and entry.get("protocol", "TCP").lower() == protocol:
                        target = f"{_label(backend)}.{base}"
                        result.entries.append(Entry(name, SRV, f"0 100 {entry['port']} {target}"))
                        result.extra.append(Entry(target, A, backend.address))
        else:
            for entry in service["spec"].get("ports") or ():
                if entry.get("name") == port and entry.get("protocol", "TCP").lower() == protocol:
                    result.entries.append(Entry(name, SRV, f"0 100 {entry['port']} {base}"))
                    result.extra.extend(self._service(base, service, backends, A).entries)
        return result if result.entries else Result(NAME_ERROR)

    def _pod(self, name: str, dashed: str, kind: int) -> Result:
        try:
            address = str(ipaddress.IPv4Address(dashed.replace("-", ".")))
        except ValueError:
            return Result(NAME_ERROR)
        return _addresses(name, [address], kind)

    def _reverse(self, name: str, kind: int) -> Result:
        """The names of an address: of the Service whose it is, or of an endpoint in each of its Services."""
        address = ".".join(reversed(name.removesuffix(_REVERSE).split(".")))
        services = self._objects.scan("", "services")
        named = [self._name(service) for service in services if service["spec"].get("clusterIP") == address]
        if not named:
            slices = self._objects.scan("discovery.k8s.io", "endpointslices")
            found = ((part, backend) for part in slices for backend in _ready(part) if backend.address == address)
            named = [
                f"{_label(backend)}.{_service(part)}.{part['metadata']['namespace']}.svc.{self.domain}"
                for part, backend in found
                if _service(part)
            ]
        entries = [Entry(name, PTR, one) for one in named if kind in (PTR, ANY)]
        return Result(NO_ERROR if named else NAME_ERROR, entries)

    def _name(self, service: Obj) -> str:
        return f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc.{self.domain}"

    def _backends(self, service: Obj) -> list[_Backend]:
        """The ready endpoints of a Service, in the order of their addresses."""
        meta = service["metadata"]
        backends: dict[str, _Backend] = {}
        for entry in self._objects.scan("discovery.k8s.io", "endpointslices", meta["namespace"]):
            if _service(entry) == meta["name"]:
                for backend in _ready(entry):
                    backends.setdefault(backend.address, backend)
        return [backends[address] for address in sorted(backends, key=ipaddress.ip_address)]


def _service(part: Obj) -> str:
    """The name of the Service that an EndpointSlice belongs to."""
    return (part["metadata"].get("labels") or {}).get(_SERVICE_LABEL) or ""


def _ready(part: Obj) -> Iterator[_Backend]:
    for endpoint in part.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            for address in endpoint["addresses"]:
                yield _Backend(address, endpoint.get("hostname") or "", part.get("ports") or [])


def _label(backend: _Backend) -> str:
    return backend.hostname or backend.address.replace(".", "-")


def _same_ports(service: Obj, backends: list[_Backend]) -> bool:
    targets = {(entry.get("name") or "", entry.get("port")) for backend in backends for entry in backend.ports}
    return all((entry.get("name") or "", entry["port"]) in targets for entry in service["spec"].get("ports") or ())


def _addresses(name: str, addresses: list[str], kind: int) -> Result:
    if kind not in (A, AAAA, ANY):
        return Result()
    return Result(NO_ERROR, [Entry(name, A, address) for address in addresses] if kind != AAAA else [])


def search_domains(namespace: str, domain: str = DOMAIN) -> list[str]:
    """Where a pod's resolver looks for short names."""
    return [f"{namespace}.svc.{domain}", f"svc.{domain}", domain]
