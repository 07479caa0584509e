"""Texts with a shape: what several parts of the spec have in common. Lengths are bounded so that rules stay cheap.

Addresses are read as the API server's own functions read them: nothing mapped, no zones, no leading zeros.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Annotated

from konverge.objects import MaxLength, MinLength, Pattern, Quantity, QuantityError, Rule

LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
INTERFACE = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
SIZE = r"^[0-9]{1,15}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?$"
MAC = r"^[0-9a-fA-F][02468aceACE](:[0-9a-fA-F]{2}){5}$"
LEAST = "1Mi"
"""Less is no disk that CDI would make, and no memory that anything could start in."""
TOO_SMALL = f"must be at least {LEAST}"

Label = Annotated[str, Pattern(LABEL), MaxLength(63)]
"""A name that becomes part of other names."""
ObjectName = Annotated[str, Pattern(SUBDOMAIN), MaxLength(253)]
"""The name of an object in the same namespace."""
Key = Annotated[str, Pattern(r"^[-._a-zA-Z0-9]+$"), MaxLength(253)]
"""A key in a Secret."""
Interface = Annotated[str, Pattern(INTERFACE), MaxLength(15)]
"""An interface of a node: the kernel has room for 15 characters."""
Size = Annotated[
    str,
    Pattern(SIZE),
    MaxLength(32),
    # What is no quantity is refused by the pattern, with a clearer message than that of a rule that fails to evaluate.
    Rule(f"!isQuantity(self) || quantity(self).compareTo(quantity('{LEAST}')) >= 0", message=TOO_SMALL),
]
"""A number of bytes, as Kubernetes writes one. (`K` never was one of its suffixes: it is `k`, or `Ki`.)"""
Mac = Annotated[str, Pattern(MAC), MaxLength(17)]
"""A unicast address, with colons."""
NO_ADDRESS = "must be an address: 192.168.1.1, fd00::1"
NO_CIDR = "must be an address with the length of its net: 192.168.1.10/24"
Address = Annotated[str, MinLength(2), MaxLength(45), Rule("isIP(self)", message=NO_ADDRESS)]
Cidr = Annotated[
    str,
    MinLength(4),
    MaxLength(49),
    Rule("isCIDR(self)", message=NO_CIDR),
]
Url = Annotated[str, Pattern(r"^\S+$"), MaxLength(2048)]
Line = Annotated[str, Pattern(r"^[^\x00-\x1f\x7f]*$"), MaxLength(1024)]
"""One line of text."""


def is_too_small(size: str) -> bool:
    """What is no size at all is too small, too: patterns of Python let a line end pass that the server's do not."""
    try:
        return Quantity(size) < Quantity(LEAST)
    except QuantityError:
        return True


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
