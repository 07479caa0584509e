"""The limits of both sides, each with its default and the reason for it. Nothing on the wire is unbounded."""

from __future__ import annotations

import msgspec

KIB = 1024
MIB = 1024 * KIB


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds, sizes in bytes; None means without limit."""

    connect: float | None = 10.0
    """For name, TCP, proxy and TLS together."""
    read: float | None = 75.0
    """Longest silence while an answer is awaited: a little over the 60 s after which servers usually answer 504."""
    stream_read: float | None = None
    """Longest silence while the next piece of a stream is awaited. A watch may be quiet for as long as it likes."""
    total: float | None = None
    """Default for a request that names no timeout of its own; for `send` only, since a stream may be endless."""
    acquire: float | None = 60.0
    """Longest wait for a free connection when `connections` are busy."""
    idle: float | None = 90.0
    """An unused connection is closed after this: shorter than a server's patience, so that we are first."""
    connections: int = 512
    """Each stream holds one, so this is far above the number of watches of one program."""
    head: int = 256 * KIB
    """Status line and header fields."""
    header_fields: int = 1000
    body: int | None = 256 * MIB
    """A whole answer in memory, after decompression."""
    stream_buffer: int = 256 * KIB
    """Bytes of a stream held for a slow reader before the socket is no longer read."""


class ServerLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in seconds, sizes in bytes."""

    request_line: int = 128 * KIB
    """Selectors travel in the query, and one may name thousands of objects. Beyond it: 414."""
    head: int = 256 * KIB
    """Request line and header fields; room for large bearer tokens. Go's servers take four times as much, but here the
    work on a field that comes byte by byte grows with its square. Beyond it: 431."""
    header_fields: int = 256
    body: int = 8 * MIB
    """Beyond it: 413."""
    head_time: float = 15.0
    """From the first byte of a request (or the connection) to the end of its header fields: ends slow-loris clients."""
    body_time: float = 120.0
    """From there to the end of the body."""
    idle: float = 180.0
    """Between requests: longer than clients keep their connections, so that they are first to close."""
    write_time: float = 60.0
    """Longest time in which a peer takes nothing of a large answer, or of the last bytes before a close."""
    linger: float = 2.0
    """After a refusal the rest of the request is read and dropped, or a reset could overtake the refusal."""
    connections: int = 10_000
    """Beyond it: 503."""
    pipeline: int = 16
    """Requests read ahead on one connection before its socket is no longer read."""
    write_buffer: int = 64 * KIB
    """Bytes unsent on one connection before `drain` waits."""
