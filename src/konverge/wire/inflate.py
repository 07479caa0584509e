"""Decompression in bounded steps.

A kilobyte of gzip may hold a megabyte of zeros, so nobody here ever asks zlib for "everything": a whole body is
bounded by the caller's limit, and a stream gives out pieces that its reader asks for one at a time.
"""

from __future__ import annotations

import zlib

from konverge.wire.errors import BodyTooLarge, ProtocolError

PIECE = 32 * 1024
"""Of a stream at a time: such a piece stays in the processor's cache until it has been read (a third less CPU for a
watch than with 256 KiB)."""
_WHOLE_PIECE = 1024 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Inflater:
    """Gzip as it comes: feed it compressed bytes, pull pieces until there are none."""

    __slots__ = ("_input", "_started", "_zlib")

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_GZIP)
        self._input = b""
        self._started = False

    def feed(self, data: bytes) -> None:
        self._started = True
        self._input = self._input + data if self._input else data

    def pull(self, limit: int = PIECE) -> bytes:
        """At most `limit` bytes; empty when more input is needed."""
        while self._input:
            if self._zlib.eof:  # gzip files may be joined: the next member begins
                self._zlib = zlib.decompressobj(_GZIP)
            try:
                piece = self._zlib.decompress(self._input, limit)
            except zlib.error as error:
                raise ProtocolError(f"the server's gzip body is broken ({error}); ask for it uncompressed") from error
            self._input = self._zlib.unused_data if self._zlib.eof else self._zlib.unconsumed_tail
            if piece:
                return piece
        return b""

    @property
    def complete(self) -> bool:
        """Whether the body may end here: at the end of a member, or before any byte."""
        return not self._started or (self._zlib.eof and not self._input)


def inflate(data: bytes, limit: int | None) -> bytes:
    """A whole gzip body."""
    inflater = Inflater()
    if data:
        inflater.feed(data)
    pieces: list[bytes] = []
    size = 0
    while piece := inflater.pull(_WHOLE_PIECE):
        size += len(piece)
        if limit is not None and size > limit:
            raise too_large(limit)
        pieces.append(piece)
    if not inflater.complete:
        raise ProtocolError("the server's gzip body ends too early; ask for it uncompressed")
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def too_large(limit: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the answer is larger than {limit} bytes; ask for less at a time (pages), stream it, or raise the limit"
    )
