"""Which pods a Service selects, and which Services select a pod, without scanning all of either.

Pods are indexed by each of their labels, Services by one term of their selector.

Upstream: k8s.io/endpointslice/util/controller_utils.go, utils.go.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import msgspec

from konverge.cache.record import Meta, Record
from konverge.kube import pods as podlib
from konverge.kube.listers import declared
from konverge.objects.kinds.core_v1 import Node, Pod, Service, ServicePort
from konverge.runtime import Request
from konverge.runtime.context import Caches, Context

LABELS = "endpoints/labels"
SELECTOR = "endpoints/selector"
NODE = "endpoints/node"


class _Spec(msgspec.Struct, gc=False, rename="camel"):
    selector: dict[str, str] = {}


class _Service(msgspec.Struct, gc=False):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_service = msgspec.json.Decoder(_Service).decode


# ------------------------------------------------------------------ indexes


def by_labels(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: each label of a pod."""
    return [f"{meta.namespace}/{name}={value}" for name, value in meta.labels.items()]


def by_selector(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the first term of a Service's selector. A pod that it selects has that label."""
    selector = _service(record.raw).spec.selector
    return [f"{meta.namespace}/{_first(selector)}"] if selector else ()


def _first(selector: dict[str, str]) -> str:
    name = min(selector)
    return f"{name}={selector[name]}"


# ------------------------------------------------------------------ from a Service, and to it


def selected(ctx: Context[Service]) -> list[Pod]:
    """The pods that the Service's selector chooses."""
    selector, namespace = ctx.obj.spec.selector, ctx.request.namespace
    candidates = ctx.indexed(Pod, LABELS, f"{namespace}/{_first(selector)}")
    return [pod for pod in candidates if selector.items() <= pod.metadata.labels.items()]


def services_of(pod: Pod, caches: Caches) -> list[Request]:
    services = declared(caches, Service)
    namespace, labels = pod.metadata.namespace, pod.metadata.labels
    return [
        Request(namespace, service.metadata.name)
        for name, value in labels.items()
        for service in services.by_index(SELECTOR, f"{namespace}/{name}={value}")
        if service.spec.selector.items() <= labels.items()
    ]


def services_on(node: Node, caches: Caches) -> list[Request]:
    """The Services with pods on a node."""
    pods = declared(caches, Pod).by_index(NODE, node.metadata.name)
    return [request for pod in pods for request in services_of(pod, caches)]


# ------------------------------------------------------------------ a pod as a Service sees it


# upstream: ShouldPodBeInEndpoints
def is_reachable(pod: Pod, *, terminating: bool) -> bool:
    """It has an address and has not ended; with `terminating`, a pod that is being deleted counts too."""
    if podlib.is_terminated(pod) or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or pod.metadata.deletion_timestamp is None


def addresses(pod: Pod, family: str) -> list[str]:
    """Its addresses of one family (IPv4, IPv6), in their canonical form."""
    parsed = [ipaddress.ip_address(pod_ip.ip) for pod_ip in pod.status.pod_ips if pod_ip.ip]
    return [str(address) for address in parsed if address.version == (6 if family == "IPv6" else 4)]


def families(service: Service) -> list[str]:
    if service.spec.ip_families:
        return list(service.spec.ip_families)
    return ["IPv6" if ":" in (service.spec.cluster_ip or "") else "IPv4"]


def is_headless(service: Service) -> bool:
    return service.spec.cluster_ip in (None, "", "None")


def hostname(pod: Pod, service: Service) -> str | None:
    """The name that a headless Service gives the pod in DNS. Upstream: ShouldSetHostname."""
    return (pod.spec.hostname or None) if pod.spec.subdomain == service.metadata.name else None


def port_number(pod: Pod, port: ServicePort) -> int | None:
    """The number of a target port; a name is looked up in the containers and the sidecars. Upstream: FindPort."""
    target = port.target_port
    if isinstance(target, int):
        return target
    sidecars = [container for container in pod.spec.init_containers if container.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for offered in container.ports:
            if offered.name == target and (offered.protocol or "TCP") == (port.protocol or "TCP"):
                return offered.container_port
    return None
