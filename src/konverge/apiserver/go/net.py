"""URLs, IP addresses and networks as Go's net and net/url read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_PORT = re.compile(r":[0-9]*")
_HOST_OK = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:\[\]<>\"\x80-\U0010ffff]*")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of an absolute URI or absolute path."""

    text: str
    scheme: str
    host: str
    path: str
    query: str

    @property
    def hostname(self) -> str:
        if self.host.startswith("["):
            return self.host[1 : self.host.index("]")]
        return self.host.partition(":")[0]

    @property
    def port(self) -> str:
        tail = self.host.rpartition("]")[2]
        return tail.partition(":")[2] if ":" in tail else ""

    def parameters(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for part in self.query.split("&"):
            if not part or ";" in part:
                continue
            key, _, value = part.partition("=")
            if not (_ESCAPE.search(key) or _ESCAPE.search(value)):
                found.setdefault(_plus(key), []).append(_plus(value))
        return found


def _plus(text: str) -> str:
    return unquote(text.replace("+", " "))


class UrlError(ValueError):
    """The reason, in Go's words."""


def parse_url(text: str) -> Url:
    """Go's url.ParseRequestURI."""
    try:
        return _parse(text)
    except UrlError as error:
        raise UrlError(f"parse {_quoted(text)}: {error}") from None


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _parse(text: str) -> Url:
    if any(ord(char) < 0x20 or ord(char) == 0x7F for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text:
        raise UrlError("empty url")
    scheme, rest = _split_scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(text, scheme.lower(), "", "", query)
        raise UrlError("invalid URI for request")
    host = ""
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, tail = rest[2:].partition("/")
        host, rest = _authority(authority), slash + tail
    bad = _ESCAPE.search(rest)
    if bad is not None:
        raise UrlError(f"invalid URL escape {_quoted(rest[bad.start() : bad.start() + 3])}")
    return Url(text, scheme.lower(), host, rest, query)


def _split_scheme(text: str) -> tuple[str, str]:
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    if match is not None and text[match.end() : match.end() + 1] == ":":
        return match[0], text[match.end() + 1 :]
    head = text.partition("/")[0]
    if ":" in head and not text.startswith("/") and match is not None:
        raise UrlError("first path segment in URL cannot contain colon")
    return "", text


def _authority(text: str) -> str:
    user, at, host = text.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        raise UrlError("net/url: invalid userinfo")
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        port = host[end + 1 :]
    else:
        port = host[host.rfind(":") :] if ":" in host else ""
    if port and not _PORT.fullmatch(port):
        raise UrlError(f"invalid port {_quoted(port)} after host")
    bad = _ESCAPE.search(host)
    if bad is not None:
        raise UrlError(f"invalid URL escape {_quoted(host[bad.start() : bad.start() + 3])}")
    if "%" not in host and not _HOST_OK.fullmatch(host):
        index = next(i for i, char in enumerate(host) if not _HOST_OK.fullmatch(char))
        raise UrlError(f"invalid character {_quoted(host[index])} in host name")
    return unquote(host)


def parse_ip(text: str) -> Address | None:
    """An address without leading zeros and without a zone."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def parse_cidr(text: str, *, strict: bool = False) -> tuple[Address, Network] | None:
    """An address with a prefix length; `strict` refuses host bits."""
    head, slash, bits = text.partition("/")
    address = parse_ip(head)
    if not slash or address is None or not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits, re.ASCII):
        return None
    if int(bits) > address.max_prefixlen:
        return None
    network = ip_network(f"{head}/{bits}", strict=False)
    return None if strict and network.network_address != address else (address, network)
