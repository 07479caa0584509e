"""DNS messages (RFC 1035), as far as a resolver for one zone needs them: one question in, answers out."""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Sequence
from dataclasses import dataclass

A, CNAME, PTR, TXT, AAAA, SRV, ANY = 1, 5, 12, 16, 28, 33, 255
NO_ERROR, FORMAT_ERROR, NAME_ERROR, NOT_IMPLEMENTED = 0, 1, 3, 4
INTERNET = 1
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _RECURSION_DESIRED, _RECURSION = 0x8000, 0x0400, 0x0200, 0x0100, 0x0080
SMALL = 512
"""The longest answer over UDP; longer ones are asked for again over TCP."""


class MessageError(ValueError):
    """What arrived is no DNS query."""


@dataclass(frozen=True, slots=True)
class Question:
    number: int
    flags: int
    name: str
    """In lower case, without the last dot."""
    type: int
    raw: bytes
    """As it stood in the query."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of an answer."""

    name: str
    type: int
    value: str
    """An address or a name; for SRV `priority weight port target`."""
    ttl: int = 0
    """Nothing may be remembered: pods come and go within a test."""


def parse(data: bytes) -> Question:
    """The question of a query. Raises MessageError."""
    try:
        number, flags, questions = struct.unpack_from(">HHH", data)
        name, end = _name(data, 12)
        kind, _ = struct.unpack_from(">HH", data, end)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise MessageError("the query is cut off") from error
    if flags & _RESPONSE or questions != 1:
        raise MessageError("a query has exactly one question")
    return Question(number, flags, name.lower(), kind, data[12 : end + 4])


def _name(data: bytes, place: int) -> tuple[str, int]:
    labels = []
    while size := data[place]:
        if size > 63:
            raise MessageError("a question has a name without references")
        labels.append(data[place + 1 : place + 1 + size].decode("ascii"))
        place += 1 + size
    return ".".join(labels), place + 1


def answer(
    question: Question, code: int, entries: Sequence[Entry] = (), extra: Sequence[Entry] = (), limit: int = 0
) -> bytes:
    """The answer to a question, cut to `limit` bytes by leaving the records out (the client asks again over TCP)."""
    flags = _RESPONSE | _AUTHORITATIVE | _RECURSION | question.flags & _RECURSION_DESIRED | code
    head = struct.pack(">HHHHHH", question.number, flags, 1, len(entries), 0, len(extra))
    whole = head + question.raw + b"".join(_record(entry) for entry in (*entries, *extra))
    if limit and len(whole) > limit:
        return struct.pack(">HHHHHH", question.number, flags | _TRUNCATED, 1, 0, 0, 0) + question.raw
    return whole


def _record(entry: Entry) -> bytes:
    data = _data(entry)
    return _encoded(entry.name) + struct.pack(">HHIH", entry.type, INTERNET, entry.ttl, len(data)) + data


def _data(entry: Entry) -> bytes:
    if entry.type in (A, AAAA):
        return ipaddress.ip_address(entry.value).packed
    if entry.type == SRV:
        priority, weight, port, target = entry.value.split(" ")
        return struct.pack(">HHH", int(priority), int(weight), int(port)) + _encoded(target)
    return _encoded(entry.value)


def _encoded(name: str) -> bytes:
    labels = [label.encode("ascii") for label in name.rstrip(".").split(".") if label]
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"
