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

from konverge.wire.address import DEFAULT_PORTS, Address


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy, reached in the clear or over TLS."""

    scheme: str
    host: str
    port: int
    authorization: str = field(default="", repr=False)
    """The value of the Proxy-Authorization field."""

    @classmethod
    def parse(cls, url: str) -> Proxy:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"a proxy is an http or https URL; {parts.scheme or 'this one'!r} is not supported")
        authorization = ""
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            authorization = f"Basic {b64encode(user.encode()).decode('ascii')}"
        port = parts.port if parts.port is not None else DEFAULT_PORTS[parts.scheme]
        return cls(parts.scheme, parts.hostname, port, authorization)

    @property
    def authorization_line(self) -> bytes:
        if not self.authorization:
            return b""
        return f"proxy-authorization: {self.authorization}\r\n".encode("ascii")


def proxy_from_environment(url: str, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """The proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY (either case) name for a URL, or None."""
    environ = os.environ if environ is None else environ
    address = Address.parse(url)
    chosen = _variable(environ, f"{address.scheme}_proxy")
    if not chosen or bypassed(address.host, address.port, _variable(environ, "no_proxy")):
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
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


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
