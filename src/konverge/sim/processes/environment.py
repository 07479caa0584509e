"""The environment of a container, in the kubelet's order: services, envFrom, env, each able to use what came before.

`Self` is what a pod may know of itself: `fieldRef` and `resourceFieldRef`. Upstream: pkg/kubelet/kubelet_pods.go
(makeEnvironmentVariables) and pkg/fieldpath.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from konverge.objects.kinds.core_v1 import (
    ConfigMapKeySelector,
    Container,
    EnvFromSource,
    EnvVarSource,
    Pod,
    ResourceFieldSelector,
    SecretKeySelector,
    Service,
)
from konverge.objects.quantity import Quantity
from konverge.sim.kubelet.references import Kind, no_variable, not_found

_KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class DownwardError(ValueError):
    """A field that is not offered."""


@dataclass(frozen=True, slots=True)
class Self:
    """A pod on its node."""

    pod: Pod
    pod_ip: str
    host_ip: str
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)

    @property
    def hostname(self) -> str:
        return self.pod.spec.hostname or self.pod.metadata.name[:63].rstrip("-.")

    def field(self, path: str) -> str:
        """The value of a fieldRef."""
        meta, spec = self.pod.metadata, self.pod.spec
        keyed = _KEYED.fullmatch(path)
        if keyed is not None:
            group: Mapping[str, str] = getattr(meta, keyed[1])
            return group.get(keyed[2], "")
        values = {
            "metadata.name": meta.name,
            "metadata.namespace": meta.namespace,
            "metadata.uid": meta.uid,
            "metadata.labels": _lines(meta.labels),
            "metadata.annotations": _lines(meta.annotations),
            "spec.nodeName": spec.node_name or "",
            "spec.serviceAccountName": spec.service_account_name or "default",
            "status.podIP": self.pod_ip,
            "status.podIPs": self.pod_ip,
            "status.hostIP": self.host_ip,
            "status.hostIPs": self.host_ip,
        }
        if path not in values:
            raise DownwardError(f"unsupported fieldPath: {path}")
        return values[path]

    def amount(self, selector: ResourceFieldSelector, container: str) -> str:
        """The value of a resourceFieldRef, in units of its divisor, rounded up."""
        which, _, name = selector.resource_.partition(".")
        if which not in ("limits", "requests") or not name:
            raise DownwardError(f"unsupported container resource: {selector.resource_}")
        value = self._asked(selector.container_name or container, which, name)
        divisor = selector.divisor if selector.divisor is not None and selector.divisor != Quantity(0) else Quantity(1)
        return str(ceil(value.fraction / divisor.fraction))

    def _asked(self, container: str, which: str, name: str) -> Quantity:
        declared = (*self.pod.spec.containers, *self.pod.spec.init_containers)
        spec: Container | None = next((entry for entry in declared if entry.name == container), None)
        asked: Mapping[str, Quantity] = {}
        if spec is not None and spec.resources is not None:
            asked = spec.resources.limits if which == "limits" else spec.resources.requests
        if name in asked:
            return asked[name]
        return self.allocatable.get(name, Quantity(0)) if which == "limits" else Quantity(0)


def _lines(group: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(group.items()))


_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")


class ConfigError(Exception):
    """A container that cannot be created; the message is the kubelet's."""


class Objects(Protocol):
    """Reads what containers refer to."""

    async def config_map(self, name: str) -> Mapping[str, str] | None:
        """The texts of a ConfigMap; None when there is none."""

    async def secret(self, name: str) -> Mapping[str, bytes] | None: ...


def expand(text: str, known: Mapping[str, str]) -> str:
    """
    >>> expand("$(A)-$$(A)-$(B)", {"A": "1"})
    '1-$(A)-$(B)'
    """

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] is None else known.get(match[1], match[0])

    return _REFERENCE.sub(value, text)


async def container_env(spec: Container, itself: Self, objects: Objects, services: Mapping[str, str]) -> dict[str, str]:
    """All variables that the container's spec leads to. Raises ConfigError."""
    variables = dict(services)
    for source in spec.env_from:
        variables |= await _from(source, objects)
    for variable in spec.env:
        if variable.value_from is not None:
            value = await _value_from(variable.value_from, spec, itself, objects)
            if value is None:
                continue
        else:
            value = expand(variable.value or "", variables)
        variables[variable.name] = value
    return variables


async def _from(source: EnvFromSource, objects: Objects) -> dict[str, str]:
    prefix = source.prefix or ""
    texts: Mapping[str, str] | None
    if source.config_map_ref is not None:
        name, optional = source.config_map_ref.name or "", source.config_map_ref.optional
        kind: Kind = "ConfigMap"
        texts = await objects.config_map(name)
    elif source.secret_ref is not None:
        name, optional = source.secret_ref.name or "", source.secret_ref.optional
        kind = "Secret"
        texts = _decoded(await objects.secret(name))
    else:
        return {}
    if texts is None:
        if optional:
            return {}
        raise ConfigError(not_found(kind, name))
    return {prefix + key: value for key, value in texts.items()}


async def _value_from(source: EnvVarSource, spec: Container, itself: Self, objects: Objects) -> str | None:
    if source.field_ref is not None:
        return itself.field(source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return itself.amount(source.resource_field_ref, spec.name)
    if source.config_map_key_ref is not None:
        ref = source.config_map_key_ref
        return _key(await objects.config_map(ref.name or ""), "ConfigMap", ref, itself.pod.metadata.namespace)
    if source.secret_key_ref is not None:
        secret = source.secret_key_ref
        texts = _decoded(await objects.secret(secret.name or ""))
        return _key(texts, "Secret", secret, itself.pod.metadata.namespace)
    raise ConfigError("fileKeyRef is not offered by process pods; write the value into env")


def _key(
    texts: Mapping[str, str] | None, kind: Kind, ref: ConfigMapKeySelector | SecretKeySelector, namespace: str
) -> str | None:
    if texts is not None and ref.key in texts:
        return texts[ref.key]
    if ref.optional:
        return None
    name = ref.name or ""
    raise ConfigError(not_found(kind, name) if texts is None else no_variable(kind, namespace, name, ref.key))


def _decoded(data: Mapping[str, bytes] | None) -> dict[str, str] | None:
    return None if data is None else {key: value.decode("utf-8", "replace") for key, value in data.items()}


# ------------------------------------------------------------------ services


def service_env(services: Iterable[Service]) -> dict[str, str]:
    """The variables that describe services, as `docker --link` once made them."""
    variables: dict[str, str] = {}
    for service in sorted(services, key=lambda service: service.metadata.name):
        address = service.spec.cluster_ip
        if address and address != "None" and service.spec.ports:
            variables |= _links(service, address)
    return variables


def _links(service: Service, address: str) -> dict[str, str]:
    name = service.metadata.name.upper().replace("-", "_")
    first = service.spec.ports[0]
    links = {f"{name}_SERVICE_HOST": address, f"{name}_SERVICE_PORT": str(first.port)}
    for port in service.spec.ports:
        if port.name:
            links[f"{name}_SERVICE_PORT_{port.name.upper().replace('-', '_')}"] = str(port.port)
    links[f"{name}_PORT"] = f"{(first.protocol or 'TCP').lower()}://{address}:{first.port}"
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        prefix = f"{name}_PORT_{port.port}_{protocol}"
        links[prefix] = f"{protocol.lower()}://{address}:{port.port}"
        links[f"{prefix}_PROTO"] = protocol.lower()
        links[f"{prefix}_PORT"] = str(port.port)
        links[f"{prefix}_ADDR"] = address
    return links
