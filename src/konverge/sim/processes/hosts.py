"""The names of a cluster as a hosts file: there is no DNS server, so processes are given a file of their own.

Pure. Java reads it with `-Djdk.net.hosts.file={hosts}`. Cluster IPs lead nowhere here, so a Service's name stands for
the addresses of its endpoints: it helps where the Service's port is its target's.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.objects.kinds.core_v1 import Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.processes.downward import Self

DOMAIN = "cluster.local"
_SERVICE = "kubernetes.io/service-name"


def text(itself: Self, pods: Iterable[Pod], services: Iterable[Service], slices: Iterable[EndpointSlice]) -> str:
    """The file of one pod: itself, pods with a name of their own, services. Short names are those of its namespace."""
    meta, spec = itself.pod.metadata, itself.pod.spec
    own = [itself.hostname]
    if spec.subdomain:
        own = [f"{itself.hostname}.{spec.subdomain}.{meta.namespace}.svc.{DOMAIN}", *own]
    lines = ["127.0.0.1 localhost", f"{itself.pod_ip} {' '.join(own)}"]
    lines += _pods(meta.namespace, meta.uid, pods)
    lines += _services(meta.namespace, services, slices)
    lines += [
        f"{' '.join((alias.ip or '', *alias.hostnames))}" for alias in spec.host_aliases if alias.ip and alias.hostnames
    ]
    return "\n".join(lines) + "\n"


def _pods(namespace: str, uid: str, pods: Iterable[Pod]) -> list[str]:
    lines = []
    for pod in sorted(pods, key=lambda pod: (pod.metadata.namespace, pod.metadata.name)):
        meta, spec, address = pod.metadata, pod.spec, pod.status.pod_ip
        if not spec.hostname or not spec.subdomain or not address or pod.status.phase in ("Succeeded", "Failed"):
            continue
        names = _names(f"{spec.hostname}.{spec.subdomain}", meta.namespace, namespace)
        lines.append(f"{address} {' '.join(names)}")
    return lines


def _services(namespace: str, services: Iterable[Service], slices: Iterable[EndpointSlice]) -> list[str]:
    addresses: dict[tuple[str, str], list[str]] = {}
    for endpoint_slice in slices:
        key = (endpoint_slice.metadata.namespace, endpoint_slice.metadata.labels.get(_SERVICE, ""))
        for endpoint in endpoint_slice.endpoints:
            if endpoint.conditions is None or endpoint.conditions.ready is not False:
                addresses.setdefault(key, []).extend(endpoint.addresses)
    lines: list[str] = []
    for service in sorted(
        services, key=lambda endpoint_slice: (endpoint_slice.metadata.namespace, endpoint_slice.metadata.name)
    ):
        meta = service.metadata
        names = " ".join(_names(meta.name, meta.namespace, namespace))
        members = sorted(set(addresses.get((meta.namespace, meta.name), ())))
        lines += [f"{address} {names}" for address in members]
    return lines


def _names(name: str, of: str, seen_from: str) -> list[str]:
    """
    >>> _names("web", "shop", "default")
    ['web.shop.svc.cluster.local', 'web.shop.svc', 'web.shop']
    """
    names = [f"{name}.{of}.svc.{DOMAIN}", f"{name}.{of}.svc", f"{name}.{of}"]
    return [*names, name] if of == seen_from else names
