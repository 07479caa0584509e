"""What a simulated server is told by its container: image and environment, as the official image reads them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

IMAGES = ("*nacos-server", "*nacos-server:*", "*nacos-server@*")
NEWEST = "3.0.3"
"""For a tag that names no version: the newest line that answers were recorded from."""
PORT = 8848
_VERSION = re.compile(r":v?(\d+)\.(\d+)(?:\.(\d+))?")
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
    """Host, port and name of an external one."""
    auth: bool = False
    identity: tuple[str, str] = field(default=("", ""), repr=False)
    refusal: str = ""
    """Why the image's entrypoint gives up, if it does."""

    @property
    def line(self) -> tuple[int, int, int]:
        major, minor, patch = (int(part) for part in self.version.split("."))
        return major, minor, patch

    @property
    def raft_address(self) -> str:
        return raft(self.address)

    @property
    def cluster(self) -> str:
        """Whose data a server shares: the pods of one StatefulSet."""
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
        found = [
            "naming_instance_metadata",
            "naming_persistent_service",
            "naming_persistent_service_v2",
            "naming_service_metadata",
        ]
        if self.embedded:
            found.insert(0, "nacos_config")
        if self.line >= (3,):
            found.insert(0, "lock_acquire_service_v2")
        return tuple(found)


def raft(address: str) -> str:
    """The raft address of a member address.

    >>> raft("nacos-0.nacos-headless:8848")
    'nacos-0.nacos-headless:7848'
    """
    host, _, port = address.rpartition(":")
    return f"{host}:{int(port) - 1000}"


def is_nacos(image: str) -> bool:
    return any(fnmatchcase(image, pattern) for pattern in IMAGES)


def version_of(image: str) -> str:
    """
    >>> version_of("nacos/nacos-server:v2.4.3-slim"), version_of("registry:5000/nacos/nacos-server")
    ('2.4.3', '3.0.3')
    """
    found = _VERSION.search(image.rpartition("/")[2])
    return f"{found[1]}.{found[2]}.{found[3] or 0}" if found else NEWEST


def read(namespace: str, pod: str, uid: str, ip: str, image: str, env: Mapping[str, str]) -> Settings:
    """The settings of a container with this environment."""
    version = version_of(image)
    port = _number(env.get("NACOS_APPLICATION_PORT"), PORT)
    standalone = env.get("MODE", "cluster") == "standalone"
    listed = [] if standalone else _members(env, port)
    address = _own(listed, pod, ip, port, by_name=env.get("PREFER_HOST_MODE") == "hostname")
    lacking = [name for name in _NEEDED_BY_3 if not env.get(name)] if version.startswith("3.") else []
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
        auth=env.get("NACOS_AUTH_ENABLE", "").lower() == "true",
        identity=(env.get("NACOS_AUTH_IDENTITY_KEY", ""), env.get("NACOS_AUTH_IDENTITY_VALUE", "")),
        refusal=f"env {lacking[0]} must be set" if lacking else "",
    )


def _members(env: Mapping[str, str], port: int) -> list[str]:
    """NACOS_SERVERS (by spaces) or MEMBER_LIST (by commas), with ports."""
    items = re.split(r"[\s,]+", env.get("NACOS_SERVERS", "") or env.get("MEMBER_LIST", ""))
    return [_with_port(item.partition("?")[0].lower(), port) for item in items if item]


def _with_port(item: str, port: int) -> str:
    host, colon, digits = item.rpartition(":")
    return item if colon and digits.isdecimal() and host else f"{item}:{port}"


def _own(listed: list[str], pod: str, ip: str, port: int, *, by_name: bool) -> str:
    """Its own entry: by the pod's name, by its address, or none yet, and then a server adds itself.

    By the name that it has beside its peers, where names are preferred.
    """
    for address in listed:
        host = address.rpartition(":")[0]
        if host == ip or host.partition(".")[0] == pod:
            return address
    domain = listed[0].rpartition(":")[0].partition(".")[2] if listed else ""
    return f"{pod}.{domain}:{port}" if by_name and domain else f"{ip}:{port}"


def _database(env: Mapping[str, str]) -> tuple[str, int, str]:
    """Of a JDBC URL, or of the variables for MySQL."""
    url = re.search(r"//\[?([^/?]+?)\]?(?::(\d+))?/([^?]*)", env.get("DB_URL_0", ""))
    if url is not None:
        return url[1], int(url[2] or 0), url[3]
    port = _number(env.get("MYSQL_SERVICE_PORT"), 3306)
    return env.get("MYSQL_SERVICE_HOST", ""), port, env.get("MYSQL_SERVICE_DB_NAME", "")


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() else default
