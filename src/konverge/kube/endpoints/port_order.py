"""The order of ports in Endpoints and slices: by a hash of each, the one by which kube-controller-manager sorts.

Nothing depends on the order, but it makes two clusters comparable. The hash is FNV-1a (128 bits) of the port as Go
prints its struct, so these texts are built here.

Upstream: portsByHash (pkg/api/v1/endpoints/util.go, k8s.io/endpointslice/util), DeepHashObject (pkg/util/hash).
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge.kube.hashing import fnv1a
from konverge.objects.kinds import core_v1, discovery_v1
from konverge.objects.text_cache import remembered


def endpoints_ports(ports: Iterable[core_v1.EndpointPort]) -> list[core_v1.EndpointPort]:
    return sorted(ports, key=lambda port: _hash(_of_endpoints(port)))


def slice_ports(ports: Iterable[discovery_v1.EndpointPort]) -> list[discovery_v1.EndpointPort]:
    return sorted(ports, key=lambda port: _hash(_of_slice(port)))


@remembered(1024)
def _hash(text: str) -> int:
    """Of a hundred characters, one by one: the same ports come with each change of a pod."""
    return fnv1a(text.encode(), 128)


def _of_endpoints(port: core_v1.EndpointPort) -> str:
    return (
        f"(v1.EndpointPort){{Name:(string){port.name or ''} Port:(int32){port.port} "
        f"Protocol:(v1.Protocol){port.protocol or ''} AppProtocol:(*string){_text(port.app_protocol)}}}"
    )


def _of_slice(port: discovery_v1.EndpointPort) -> str:
    return (
        f"(v1.EndpointPort){{Name:(*string){_text(port.name)} Protocol:(*v1.Protocol){_text(port.protocol)} "
        f"Port:(*int32){_text(port.port)} AppProtocol:(*string){_text(port.app_protocol)}}}"
    )


def _text(value: object) -> str:
    return "<nil>" if value is None else str(value)
