"""What one run of a container has said, on disk: bounded, rotated, readable while it grows.

A line of the file is `TIME stdout F TEXT`, as container engines write it; `P` marks the parts of a line that was too
long. Positions are counted from the beginning of the run, so a reader that follows survives a rotation.

`kubectl logs` reads it: tail, since, follow, previous, timestamps, at most so many bytes.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from konverge import clock
from konverge.objects import durations
from konverge.objects.times import parse_time
from konverge.sim.kubelet.sessions import Query, is_true
from konverge.sim.processes import disk
from konverge.wire.message import Producer, Sink


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """What is asked of a log."""

    follow: bool = False
    previous: bool = False
    timestamps: bool = False
    tail: int | None = None
    since: bytes = b""
    """The first time that counts, as the file writes times: such texts compare as the times do."""
    limit: int | None = None
    stream: bytes = b""


def read_options(query: Query) -> LogOptions:
    """From the query of a request, which the API server has checked."""

    def text(name: str) -> str:
        return (query.get(name) or [""])[0]

    def number(name: str) -> int | None:
        return int(text(name)) if text(name) else None

    since, seconds = "", number("sinceSeconds")
    if seconds is not None:
        since = (clock.utc_now() - durations.seconds(seconds)).strftime("%Y-%m-%dT%H:%M:%S.%f")
    elif text("sinceTime"):
        since = parse_time(text("sinceTime")).strftime("%Y-%m-%dT%H:%M:%S.%f")
    stream = text("stream").lower()
    return LogOptions(
        follow=is_true(query, "follow"),
        previous=is_true(query, "previous"),
        timestamps=is_true(query, "timestamps"),
        tail=number("tailLines"),
        since=since.encode(),
        limit=number("limitBytes"),
        stream=stream.encode() if stream in ("stdout", "stderr") else b"",
    )


def producer(log: LogFile, options: LogOptions) -> Producer:
    async def produce(sink: Sink) -> None:
        position = log.tail(options.tail) if options.tail is not None else 0
        last, rest, left = log.end_position, b"", options.limit
        while left is None or left > 0:
            data, position = log.read(position)
            if data:
                whole, line_break, rest = (rest + data).rpartition(b"\n")
                text = _shown(whole + line_break, options)
                sink.write(text if left is None else text[:left])
                left = None if left is None else left - len(text)
                await sink.drain()
                if not options.follow and position >= last:
                    return
            elif log.ended or not options.follow:
                return
            else:
                await log.changed()

    return produce


def _shown(data: bytes, options: LogOptions) -> bytes:
    parts = []
    for entry in entries(data):
        if entry.time < options.since or (options.stream and entry.stream != options.stream):
            continue
        parts.append(entry.time + b" " + entry.body if options.timestamps else entry.body)
    return b"".join(parts)


LINE = 16 * 1024
"""Longer lines are kept in parts."""
FILE = 10 * 1024 * 1024
FILES = 3
"""Files of one run; the oldest goes when another begins."""
_BLOCK = 64 * 1024
_STREAMS = {1: b"stdout", 2: b"stderr"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line, or a part of a long one."""

    time: bytes
    stream: bytes
    text: bytes
    whole: bool

    @property
    def body(self) -> bytes:
        return self.text + b"\n" if self.whole else self.text


class LogFile:
    """The log of one run. It ends with the run; what an earlier cluster left behind has ended already."""

    def __init__(self, path: Path, *, size: int = FILE, files: int = FILES) -> None:
        self.path = path
        self.ended = True
        self._size = size
        self._files = files
        self._partial: dict[int, bytearray] = {1: bytearray(), 2: bytearray()}
        self._file: BinaryIO | None = None
        self._changed = asyncio.Event()
        self._starts = self._existing()
        """The file of each position, oldest first: (position, number of the file)."""

    def _existing(self) -> list[tuple[int, int]]:
        existing, position = [], 0
        for number in range(self._files - 1, -1, -1):
            path = self._numbered(number)
            if path.exists():
                existing.append((position, number))
                position += path.stat().st_size
        self.end_position = position
        return existing

    def _numbered(self, number: int) -> Path:
        return self.path if number == 0 else self.path.with_name(f"{self.path.name}.{number}")

    # -------------------------------------------------------------- writing

    def open(self) -> None:
        """Begin to write; a run's log is begun once."""
        self.remove()
        self._starts, self.end_position, self.ended = [], 0, False
        self._begin_file()

    def _begin_file(self) -> None:
        disk.make_folder(self.path.parent)
        self._file = os.fdopen(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb", buffering=0)
        self._starts.append((self.end_position, 0))

    def write(self, fd: int, data: bytes) -> None:
        """Take output in; whole lines are written at once."""
        if self.ended:
            return
        partial = self._partial[fd]
        partial += data
        entries = bytearray()
        now = _now()
        while True:
            place = partial.find(b"\n")
            if place < 0 and len(partial) <= LINE:
                break
            whole = 0 <= place <= LINE
            cut = place if whole else LINE
            entries += _entry(now, fd, bytes(partial[:cut]), whole)
            del partial[: cut + whole]
        self._append(bytes(entries))

    def end(self) -> None:
        """The run is over: what stands without a line break is written as such, and followers are let go."""
        if self.ended:
            return
        for fd, partial in self._partial.items():
            if partial:
                self._append(_entry(_now(), fd, bytes(partial), whole=False))
                partial.clear()
        self.ended = True
        if self._file is not None:
            self._file.close()
            self._file = None
        self._wake()

    def _append(self, data: bytes) -> None:
        if not data or self._file is None:
            return
        with suppress(OSError):  # a full disk costs the log, not the process
            self._file.write(data)
            self.end_position += len(data)
        if self.end_position - self._starts[-1][0] >= self._size:
            self._rotate()
        self._wake()

    def _rotate(self) -> None:
        if self._file is not None:
            self._file.close()
        self._numbered(self._files - 1).unlink(missing_ok=True)
        for number in range(self._files - 2, -1, -1):
            if self._numbered(number).exists():
                self._numbered(number).rename(self._numbered(number + 1))
        self._starts = [(start, number + 1) for start, number in self._starts if number + 1 < self._files]
        self._begin_file()

    def remove(self) -> None:
        for number in range(self._files):
            self._numbered(number).unlink(missing_ok=True)

    # -------------------------------------------------------------- reading

    def read(self, position: int) -> tuple[bytes, int]:
        """Bytes from a position on, and where to go on; none at the end. What was rotated away is left out."""
        if not self._starts or position >= self.end_position:
            return b"", position
        position = max(position, self._starts[0][0])
        start, number = next(start for start in reversed(self._starts) if start[0] <= position)
        following = [begin for begin, _ in self._starts if begin > start]
        end = following[0] if following else self.end_position
        with self._numbered(number).open("rb") as file:
            file.seek(position - start)
            data = file.read(min(_BLOCK, end - position))
        return data, position + len(data)

    def tail(self, lines: int) -> int:
        """The position from which so many lines follow."""
        if lines == 0:
            return self.end_position
        for start, number in reversed(self._starts):
            data = self._numbered(number).read_bytes()
            place = len(data)
            while place > 0:
                place = data.rfind(b"\n", 0, place)
                if place < 0:
                    break
                if lines == 0:
                    return start + place + 1
                lines -= 1
        return 0

    def last(self, lines: int, size: int) -> bytes:
        """What was said in the last lines, of that the last bytes."""
        position, rest, text = self.tail(lines), b"", b""
        while True:
            data, position = self.read(position)
            if not data:
                return text
            whole, line_break, rest = (rest + data).rpartition(b"\n")
            text = (text + b"".join(entry.body for entry in entries(whole + line_break)))[-size:]

    async def changed(self) -> None:
        """Until more is said, or the run is over."""
        if not self.ended:
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def entries(data: bytes) -> Iterator[Entry]:
    """The entries of whole lines."""
    for line in data.split(b"\n")[:-1]:
        time, _, rest = line.partition(b" ")
        stream, _, rest = rest.partition(b" ")
        tag, _, text = rest.partition(b" ")
        yield Entry(time, stream, text, tag == b"F")


def _entry(now: bytes, fd: int, text: bytes, whole: bool) -> bytes:
    return b"%b %b %b %b\n" % (now, _STREAMS[fd], b"F" if whole else b"P", text)


def _now() -> bytes:
    return clock.utc_now().strftime("%Y-%m-%dT%H:%M:%S.%f000Z").encode()
