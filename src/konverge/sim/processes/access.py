"""How a process finds the API server and the other pods, without cluster IPs and without a DNS server.

It gets the real address of the API server. Client libraries that insist on the usual path of the token will not find
it; all know KUBECONFIG. The names of the cluster are in a hosts file of its own: Java reads it with
`-Djdk.net.hosts.file={hosts}`. A Service's name stands for the addresses of its endpoints: it helps where the Service's
port is its target's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from konverge.objects.kinds.core_v1 import Container, Pod, Service
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.processes.disk import Mounts
from konverge.sim.processes.environment import Self

DOMAIN = "cluster.local"


def hosts_file(itself: Self, pods: Iterable[Pod], services: Iterable[Service], slices: Iterable[EndpointSlice]) -> str:
    """The file of one pod: itself and its aliases as a kubelet writes them, pods with a name of their own, services.
    Short names are those of its namespace. Upstream: managedHostsFileContent (pkg/kubelet/kubelet_pods.go).
    """
    meta, spec = itself.pod.metadata, itself.pod.spec
    own = [itself.hostname]
    if spec.subdomain:
        own = [f"{itself.hostname}.{spec.subdomain}.{meta.namespace}.svc.{DOMAIN}", *own]
    header = _HOST_NETWORK if spec.host_network else _MANAGED
    lines = [header, *_LOCAL, "\t".join((itself.pod_ip, *own))]
    if spec.host_aliases:
        lines += ["", "# Entries added by HostAliases."]
        lines += ["\t".join((alias.ip, *alias.hostnames)) for alias in spec.host_aliases]
    others = [*_pods(meta.namespace, pods), *_services(meta.namespace, services, slices)]
    if others:
        lines += ["", "# Pods and services of the cluster, in place of its DNS.", *others]
    return "\n".join(lines) + "\n"


_MANAGED, _HOST_NETWORK = "# Kubernetes-managed hosts file.", "# Kubernetes-managed hosts file (host network)."
_LOCAL = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)


def _pods(namespace: str, pods: Iterable[Pod]) -> list[str]:
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
        key = _service_of(endpoint_slice)
        for endpoint in endpoint_slice.endpoints:
            if endpoint.conditions is None or endpoint.conditions.ready is not False:
                addresses.setdefault(key, []).extend(endpoint.addresses)
    lines: list[str] = []
    for service in sorted(services, key=lambda service: (service.metadata.namespace, service.metadata.name)):
        meta = service.metadata
        names = " ".join(_names(meta.name, meta.namespace, namespace))
        members = sorted(set(addresses.get((meta.namespace, meta.name), ())))
        lines += [f"{address} {names}" for address in members]
    return lines


def _service_of(endpoint_slice: EndpointSlice) -> tuple[str, str]:
    """Namespace and name."""
    meta = endpoint_slice.metadata
    return meta.namespace, meta.labels.get("kubernetes.io/service-name", "")


def _names(name: str, of: str, seen_from: str) -> list[str]:
    """
    >>> _names("web", "shop", "default")
    ['web.shop.svc.cluster.local', 'web.shop.svc', 'web.shop']
    """
    names = [f"{name}.{of}.svc.{DOMAIN}", f"{name}.{of}.svc", f"{name}.{of}"]
    return [*names, name] if of == seen_from else names


SERVICE = ("default", "kubernetes")


def server(slices: Iterable[EndpointSlice]) -> tuple[str, int] | None:
    """Address and port of the API server, if it listens."""
    for endpoint_slice in slices:
        if _service_of(endpoint_slice) == SERVICE:
            for endpoint in endpoint_slice.endpoints:
                if endpoint.addresses and endpoint_slice.ports and endpoint_slice.ports[0].port:
                    return endpoint.addresses[0], endpoint_slice.ports[0].port
    return None


def variables(address: str, port: int) -> dict[str, str]:
    """What stands in place of the variables of the Service."""
    url = f"tcp://{address}:{port}"
    prefix = f"KUBERNETES_PORT_{port}_TCP"
    return {
        "KUBERNETES_SERVICE_HOST": address,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        "KUBERNETES_PORT": url,
        prefix: url,
        f"{prefix}_PROTO": "tcp",
        f"{prefix}_PORT": str(port),
        f"{prefix}_ADDR": address,
    }


def token_mount(pod: Pod, spec: Container) -> str:
    """Where the container has the token of its service account; empty if nowhere."""
    with_token = {
        volume.name
        for volume in pod.spec.volumes
        for part in (volume.projected.sources if volume.projected is not None else ())
        if part.service_account_token is not None
    }
    return next((mount.mount_path for mount in spec.volume_mounts if mount.name in with_token), "")


def kubeconfig(pod: Pod, mounts: Mounts, mounted: str, address: str, port: int) -> str:
    """For the pod's service account; the token is read from its file, so a new one is noticed."""
    folder = mounts.locate(mounted)
    authority = folder / "ca.crt"
    secure = authority.exists() and bool(authority.read_text().strip())
    cluster = {"server": f"{'https' if secure else 'http'}://{address}:{port}"}
    if secure:
        cluster["certificate-authority"] = str(authority)
    context = {"cluster": "konverge", "user": "pod", "namespace": pod.metadata.namespace}
    whole = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "pod",
        "clusters": [{"name": "konverge", "cluster": cluster}],
        "users": [{"name": "pod", "user": {"tokenFile": str(folder / "token")}}],
        "contexts": [{"name": "pod", "context": context}],
    }
    return json.dumps(whole, indent=1)
