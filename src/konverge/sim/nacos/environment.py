"""The environment of a simulated container: values, and what they are taken from, read straight from the API server.

What properties files say (ConfigMaps that are mounted) is put into the words of the environment, and goes before it.
What is missing stays unset: a simulated server then does what a real one does without it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import Any

from konverge.objects.kinds.core_v1 import Container, EnvVarSource, Pod

Read = Callable[[str, str, str], dict[str, Any] | None]
"""An object by plural, namespace and name."""
_REFERENCE = re.compile(r"\$\(([^()]+)\)")
_PLACEHOLDER = re.compile(r"\$\{([^${}:]+)(?::([^${}]*))?\}")
_PROPERTIES = {
    "db.url.0": "DB_URL_0",
    "spring.sql.init.platform": "SPRING_DATASOURCE_PLATFORM",
    "spring.datasource.platform": "SPRING_DATASOURCE_PLATFORM",
    "nacos.core.auth.enabled": "NACOS_AUTH_ENABLE",
    "nacos.core.auth.server.identity.key": "NACOS_AUTH_IDENTITY_KEY",
    "nacos.core.auth.server.identity.value": "NACOS_AUTH_IDENTITY_VALUE",
}


def environment(pod: Pod, container: Container, address: str, read: Read) -> dict[str, str]:
    namespace = pod.metadata.namespace
    found: dict[str, str] = {}
    for source in container.env_from:
        if source.config_map_ref is not None:
            found |= _prefixed(source.prefix, _texts(read, "configmaps", namespace, source.config_map_ref.name or ""))
        if source.secret_ref is not None:
            found |= _prefixed(source.prefix, _texts(read, "secrets", namespace, source.secret_ref.name or ""))
    for one in container.env:
        if one.value_from is None:
            found[one.name] = _REFERENCE.sub(lambda name: found.get(name[1], name[0]), one.value or "")
        elif (value := _value(one.value_from, pod, address, read)) is not None:
            found[one.name] = value
    return found | _properties(pod, container, found, read)


def _properties(pod: Pod, container: Container, env: dict[str, str], read: Read) -> dict[str, str]:
    mounted = {mount.name for mount in container.volume_mounts}
    found: dict[str, str] = {}
    for volume in pod.spec.volumes:
        if volume.config_map is None or volume.name not in mounted:
            continue
        for name, text in _texts(read, "configmaps", pod.metadata.namespace, volume.config_map.name or "").items():
            if name.endswith(".properties"):
                found |= _lines(text, env)
    return found


def _lines(text: str, env: dict[str, str]) -> dict[str, str]:
    """Of a key that stands twice the last one counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        name = _PROPERTIES.get(key.strip())
        if equals and name is not None:
            found[name] = _PLACEHOLDER.sub(lambda one: env.get(one[1], one[2] or ""), value.strip())
    return found


def _value(source: EnvVarSource, pod: Pod, address: str, read: Read) -> str | None:
    meta = pod.metadata
    if (ref := source.secret_key_ref) is not None:
        return _texts(read, "secrets", meta.namespace, ref.name or "").get(ref.key)
    if (named := source.config_map_key_ref) is not None:
        return _texts(read, "configmaps", meta.namespace, named.name or "").get(named.key)
    if (field := source.field_ref) is not None:
        known = {"metadata.name": meta.name, "metadata.namespace": meta.namespace, "status.podIP": address}
        return known.get(field.field_path)
    return None


def _prefixed(prefix: str | None, texts: dict[str, str]) -> dict[str, str]:
    return {f"{prefix or ''}{key}": value for key, value in texts.items()}


def _texts(read: Read, plural: str, namespace: str, name: str) -> dict[str, str]:
    data = (read(plural, namespace, name) or {}).get("data") or {}
    if plural != "secrets":
        return dict(data)
    return {key: _decoded(value) for key, value in data.items()}


def _decoded(value: str) -> str:
    try:
        return b64decode(value).decode("utf-8", "replace")
    except NotBase64:
        return ""
