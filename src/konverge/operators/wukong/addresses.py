"""Addresses, read as the API server's own functions read them: nothing mapped, no zones, no leading zeros."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

_LENGTH = re.compile(r"0|[1-9][0-9]{0,2}")


def is_address(text: str) -> bool:
    """
    >>> is_address("192.168.1.1"), is_address("fd00::1"), is_address("fe80::1%eth0"), is_address("::ffff:1.2.3.4")
    (True, True, False, False)
    """
    return _read(text) is not None


def is_cidr(text: str) -> bool:
    """
    >>> is_cidr("192.168.1.10/24"), is_cidr("192.168.1.10"), is_cidr("192.168.1.10/255.255.255.0")
    (True, False, False)
    """
    address, slash, length = text.partition("/")
    parsed = _read(address)
    if parsed is None or not slash or not _LENGTH.fullmatch(length):
        return False
    return int(length) <= parsed.max_prefixlen


def _read(text: str) -> IPv4Address | IPv6Address | None:
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or parsed.ipv4_mapped is not None):
        return None
    return parsed
