"""The hash by which the API server shards lists and watches.

Upstream: HashField (apimachinery/pkg/sharding/hash.go).
"""

from __future__ import annotations

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_64_BITS = (1 << 64) - 1


def fnv1a(text: str) -> int:
    """The 64-bit FNV-1a hash.

    >>> f"{fnv1a('default'):016x}"
    'ebada5168620c5fe'
    """
    value = _OFFSET
    for byte in text.encode():
        value = (value ^ byte) * _PRIME & _64_BITS
    return value
