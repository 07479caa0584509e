"""IP addresses and networks. Upstream: apiserver/pkg/cel/library/ip.go and cidr.go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any, ClassVar

import msgspec

from konverge.apiserver.cel.values import EvalError, is_valid
from konverge.apiserver.go.netip import Address, Network, address_error, parse_cidr, parse_ip, prefix_error
from konverge.apiserver.go.strconv import quote


@dataclass(frozen=True, slots=True)
class IP:
    """An address. IPv4-mapped IPv6 addresses are refused: an address would have two forms."""

    cel_name: ClassVar[str] = "net.IP"
    address: Address

    def __str__(self) -> str:
        return str(self.address)


class CIDR(msgspec.Struct, frozen=True):
    """A network, with the address that it was written with."""

    cel_name: ClassVar[str] = "net.CIDR"
    address: Address
    network: Network

    def __str__(self) -> str:
        return f"{self.address}/{self.network.prefixlen}"


def _mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _ip(text: str) -> IP:
    address = parse_ip(text)
    if address is None:
        if "%" in text and parse_ip(text.partition("%")[0]) is not None:
            raise EvalError(f"IP address {quote(text)} with zone value is not allowed")
        problem = f"IP Address {quote(text)} parse error during conversion from string"
        raise EvalError(f"{problem}: {address_error(text)}")
    if _mapped(address):
        raise EvalError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return IP(address)


def _cidr(text: str) -> CIDR:
    parsed = parse_cidr(text)
    head = "network address parse error during conversion from string: "
    if parsed is None:
        raise EvalError(f"{head}{head}{prefix_error(text)}")
    if _mapped(parsed[0]):
        raise EvalError(f"{head}IPv4-mapped IPv6 address {quote(text)} is not allowed")
    return CIDR(*parsed)


def _contains_ip(cidr: CIDR, ip: IP) -> bool:
    return cidr.network.version == ip.address.version and ip.address in cidr.network


def _contains_cidr(cidr: CIDR, other: CIDR) -> bool:
    same = cidr.network.version == other.network.version
    return same and other.network.prefixlen >= cidr.network.prefixlen and other.network.network_address in cidr.network


def _global_unicast(ip: IP) -> bool:
    address = ip.address
    broadcast = str(address) == "255.255.255.255"
    return not (
        address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local or broadcast
    )


def _link_local_multicast(ip: IP) -> bool:
    packed = ip.address.packed
    if ip.address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "string_to_ip": _ip,
    "is_ip": is_valid(_ip),
    "ip_is_canonical": lambda text: str(_ip(text)) == text,
    "ip_family": lambda ip: ip.address.version,
    "ip_is_unspecified": lambda ip: ip.address.is_unspecified,
    "ip_is_loopback": lambda ip: ip.address.is_loopback,
    "ip_is_link_local_multicast": _link_local_multicast,
    "ip_is_link_local_unicast": lambda ip: ip.address.is_link_local,
    "ip_is_global_unicast": _global_unicast,
    "ip_to_string": str,
    "string_to_cidr": _cidr,
    "is_cidr": is_valid(_cidr),
    "cidr_ip": lambda cidr: IP(cidr.address),
    "cidr_masked": lambda cidr: CIDR(cidr.network.network_address, cidr.network),
    "cidr_prefix_length": lambda cidr: cidr.network.prefixlen,
    "cidr_contains_ip_ip": _contains_ip,
    "cidr_contains_ip_string": lambda cidr, text: _contains_ip(cidr, _ip(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_contains_cidr_string": lambda cidr, text: _contains_cidr(cidr, _cidr(text)),
    "cidr_to_string": str,
}
