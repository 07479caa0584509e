"""How a process finds the API server: there is no cluster IP to reach it by, so it gets the real address.

Client libraries that insist on the usual path of the token will not find it; all know KUBECONFIG.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from konverge.objects.kinds.core_v1 import Container, Pod
from konverge.objects.kinds.discovery_v1 import EndpointSlice
from konverge.sim.processes.mounts import Mounts

SERVICE = ("default", "kubernetes")


def server(slices: Iterable[EndpointSlice]) -> tuple[str, int] | None:
    """Address and port of the API server, if it listens."""
    for endpoint_slice in slices:
        if (
            endpoint_slice.metadata.namespace,
            endpoint_slice.metadata.labels.get("kubernetes.io/service-name"),
        ) == SERVICE:
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
        volume.name: part.service_account_token.path
        for volume in pod.spec.volumes
        for part in (volume.projected.sources if volume.projected is not None else ())
        if part.service_account_token is not None
    }
    return next((volume_mount.mount_path for volume_mount in spec.volume_mounts if volume_mount.name in with_token), "")


def kubeconfig(pod: Pod, mounts: Mounts, mounted: str, address: str, port: int) -> str:
    """For the pod's service account; the token is read from its file, so a new one is noticed."""
    folder = mounts.locate(mounted)
    authority = folder / "ca.crt"
    secure = _holds_something(authority)
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


def _holds_something(path: Path) -> bool:
    return path.exists() and bool(path.read_text().strip())
