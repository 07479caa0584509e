"""Where a server is: the parts of a base URL."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

DEFAULT_PORTS = {"http": 80, "https": 443}


class Address(msgspec.Struct, frozen=True):
    """A server's scheme, host, port and path prefix."""

    scheme: str
    host: str
    """As one connects to it: a name in ASCII, or an address (of IPv6 perhaps with its zone)."""
    port: int
    prefix: str = ""

    @classmethod
    def parse(cls, url: str) -> Address:
        parts = urlsplit(url)
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"{url!r} is no http or https URL; write it like https://host:6443")
        if parts.query or parts.fragment or parts.username is not None:
            raise ValueError("a server's URL has no user, query or fragment; leave only scheme, host, port and path")
        return cls(parts.scheme, host_of(parts), port_of(parts, DEFAULT_PORTS), parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port as they stand in a Host field: without the scheme's own port."""
        return self.bracketed if self.port == DEFAULT_PORTS[self.scheme] else f"{self.bracketed}:{self.port}"

    @property
    def host_and_port(self) -> str:
        return f"{self.bracketed}:{self.port}"

    @property
    def bracketed(self) -> str:
        return f"[{self.bare}]" if ":" in self.host else self.host

    @property
    def bare(self) -> str:
        """The host as others know it: a zone has a meaning on this machine only."""
        return self.host.partition("%")[0]

    @property
    def tls(self) -> bool:
        return self.scheme == "https"


def host_of(parts: SplitResult) -> str:
    """The host of a URL, with the zone of an IPv6 address as the system writes it."""
    host = unquote(parts.hostname or "")
    try:
        host = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        host = ""
    if not host.isprintable() or not host or any(letter in " /@?#\\<>^`{|}" for letter in host):
        raise ValueError("the host in this URL is no name and no address; check its letters")
    return host


def port_of(parts: SplitResult, defaults: dict[str, int]) -> int:
    try:
        port = parts.port
    except ValueError:  # its text may quote a password
        raise ValueError(
            "the port in this URL is no number up to 65535; in a password write / as %2F, ? as %3F and # as %23"
        ) from None
    return port if port is not None else defaults[parts.scheme]
