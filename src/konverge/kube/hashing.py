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
_FNV = {
    32: (0x811C9DC5, 0x01000193),
    128: (0x6C62272E07BB014262B821756295C58D, 0x0000000001000000000000000000013B),
}  # bits -> (offset basis, prime)


def fnv1a(data: bytes, bits: int) -> int:
    """The FNV-1a hash in 32 or 128 bits.

    >>> fnv1a(b"a", 32), hex(fnv1a(b"a", 128))
    (3826002220, '0xd228cb696f1a8caf78912b704e4a8964')
    """
    (value, prime), mask = _FNV[bits], (1 << bits) - 1
    for byte in data:
        value = (value ^ byte) * prime & mask
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
    return safe(fnv1a(data, 32))
