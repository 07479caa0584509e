"""Which member owns which slot: rendezvous hashing.

A key has a slot, for ever; a slot has the member whose hash with it is the highest. So when a member goes, only its own
slots move, spread over the others; when a member comes, only the slots move that it gets. Slots stand between keys and
members so that a share is a small set, and a look at it costs the same whatever the number of members.

Every process computes the same from the names of the members: nothing here may depend on the process (`hash()` of a
text does).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from hashlib import blake2b
from zlib import crc32

import msgspec

from konverge.objects.shard_hash import fnv1a

SLOTS = 1024
"""Slots of keys: with four members, a share differs from a quarter by some 5 %."""
NAMESPACE_SLOTS = 128
"""Slots of namespaces: few enough that the ranges of a share fit into a request."""


def owners(members: Sequence[str], slots: int) -> tuple[str, ...]:
    """Slot -> its member; an empty text for each when there are no members.

    >>> sorted(set(owners(["a", "b"], 16)))
    ['a', 'b']
    """
    return _owners(tuple(sorted(set(members))), slots)


@lru_cache(maxsize=64)
def _owners(members: tuple[str, ...], slots: int) -> tuple[str, ...]:
    if not members:
        return ("",) * slots
    columns = [_weights(member, slots) for member in members]
    return tuple(max(zip(weights, members, strict=True))[1] for weights in zip(*columns, strict=True))


@lru_cache(maxsize=256)
def _weights(member: str, slots: int) -> tuple[int, ...]:
    name = member.encode()
    return tuple(
        int.from_bytes(blake2b(name, digest_size=8, salt=slot.to_bytes(4, "big")).digest(), "big")
        for slot in range(slots)
    )


def slot_of_key(key: Hashable) -> int:
    """The slot of a key of any kind, as its JSON says it: two processes agree, and so do two releases of Python.

    The order of a set in memory is another in every process, so sets are written in order.
    """
    return crc32(msgspec.json.encode(key, order="deterministic")) % SLOTS


def slot_of_namespace(key: Hashable) -> int:
    """The slot of everything in one namespace. The hash is the server's, so that a share is a shard selector."""
    return _slot_of_text(getattr(key, "namespace", ""))


@lru_cache(maxsize=65_536)
def _slot_of_text(text: str) -> int:
    return fnv1a(text) * NAMESPACE_SLOTS >> 64


def shard_selector(share: frozenset[int], slots: int = NAMESPACE_SLOTS) -> str:
    """The `shardSelector` of a list or a watch that shows the namespaces of these slots alone.

    >>> shard_selector(frozenset({0, 1}), 4)
    "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')"
    """
    width = (1 << 64) // slots
    ranges: list[tuple[int, int]] = []
    for slot in sorted(share):
        if ranges and ranges[-1][1] == slot:
            ranges[-1] = ranges[-1][0], slot + 1
        else:
            ranges.append((slot, slot + 1))
    return " || ".join(
        f"shardRange(object.metadata.namespace, '0x{start * width:016x}', '0x{end * width:016x}')"
        for start, end in ranges
    )


SlotOf = Callable[[Hashable], int]
