"""The settings of a simulated server: image and environment, as the official image reads them. Pure.

Values that the environment takes from Secrets and ConfigMaps come from the API server. Settings of mounted properties
files are translated into variables, and override them. What is missing stays unset: a simulated server then behaves
like a real one without it.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

from konverge.objects.kinds.core_v1 import Container, EnvVarSource, Pod
from konverge.operators.nacos.server import PORT, RAFT_OFFSET
from konverge.operators.nacos.versions import version_of_image

Read = Callable[[str, str, str], dict[str, Any] | None]
"""Reads an object by plural, namespace and name."""
IMAGES = ("*nacos-server", "*nacos-server:*", "*nacos-server@*")
NEWEST = "3.0.3"
"""For a tag without a version: the newest line with recorded answers."""
_REFERENCE = re.compile(r"\$\(([^()]+)\)")
_PLACEHOLDER = re.compile(r"\$\{([^${}:]+)(?::([^${}]*))?\}")
_TLS = "nacos.remote.server.rpc.tls"
_FIRST_WITH_TLS = (2, 2, 1)
_PROPERTIES = {
    f"{_TLS}.enableTls": "RPC_TLS",
    f"{_TLS}.certChainFile": "RPC_TLS_CERTIFICATE",
    f"{_TLS}.certPrivateKey": "RPC_TLS_KEY",
    f"{_TLS}.compatibility": "RPC_TLS_COMPATIBILITY",
    "db.url.0": "DB_URL_0",
    "spring.sql.init.platform": "SPRING_DATASOURCE_PLATFORM",
    "spring.datasource.platform": "SPRING_DATASOURCE_PLATFORM",
    "nacos.core.auth.enabled": "NACOS_AUTH_ENABLE",
    "nacos.core.auth.server.identity.key": "NACOS_AUTH_IDENTITY_KEY",
    "nacos.core.auth.server.identity.value": "NACOS_AUTH_IDENTITY_VALUE",
}
_NEEDED_BY_3 = ("NACOS_AUTH_TOKEN", "NACOS_AUTH_IDENTITY_KEY", "NACOS_AUTH_IDENTITY_VALUE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One server. Addresses are `host:port`."""

    namespace: str
    pod: str
    uid: str
    ip: str
    version: str
    address: str
    members: tuple[str, ...]
    """The static list, its own address included."""
    port: int = PORT
    console_port: int = 8080
    standalone: bool = False
    platform: str = ""
    """mysql or postgresql; empty: embedded storage."""
    database: tuple[str, int, str] = ("", 0, "")
    """Host, port and name of an external database."""
    database_tls: Literal["never", "prefer", "always"] = "never"
    """Whether it connects to that with TLS."""
    client_tls: Literal["none", "optional", "required"] = "none"
    """Of the gRPC port for clients."""
    auth: bool = False
    identity: tuple[str, str] = field(default=("", ""), repr=False)
    refusal: str = ""
    """Why the image's entrypoint exits, if it does."""

    @property
    def line(self) -> tuple[int, int, int]:
        major, minor, patch = (int(part) for part in self.version.split("."))
        return major, minor, patch

    @property
    def raft_address(self) -> str:
        return raft(self.address)

    @property
    def cluster(self) -> str:
        """Servers of one cluster share their data: the pods of one StatefulSet."""
        return f"{self.namespace}/{self.pod.rpartition('-')[0] or self.pod}"

    @property
    def embedded(self) -> bool:
        return not self.platform

    @property
    def groups(self) -> tuple[str, ...]:
        """The raft groups, as recorded."""
        if self.standalone:
            third = "naming_service_metadata" if self.line >= (3,) else "naming_persistent_service"
            return ("naming_instance_metadata", "naming_persistent_service_v2", third)
        groups = [
            "naming_instance_metadata",
            "naming_persistent_service",
            "naming_persistent_service_v2",
            "naming_service_metadata",
        ]
        if self.embedded:
            groups.insert(0, "nacos_config")
        if self.line >= (3,):
            groups.insert(0, "lock_acquire_service_v2")
        return tuple(groups)


def raft(address: str) -> str:
    """The raft address of a member address.

    >>> raft("nacos-0.nacos-headless:8848")
    'nacos-0.nacos-headless:7848'
    """
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) + RAFT_OFFSET}"


def is_nacos(image: str) -> bool:
    return any(fnmatchcase(image, pattern) for pattern in IMAGES)


def version_of(image: str) -> str:
    """
    >>> version_of("nacos/nacos-server:v2.4.3-slim"), version_of("registry:5000/nacos/nacos-server")
    ('2.4.3', '3.0.3')
    """
    version = version_of_image(image)
    return str(version) if version.known else NEWEST


def read_settings(namespace: str, pod: str, uid: str, ip: str, image: str, env: Mapping[str, str]) -> Settings:
    """The settings of a container with this environment."""
    version = version_of(image)
    port = _number(env.get("NACOS_APPLICATION_PORT"), PORT)
    standalone = env.get("MODE", "cluster") == "standalone"
    listed = [] if standalone else _members(env, port)
    address = _own_address(listed, pod, ip, port, by_name=env.get("PREFER_HOST_MODE") == "hostname")
    missing = [name for name in _NEEDED_BY_3 if not env.get(name)] if version.startswith("3.") else []
    platform = env.get("SPRING_DATASOURCE_PLATFORM", "").lower()
    return Settings(
        namespace=namespace,
        pod=pod,
        uid=uid,
        ip=ip,
        version=version,
        address=address,
        members=tuple(dict.fromkeys([*listed, address])),
        port=port,
        console_port=_number(env.get("NACOS_CONSOLE_PORT"), 8080),
        standalone=standalone,
        platform="" if platform in ("derby", "embedded") else platform,
        database=_database(env),
        database_tls=_database_tls(env),
        client_tls=_client_tls(env, version),
        auth=env.get("NACOS_AUTH_ENABLE", "").lower() == "true",
        identity=(env.get("NACOS_AUTH_IDENTITY_KEY", ""), env.get("NACOS_AUTH_IDENTITY_VALUE", "")),
        refusal=f"env {missing[0]} must be set" if missing else _wrong_certificate(env, version),
    )


def _members(env: Mapping[str, str], port: int) -> list[str]:
    """NACOS_SERVERS (by spaces) or MEMBER_LIST (by commas), with ports."""
    return listed_in(env.get("NACOS_SERVERS", "") or env.get("MEMBER_LIST", ""), port)


def listed_in(text: str, port: int) -> list[str]:
    """The addresses in a list of members, separated by spaces, lines or commas."""
    items = re.split(r"[\s,]+", text)
    return [_with_port(item.partition("?")[0].lower(), port) for item in items if item]


def _with_port(item: str, port: int) -> str:
    host, colon, digits = item.rpartition(":")
    return item if colon and digits.isdecimal() and host else f"{item}:{port}"


def _own_address(listed: list[str], pod: str, ip: str, port: int, *, by_name: bool) -> str:
    """Its own entry: found by the pod's name or address. A server that is not listed adds itself: where names are
    preferred, by a name in the domain of its peers.
    """
    for address in listed:
        host = address.rpartition(":")[0]
        if host == ip or host.partition(".")[0] == pod:
            return address
    domain = listed[0].rpartition(":")[0].partition(".")[2] if listed else ""
    return f"{pod}.{domain}:{port}" if by_name and domain else f"{ip}:{port}"


def _database(env: Mapping[str, str]) -> tuple[str, int, str]:
    """From a JDBC URL, or from the variables for MySQL."""
    url = re.search(r"//\[?([^/?]+?)\]?(?::(\d+))?/([^?]*)", env.get("DB_URL_0", ""))
    if url is not None:
        return url[1], int(url[2] or 0), url[3]
    port = _number(env.get("MYSQL_SERVICE_PORT"), 3306)
    return env.get("MYSQL_SERVICE_HOST", ""), port, env.get("MYSQL_SERVICE_DB_NAME", "")


def _client_tls(env: Mapping[str, str], version: str) -> Literal["none", "optional", "required"]:
    if env.get("RPC_TLS") != "true" or version_of_image(f":{version}") < _FIRST_WITH_TLS:
        return "none"
    return "required" if env.get("RPC_TLS_COMPATIBILITY") == "false" else "optional"


def _wrong_certificate(env: Mapping[str, str], version: str) -> str:
    """Why a server does not start with its certificate: it reads PEM, and keys in PKCS #8 alone."""
    if _client_tls(env, version) == "none":
        return ""
    if "-----BEGIN CERTIFICATE-----" not in env.get("RPC_TLS_CERTIFICATE", ""):
        return "certChainFile load fail"
    return "" if "-----BEGIN PRIVATE KEY-----" in env.get("RPC_TLS_KEY", "") else "certPrivateKey load fail"


def _database_tls(env: Mapping[str, str]) -> Literal["never", "prefer", "always"]:
    """By the parameters of the JDBC URL. Both drivers prefer TLS; the images' own parameters for MySQL forbid it."""
    given = env.get("DB_URL_0") or f"?{env.get('MYSQL_SERVICE_DB_PARAM', 'useSSL=false')}"
    mode = re.search(r"[?&]sslmode=([\w-]+)", given.lower())
    if mode is None:
        return "never" if "usessl=false" in given.lower() else "prefer"
    return "never" if mode[1].startswith("disable") else "prefer" if mode[1].startswith("prefer") else "always"


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() else default


# ------------------------------------------------------------------ the list of members as a file


def followed_list(pod: Pod, container: Container) -> tuple[str, str] | None:
    """The ConfigMap and the key of a file that the container's `postStart` hook names: what the loop that it begins
    writes to cluster.conf. The kubelet never updates what is mounted by `subPath`.
    """
    hook = container.lifecycle.post_start if container.lifecycle is not None else None
    command = " ".join(hook.exec.command) if hook is not None and hook.exec is not None else ""
    sources = {volume.name: volume.config_map for volume in pod.spec.volumes if volume.config_map is not None}
    for mount in container.volume_mounts:
        source = sources.get(mount.name)
        if source is None or mount.sub_path:
            continue
        for item in source.items:
            if f"{mount.mount_path}/{item.path}" in command:
                return source.name or "", item.key
    return None


# ------------------------------------------------------------------ the environment of a container


def environment(pod: Pod, container: Container, address: str, read: Read) -> dict[str, str]:
    namespace = pod.metadata.namespace
    env: dict[str, str] = {}
    for source in container.env_from:
        if source.config_map_ref is not None:
            env |= _prefixed(source.prefix, _texts(read, "configmaps", namespace, source.config_map_ref.name or ""))
        if source.secret_ref is not None:
            env |= _prefixed(source.prefix, _texts(read, "secrets", namespace, source.secret_ref.name or ""))
    for variable in container.env:
        if variable.value_from is None:
            env[variable.name] = _REFERENCE.sub(lambda name: env.get(name[1], name[0]), variable.value or "")
        elif (value := _value(variable.value_from, pod, address, read)) is not None:
            env[variable.name] = value
    env |= _properties(pod, container, env, read)
    files = {name: env[name] for name in ("RPC_TLS_CERTIFICATE", "RPC_TLS_KEY") if name in env}
    return env | {name: _mounted_secret(pod, container, url, read) for name, url in files.items()}


def _mounted_secret(pod: Pod, container: Container, url: str, read: Read) -> str:
    """The content of a file; empty for one that is not there. A path that is no URL is looked for in the jars."""
    folder, _, key = url.removeprefix("file:").rpartition("/")
    name = next((mount.name for mount in container.volume_mounts if mount.mount_path == folder), "")
    volume = next((volume.secret for volume in pod.spec.volumes if volume.name == name), None)
    if not url.startswith("file:") or volume is None:
        return ""
    return _texts(read, "secrets", pod.metadata.namespace, volume.secret_name or "").get(key, "")


def _properties(pod: Pod, container: Container, env: dict[str, str], read: Read) -> dict[str, str]:
    mounted = {mount.name for mount in container.volume_mounts}
    variables: dict[str, str] = {}
    for volume in pod.spec.volumes:
        if volume.config_map is None or volume.name not in mounted:
            continue
        for name, text in _texts(read, "configmaps", pod.metadata.namespace, volume.config_map.name or "").items():
            if name.endswith(".properties"):
                variables |= _variables(text, env)
    return variables


def _variables(text: str, env: dict[str, str]) -> dict[str, str]:
    """For a repeated key the last value counts."""
    variables: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        name = _PROPERTIES.get(key.strip())
        if equals and name is not None:
            variables[name] = _PLACEHOLDER.sub(lambda match: env.get(match[1], match[2] or ""), value.strip())
    return variables


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


def secret_texts(read: Read, namespace: str, name: str) -> dict[str, str]:
    """What a Secret holds, by its keys; nothing where there is none."""
    return _texts(read, "secrets", namespace, name)


def _decoded(value: str) -> str:
    try:
        return b64decode(value).decode("utf-8", "replace")
    except NotBase64:
        return ""
