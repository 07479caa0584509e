"""Where the server is reached, told as the real one tells it: the endpoints of Service default/kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from konverge.apiserver.object_access import Objects

_WHERE = ("default", "kubernetes")


def publish(objects: Objects, address: str, port: int) -> None:
    """Write the address, in the place of one that an earlier life of the server may have left."""
    namespace, name = _WHERE
    ports = [{"name": "https", "protocol": "TCP", "port": port}]
    subset = {"addresses": [{"ip": address}], "ports": ports}
    endpoint = {"addresses": [address], "conditions": {"ready": True}}
    family = "IPv6" if ":" in address else "IPv4"
    slice_ = {"addressType": family, "endpoints": [endpoint], "ports": ports}
    skip_mirror = {"endpointslice.kubernetes.io/skip-mirror": "true"}
    _write(objects, "", "endpoints", {"name": name, "labels": skip_mirror}, {"subsets": [subset]})
    labels = {"kubernetes.io/service-name": name}
    _write(objects, "discovery.k8s.io", "endpointslices", {"name": name, "generation": 1, "labels": labels}, slice_)
    objects.update("", "services", namespace, name, lambda service: _target(service, port))


def _write(objects: Objects, group: str, plural: str, metadata: dict[str, Any], content: dict[str, Any]) -> None:
    namespace, name = _WHERE
    if objects.create(group, plural, {"metadata": {**metadata, "namespace": namespace}, **content}) is None:
        objects.update(group, plural, namespace, name, lambda found: found | content)


def _target(service: dict[str, Any], port: int) -> None:
    service["spec"]["ports"][0]["targetPort"] = port
