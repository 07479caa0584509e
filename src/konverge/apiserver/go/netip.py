"""Go's net/netip: IP addresses and networks, and what is wrong with a text that is neither."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from konverge.apiserver.go.strconv import quote

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_GROUP = re.compile(r"[0-9a-fA-F]*")


def parse_ip(text: str) -> Address | None:
    """An address without leading zeros and without a zone."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def parse_cidr(text: str) -> tuple[Address, Network] | None:
    """An address with a prefix length, and its network."""
    head, slash, bits = text.partition("/")
    address = parse_ip(head)
    if not slash or address is None or not re.fullmatch(r"0|[1-9][0-9]{0,2}", bits, re.ASCII):
        return None
    if int(bits) > address.max_prefixlen:
        return None
    return address, ip_network(f"{head}/{bits}", strict=False)


def parse_ip_sloppy(text: str) -> Address | None:  # upstream: ParseIPSloppy (k8s.io/utils/net)
    """As older versions of Go read it: leading zeros are ignored. An IPv4-mapped IPv6 address is the IPv4 address."""
    address = parse_ip(text if ":" in text else ".".join(map(_without_zeros, text.split("."))))
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


def _without_zeros(part: str) -> str:
    return part.lstrip("0") or "0" if part.isascii() and part.isdigit() else part


def parse_cidr_sloppy(text: str) -> tuple[Address, Network] | None:
    """The address as written and its network. Upstream: ParseCIDRSloppy (k8s.io/utils/net)."""
    host, slash, bits = text.partition("/")
    address = parse_ip_sloppy(host)
    if not slash or address is None or not (bits.isascii() and bits.isdigit()):
        return None
    size = int(bits[-4:]) if not bits[:-4].strip("0") else 1000
    if ":" in host and address.version == 4 and 96 <= size <= 128:  # IPv4-mapped: the size is that of an IPv6 network
        size -= 96
    return None if size > address.max_prefixlen else (address, ip_network(f"{address}/{size}", strict=False))


def address_error(text: str) -> str:
    """Why a text is not an address, or "". Upstream: ParseAddr."""
    reason = _reason(text)
    return f"ParseAddr({quote(text)}): {reason}" if reason else ""


def prefix_error(text: str) -> str:
    """Why a text is not a network. Upstream: ParsePrefix."""
    return f"netip.ParsePrefix({quote(text)}): {_prefix_reason(text)}"


def _prefix_reason(text: str) -> str:
    head, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    error = address_error(head)
    if error:
        return error
    if "%" in head:
        return "IPv6 zones cannot be present in a prefix"
    if not re.fullmatch(r"[0-9]|[1-9][0-9]*", bits, re.ASCII):
        return f"bad bits after slash: {quote(bits)}"
    return "prefix length out of range"


def _reason(text: str) -> str:
    for char in text:
        if char == ".":
            return _v4(text)
        if char == ":":
            return _v6(text)
        if char == "%":
            return "missing IPv6 address"
    return "unable to parse IP"


def _at(message: str, rest: str) -> str:
    return f"{message} (at {quote(rest)})"


def _v4(text: str) -> str:
    value = digits = dots = 0
    for index, char in enumerate(text):
        if char in "0123456789":
            if digits == 1 and value == 0:
                return "IPv4 field has octet with leading zero"
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                return "IPv4 field has value >255"
        elif char == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                return _at("IPv4 field must have at least one digit", text[index:])
            if dots == 3:
                return "IPv4 address too long"
            value, digits, dots = 0, 0, dots + 1
        else:
            return _at("unexpected character", text[index:])
    return "IPv4 address too short" if dots < 3 else ""


def _v6(text: str) -> str:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string"
    gap = rest.startswith("::")
    if gap:
        rest = rest[2:]
        if not rest:
            return ""
    count = 0
    while count < 16:
        match = _GROUP.match(rest)
        group = match[0] if match is not None else ""
        if len(group) > 4:
            return _at("each group must have 4 or less digits", rest)
        if not group:
            return _at("each colon-separated field must have at least one digit", rest)
        if rest[len(group) :].startswith("."):
            return _embedded(rest, count, gap)
        count += 2
        rest = rest[len(group) :]
        if not rest:
            break
        if rest[0] != ":":
            return _at("unexpected character, want colon", rest)
        if len(rest) == 1:
            return _at("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if gap:
                return _at("multiple :: in address", rest)
            gap, rest = True, rest[1:]
            if not rest:
                break
    if rest:
        return _at("trailing garbage after address", rest)
    if count < 16:
        return "" if gap else "address string too short"
    return "the :: must expand to at least one field of zeros" if gap else ""


def _embedded(rest: str, count: int, gap: bool) -> str:
    if not gap and count != 12:
        return _at("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if count + 4 > 16:
        return _at("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return _v4(rest)
