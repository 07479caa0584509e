"""What proves that a state on disk is whole: a checksum per row, a chain over the log, and a seal over all of it.

Every row of `current` has the checksum of its table, key and data. Every row of `log` has the checksum of its revision,
its changes and the row before: a chain. The seal is one row that names the revision, the ends of the chain, the number
of rows of `current` and the sum of their checksums, and has a checksum itself. So a byte that changed, a row that
vanished or came back and a page of an earlier time all show. Against accidents, not against an attacker: whoever may
write the file can compute checksums.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

_SIZE = 8
_SUMS = 1 << 64


class BadSeal(ValueError):
    """Bytes that are no seal."""


class Seal(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What is true of a whole state at one revision."""

    id: bytes
    """Of this state; the witness beside the database has the same."""
    revision: int = 1
    compacted: int = 0
    count: int = 0
    """Rows of `current`."""
    total: int = 0
    """The sum of their checksums."""
    base: int = 0
    """Where the chain begins: the checksum of the last row of `log` that was deleted."""
    base_revision: int = 0
    """The revision of that row."""
    chain: int = 0
    """The checksum of the newest row of `log`."""


def row_checksum(table: str, key: str, data: bytes) -> int:
    """The checksum of a row of `current`, as SQLite's integers are: 64 bits with a sign."""
    digest = blake2b(f"{table}\0{key}\0".encode(), digest_size=_SIZE)
    digest.update(data)
    return int.from_bytes(digest.digest(), "big", signed=True)


def chained(before: int, revision: int, changes: bytes) -> int:
    """The checksum of a row of `log` after a row with the checksum `before`."""
    head = before.to_bytes(_SIZE, "big", signed=True) + revision.to_bytes(_SIZE, "big")
    digest = blake2b(head, digest_size=_SIZE)
    digest.update(changes)
    return int.from_bytes(digest.digest(), "big", signed=True)


def changed_total(total: int, removed: Iterable[int], added: Iterable[int]) -> int:
    """The sum after some rows were replaced.

    >>> changed_total(changed_total(0, [], [5, -7]), [-7], [])
    5
    """
    return (total - sum(removed) + sum(added)) % _SUMS


def sealed(seal: Seal) -> bytes:
    """A seal as bytes with a checksum at their end."""
    return with_checksum(msgspec.msgpack.encode(seal))


def unsealed(data: bytes) -> Seal:
    """The reverse of `sealed`. Raises BadSeal."""
    body = without_checksum(data)
    if body is None:
        raise BadSeal("its checksum is wrong")
    try:
        return msgspec.msgpack.decode(body, type=Seal)
    except msgspec.MsgspecError as error:
        raise BadSeal(str(error)) from error


def with_checksum(body: bytes) -> bytes:
    return body + blake2b(body, digest_size=_SIZE).digest()


def without_checksum(data: bytes) -> bytes | None:
    """What `with_checksum` was given, or None if it is not that any more."""
    body = data[:-_SIZE]
    return body if len(data) >= _SIZE and blake2b(body, digest_size=_SIZE).digest() == data[-_SIZE:] else None
