"""The pages of an SQLite file, read without SQLite: for a file that SQLite itself refuses or cannot read to its end.

Every page of the file is looked at, whether or not a path leads there from the root; the frames of the write-ahead log
are laid over them. A frame counts if its checksum follows from the frame before: SQLite ends at the first one that does
not, here only that one is left out. What a row says is not believed: callers compare its checksum. The formats:
https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import contextlib
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

PAGE = 4096
"""The size of a page, which `create_database` sets; read from no header, as that may be damaged."""
_FILE_HEADER = 100
_LOG_HEADER, _FRAME_HEADER = 32, 24
_TABLE_LEAF, _TABLE_INNER, _INDEX_LEAF, _INDEX_INNER = 0x0D, 0x05, 0x0A, 0x02
_TREE = (_TABLE_LEAF, _TABLE_INNER, _INDEX_LEAF, _INDEX_INNER)
_MOST_COLUMNS = 8
_NO_RECORD = (IndexError, ValueError, KeyError, struct.error, RecursionError)
"""What reading a damaged cell ends in."""
_SIZES = (0, 1, 2, 3, 4, 6, 8)
"""Bytes of the integers of serial types 0 to 6."""

Value = None | int | str | bytes
Record = tuple[int, tuple[Value, ...]]
"""The row's id, and its columns; the id of an index entry is 0."""


class Pages:
    """The pages of a database with its log applied, by number, from 1."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes() if path.exists() else b""
        self._pages = {number // PAGE + 1: data[number : number + PAGE] for number in range(0, len(data), PAGE)}
        log = path.with_name(f"{path.name}-wal")
        logged = _Log(log.read_bytes() if log.exists() else b"")
        self._pages |= logged.pages
        self._suspect = logged.suspect

    def rows(self) -> Iterator[Record]:
        """All that looks like a row of a table, free pages left out."""
        return self._records(_TABLE_LEAF)

    def index_entries(self) -> Iterator[Record]:
        yield from self._records(_INDEX_LEAF)
        yield from self._records(_INDEX_INNER)

    def _records(self, kind: int) -> Iterator[Record]:
        free = self._free()
        known = [(number, page) for number, page in sorted(self._pages.items()) if number not in free]
        for number, page in [*known, *((0, page) for page in self._suspect)]:
            start = _FILE_HEADER if number == 1 else 0
            if len(page) < PAGE or page[start] != kind:
                continue
            for place in _cells(page, start, kind):
                try:
                    record = self._record(page, place, kind)
                except _NO_RECORD:
                    continue  # what is left of a cell
                if record is not None:
                    yield record

    def _free(self) -> set[int]:
        """The pages of the free list: what they held was deleted. A list that contradicts itself says nothing."""
        trunk, total = struct.unpack_from(">II", self._pages.get(1, b"").ljust(PAGE, b"\0"), 32)
        trunks: set[int] = set()
        leaves: list[int] = []
        while trunk != 0:
            page = self._pages.get(trunk, b"")
            if trunk in trunks or len(page) < PAGE or page[0] in _TREE:
                return set()
            trunks.add(trunk)
            trunk, count = struct.unpack_from(">II", page)
            if count > PAGE // 4 - 2:
                return set()
            leaves += struct.unpack_from(f">{count}I", page, 8)
        free = trunks.union(leaves)
        if not free or not len(trunks) + len(leaves) == len(free) == total:
            return set()
        return free - self._referred(free)

    def _referred(self, free: set[int]) -> set[int]:
        """The pages that others of the tables and indexes lead to: in a free list by damage only.

        What they begin with does not tell: SQLite leaves a page as it was when it frees it.
        """
        referred: set[int] = set()
        for number, page in self._pages.items():
            start = _FILE_HEADER if number == 1 else 0
            if number in free or len(page) < PAGE or page[start] not in (_TABLE_INNER, _INDEX_INNER):
                continue
            places = [start + 8, *_cells(page, start, page[start])]
            referred.update(struct.unpack_from(">I", page, place)[0] for place in places if place <= PAGE - 4)
        schema = self._pages[1].ljust(PAGE, b"\0")
        for place in _cells(schema, _FILE_HEADER, _TABLE_LEAF):
            with contextlib.suppress(*_NO_RECORD):
                match self._record(schema, place, _TABLE_LEAF):
                    case _, (str(), str(), str(), int(root), _):
                        referred.add(root)
        return referred

    def _record(self, page: bytes, place: int, kind: int) -> Record | None:
        if kind == _INDEX_INNER:
            place += 4  # the page below it
        size, place = _varint(page, place)
        row_id = 0
        if kind == _TABLE_LEAF:
            row_id, place = _varint(page, place)
        payload = self._payload(page, place, size, kind)
        return row_id, _columns(payload)

    def _payload(self, page: bytes, place: int, size: int, kind: int) -> bytes:
        """What is in the page, and the rest in a chain of pages of its own."""
        most = PAGE - 35 if kind == _TABLE_LEAF else (PAGE - 12) * 64 // 255 - 23
        if size <= most:
            return _exactly(page[place : place + size], size)
        if size > PAGE * len(self._pages):
            raise ValueError("larger than the file")
        least = (PAGE - 12) * 32 // 255 - 23
        local = least + (size - least) % (PAGE - 4)
        local = local if local <= most else least
        parts, left = [_exactly(page[place : place + local], local)], size - local
        (following,) = struct.unpack_from(">I", page, place + local)
        seen: set[int] = set()
        while left > 0:
            if following in seen:
                raise ValueError("a chain that ends in itself")
            seen.add(following)
            page = self._pages[following]
            (following,) = struct.unpack_from(">I", page)
            parts.append(_exactly(page[4 : 4 + min(left, PAGE - 4)], min(left, PAGE - 4)))
            left -= len(parts[-1])
        return b"".join(parts)


def _exactly(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError("cut off")
    return data


def _cells(page: bytes, start: int, kind: int) -> Iterator[int]:
    (count,) = struct.unpack_from(">H", page, start + 3)
    first = start + (12 if kind in (_TABLE_INNER, _INDEX_INNER) else 8)
    for number in range(min(count, (PAGE - first) // 2)):
        (place,) = struct.unpack_from(">H", page, first + 2 * number)
        yield place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = 0
    for _ in range(8):
        byte = data[place]
        place += 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, place
    return value << 8 | data[place], place + 1


def _columns(payload: bytes) -> tuple[Value, ...]:
    end, place = _varint(payload, 0)
    types: list[int] = []
    while place < end and len(types) <= _MOST_COLUMNS:
        kind, place = _varint(payload, place)
        types.append(kind)
    values: list[Value] = []
    for kind in types:
        size = _SIZES[kind] if kind < len(_SIZES) else 0 if kind in (8, 9) else (kind - 12) // 2
        values.append(_value(kind, _exactly(payload[end : end + size], size)))
        end += size
    return tuple(values)


def _value(kind: int, data: bytes) -> Value:
    if kind == 0:
        return None
    if kind in (8, 9):
        return kind - 8
    if kind < len(_SIZES):
        return int.from_bytes(data, "big", signed=True)
    if kind < 12:
        raise ValueError("a number with a fraction, or a type that does not exist")
    return data.decode() if kind % 2 else data


# --- the write-ahead log


class _Log:
    """The newest content of each page in the log, and the pages of frames that are damaged."""

    def __init__(self, log: bytes) -> None:
        self.pages: dict[int, bytes] = {}
        self.suspect: list[bytes] = []
        frames = [
            (log[place : place + _FRAME_HEADER], log[place + _FRAME_HEADER : place + _FRAME_HEADER + PAGE])
            for place in range(_LOG_HEADER, len(log) - PAGE - _FRAME_HEADER + 1, PAGE + _FRAME_HEADER)
        ]
        salts = _salts(log, [head[8:16] for head, _ in frames])
        matching = [number for number, (head, _) in enumerate(frames) if head[8:16] == salts]
        if matching:  # others in between are damaged, later ones are of an earlier use of the file, or zeros
            self._apply(frames[: matching[-1] + 1], struct.unpack_from(">II", log, 24))

    def _apply(self, frames: list[tuple[bytes, bytes]], before: tuple[int, int]) -> None:
        pending: dict[int, bytes] = {}
        whole = True
        for head, page in frames:
            number, committed, first, second = struct.unpack(">II8xII", head)
            whole = any(_checksum(order, head[:8] + page, before) == (first, second) for order in "<>")
            before = (first, second)
            if not whole:
                self.suspect.append(page)
                continue
            pending[number] = page
            if committed:
                self.pages |= pending
                pending = {}
        if not whole:  # that may have been a commit
            self.pages |= pending


def _salts(log: bytes, frames: list[bytes]) -> bytes | None:
    """What all frames of this use of the file have in common; None if it has no frames, as in a log of zeros.

    If the header is damaged, its first frames tell: those of an earlier use come after them.
    """
    used = [salts for salts in frames if any(salts)]
    if log[16:24] in used:
        return log[16:24]
    return Counter(used[:3]).most_common(1)[0][0] if used else None


def _checksum(order: str, data: bytes, before: tuple[int, int]) -> tuple[int, int]:
    """Of a frame, continued from the frame before."""
    first, second = before
    numbers = struct.unpack(f"{order}{len(data) // 4}I", data)
    for even, odd in zip(numbers[::2], numbers[1::2], strict=True):
        first = first + even + second & 0xFFFFFFFF
        second = second + odd + first & 0xFFFFFFFF
    return first, second
