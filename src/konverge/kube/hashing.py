"""Short hashes of templates and revisions, in the alphabet that Kubernetes uses for generated names.

The value differs from kube-controller-manager's (which hashes a dump of Go structs); its form and its role are the
same: equal templates have equal hashes, and after a collision the count of collisions is hashed too.

Upstream: ComputeHash (pkg/controller/controller_utils.go), SafeEncodeString (k8s.io/apimachinery/pkg/util/rand).
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.objects.codec import to_dict

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_OFFSET, _PRIME = 2166136261, 16777619


def fnv32a(data: bytes) -> int:
    """
    >>> fnv32a(b"a")
    3826002220
    """
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value


def safe(number: int) -> str:
    """A number in an alphabet without vowels, so that it spells no word."""
    return "".join(_SAFE[ord(character) % len(_SAFE)] for character in str(number))


def hash_of(value: Any, collisions: int | None = None) -> str:
    """The hash of a template (a model or plain data); another count of collisions gives another hash."""
    plain = value if isinstance(value, dict) else to_dict(value)
    data = msgspec.json.encode(plain, order="sorted")
    if collisions is not None:
        data += collisions.to_bytes(8, "little")
    return safe(fnv32a(data))
