"""Where a server is: the parts of a base URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """A server's scheme, host, port and path prefix."""

    scheme: str
    host: str
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Address:
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL; write it like https://host:6443")
        if parts.query or parts.fragment or parts.username is not None:
            raise ValueError("a server's URL has no user, query or fragment; leave only scheme, host, port and path")
        port = parts.port if parts.port is not None else DEFAULT_PORTS[parts.scheme]
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port as they stand in a Host field: without the scheme's own port."""
        return self.bracketed if self.port == DEFAULT_PORTS[self.scheme] else f"{self.bracketed}:{self.port}"

    @property
    def host_and_port(self) -> str:
        return f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def tls(self) -> bool:
        return self.scheme == "https"
