"""Proxies: what one is, and which one a URL needs.

`proxy_from_environment` is the only function here that looks at the environment, and only when it is called. Its
rules for NO_PROXY are those of Go's programs, because users set the variable once for kubectl and for us: names match
themselves and their subdomains, a leading dot only the subdomains, addresses and networks (CIDR) match literally
written hosts, and this machine is never reached through a proxy.
"""

from __future__ import annotations

import ipaddress
import os
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from konverge.wire.address import DEFAULT_PORTS, Address, host_of, port_of

_SOCKS = ("socks5", "socks5h")
"""Both the same, as for Go: the proxy looks the name up."""
_PORTS = DEFAULT_PORTS | dict.fromkeys(_SOCKS, 1080)


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, reached in the clear or over TLS, or one that speaks SOCKS 5."""

    scheme: str
    host: str
    port: int
    credentials: tuple[str, str] | None = field(default=None, repr=False)
    """User and password."""

    @classmethod
    def parse(cls, url: str) -> Proxy:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(
                f"a proxy is an http, https or socks5 URL; {parts.scheme or 'this one'!r} is not supported"
            )
        credentials = None
        if parts.username is not None:
            credentials = (unquote(parts.username), unquote(parts.password or ""))
        return cls(parts.scheme, host_of(parts), port_of(parts, _PORTS), credentials)

    @property
    def name(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def socks(self) -> bool:
        return self.scheme in _SOCKS

    @property
    def authorization_line(self) -> bytes:
        if self.credentials is None:
            return b""
        return b"proxy-authorization: Basic %b\r\n" % b64encode(":".join(self.credentials).encode())


def proxy_from_environment(url: str, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY (either case) name for a URL, or None."""
    environ = os.environ if environ is None else environ
    address = Address.parse(url)
    chosen = _variable(environ, f"{address.scheme}_proxy")
    if not chosen or bypassed(address.bare, address.port, _variable(environ, "no_proxy")):
        return None
    return Proxy.parse(chosen)


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name.upper()) or environ.get(name) or ""


def bypassed(host: str, port: int, no_proxy: str) -> bool:
    """Whether a host is reached without the proxy."""
    host = host.lower().rstrip(".")
    address = _ip(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_matches(rule.strip().lower(), host, address, port) for rule in no_proxy.split(",") if rule.strip())


_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address


def _ip(text: str) -> _Ip | None:
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _matches(rule: str, host: str, address: _Ip | None, port: int) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        return address is not None and _in_network(address, rule)
    rule, rule_port = _split_port(rule)
    if rule_port and rule_port != str(port):
        return False
    literal = _ip(rule)
    if literal is not None:
        return literal == address
    if rule.startswith("*."):
        rule = rule[1:]
    if rule.startswith("."):
        return host.endswith(rule)
    return host == rule or host.endswith(f".{rule}")


def _in_network(address: _Ip, rule: str) -> bool:
    try:
        return address in ipaddress.ip_network(rule, strict=False)
    except ValueError:
        return False


def _split_port(rule: str) -> tuple[str, str]:
    name, colon, port = rule.rpartition(":")
    if colon and port.isdigit() and (":" not in name or name.endswith("]")):
        return name, port
    return rule, ""
