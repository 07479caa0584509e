"""`kubectl logs` of a process: tail, since, follow, previous, timestamps, at most so many bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from konverge import clock
from konverge.objects.times import parse_time
from konverge.sim.processes.logfile import LogFile, entries
from konverge.wire.message import Producer, Sink

Query = Mapping[str, Sequence[str]]


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
        values = query.get(name)
        return values[0] if values else ""

    def number(name: str) -> int | None:
        return int(text(name)) if text(name) else None

    def truth(name: str) -> bool:
        return text(name) in ("1", "t", "T", "true", "TRUE", "True")

    since, seconds = "", number("sinceSeconds")
    if seconds is not None:
        since = (clock.utc_now() - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%f")
    elif text("sinceTime"):
        since = parse_time(text("sinceTime")).strftime("%Y-%m-%dT%H:%M:%S.%f")
    stream = text("stream").lower()
    return LogOptions(
        follow=truth("follow"),
        previous=truth("previous"),
        timestamps=truth("timestamps"),
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
