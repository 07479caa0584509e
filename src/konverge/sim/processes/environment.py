"""The environment of a container, in the kubelet's order: services, envFrom, env, each able to use what came before."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Protocol

from konverge.objects.kinds.core_v1 import Container, EnvFromSource, EnvVarSource, Service
from konverge.sim.processes.downward import Self

_REFERENCE = re.compile(r"\$(?:\$|\(([^()]*)\))")
_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


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
        name = match[1]
        if name is None:
            return "$"
        return known.get(name, match[0])

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
        texts, what = await objects.config_map(name), "configmap"
    elif source.secret_ref is not None:
        name, optional = source.secret_ref.name or "", source.secret_ref.optional
        data = await objects.secret(name)
        texts = None if data is None else {key: value.decode("utf-8", "replace") for key, value in data.items()}
        what = "secret"
    else:
        return {}
    if texts is None:
        if optional:
            return {}
        raise ConfigError(f'{what} "{name}" not found')
    return {prefix + key: value for key, value in texts.items() if _NAME.fullmatch(prefix + key)}


async def _value_from(source: EnvVarSource, spec: Container, itself: Self, objects: Objects) -> str | None:
    if source.field_ref is not None:
        return itself.field(source.field_ref.field_path)
    if source.resource_field_ref is not None:
        return itself.amount(source.resource_field_ref, spec.name)
    if source.config_map_key_ref is not None:
        ref = source.config_map_key_ref
        return _key(await objects.config_map(ref.name or ""), "configmap", ref.name or "", ref.key, ref.optional)
    if source.secret_key_ref is not None:
        secret = source.secret_key_ref
        data = await objects.secret(secret.name or "")
        texts = None if data is None else {key: value.decode("utf-8", "replace") for key, value in data.items()}
        return _key(texts, "secret", secret.name or "", secret.key, secret.optional)
    raise ConfigError("fileKeyRef is not offered by process pods; write the value into env")


def _key(texts: Mapping[str, str] | None, kind: str, name: str, key: str, optional: bool | None) -> str | None:
    if texts is not None and key in texts:
        return texts[key]
    if optional:
        return None
    if texts is None:
        raise ConfigError(f'{kind} "{name}" not found')
    word = "ConfigMap" if kind == "configmap" else "Secret"
    raise ConfigError(f"couldn't find key {key} in {word} {name}")


def decoded(data: Mapping[str, str]) -> dict[str, bytes]:
    return {key: b64decode(value) for key, value in data.items()}


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
