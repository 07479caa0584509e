"""SPDY/3.1 frames, the server's side, as far as Kubernetes streams need them: many streams over one connection.

Without any socket: `Session.feed` gives events, the other methods give bytes to send. There is no flow control, because
the clients of Kubernetes have none. Everything is bounded: frames, header blocks, the number of streams.
"""

from __future__ import annotations

import struct
import zlib

import msgspec

_VERSION = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN = 1
INVALID_STREAM, REFUSED_STREAM, CANCEL = 2, 3, 5
FRAME = 1024 * 1024
_HEADER_BLOCK = 64 * 1024
STREAMS = 1024
"""Open at a time."""

_NAMES = """
    options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
    authorization cache-control connection content-base content-encoding content-language content-length
    content-location content-md5 content-range content-type date etag expect expires from host if-match
    if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma
    proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade
    user-agent vary via warning www-authenticate method get status
"""
_MORE_NAMES = ("200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin")
_CODES = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
_TEXTS = (
    "203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    "404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    "Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    "chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    "publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(struct.pack(">I", len(name)) + name.encode() for name in (*_NAMES.split(), *_MORE_NAMES))
    + (_CODES + _TEXTS).encode()
)
"""What both sides' compressors know beforehand, as the protocol prescribes it."""


class SpdyError(Exception):
    """The peer does not speak SPDY/3.1; the connection is to be closed."""


class Opened(msgspec.Struct, frozen=True):
    stream: int
    headers: dict[str, str]
    final: bool


class Data(msgspec.Struct, frozen=True):
    stream: int
    data: bytes
    final: bool


class Reset(msgspec.Struct, frozen=True):
    stream: int


class Pinged(msgspec.Struct, frozen=True):
    """`answer` is to be sent back."""

    answer: bytes


class Leaving(msgspec.Struct, frozen=True):
    """The peer opens no more streams."""


Event = Opened | Data | Reset | Pinged | Leaving


class Session:
    """One connection."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._last = 0

    # --- reading --------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """What has arrived, as events. Raises SpdyError."""
        self._buffer += data
        events: list[Event] = []
        while len(self._buffer) >= 8:
            first, second = struct.unpack_from(">II", self._buffer)
            length = second & 0xFFFFFF
            if length > FRAME:
                raise SpdyError(f"a frame has at most {FRAME} bytes here")
            if len(self._buffer) < 8 + length:
                break
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            event = self._event(first, second >> 24, body)
            if event is not None:
                events.append(event)
        return events

    def _event(self, first: int, flags: int, body: bytes) -> Event | None:
        if not first & 0x80000000:
            return Data(first, body, bool(flags & FIN))
        version, kind = first >> 16 & 0x7FFF, first & 0xFFFF
        if version != _VERSION:
            raise SpdyError(f"SPDY version {version} is not spoken here; {_VERSION} is")
        if kind == SYN_STREAM:
            return self._opened(flags, body)
        if kind == RST_STREAM:
            return Reset(_number(body))
        if kind == PING:
            return Pinged(_control(PING, 0, body[:4])) if _number(body) % 2 else None
        if kind == GOAWAY:
            return Leaving()
        if kind in (SYN_REPLY, HEADERS):
            self._headers(body[4:])  # read also where they are not used: the compressor's state goes on
        return None  # settings and windows: nothing to do without flow control

    def _opened(self, flags: int, body: bytes) -> Opened:
        stream = _number(body)
        if len(body) < 10 or stream % 2 == 0 or stream <= self._last:
            raise SpdyError(f"{stream} is no number for a new stream of a client")
        self._last = stream
        return Opened(stream, self._headers(body[10:]), bool(flags & FIN))

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            plain = self._inflate.decompress(block, _HEADER_BLOCK)
        except zlib.error as error:
            raise SpdyError(f"a header block cannot be read: {error}") from error
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"a header block has at most {_HEADER_BLOCK} bytes here")
        try:
            return _pairs(plain)
        except (struct.error, UnicodeDecodeError) as error:
            raise SpdyError("a header block is cut off") from error

    # --- writing --------------------------------------------------------------------------------------------------

    def reply(self, stream: int) -> bytes:
        """Accept a stream."""
        block = self._deflate.compress(struct.pack(">I", 0)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        return _control(SYN_REPLY, 0, struct.pack(">I", stream) + block)


def data(stream: int, payload: bytes, *, final: bool = False) -> bytes:
    return struct.pack(">II", stream, (FIN if final else 0) << 24 | len(payload)) + payload


def reset(stream: int, why: int = CANCEL) -> bytes:
    return _control(RST_STREAM, 0, struct.pack(">II", stream, why))


def _control(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack(">II", 0x80000000 | _VERSION << 16 | kind, flags << 24 | len(body)) + body


def _number(body: bytes) -> int:
    if len(body) < 4:
        raise SpdyError("a frame is too short for its kind")
    return int.from_bytes(body[:4], "big") & 0x7FFFFFFF


def _pairs(plain: bytes) -> dict[str, str]:
    (count,) = struct.unpack_from(">I", plain)
    headers: dict[str, str] = {}
    place = 4
    for _ in range(count):
        texts = []
        for _ in range(2):
            (size,) = struct.unpack_from(">I", plain, place)
            if place + 4 + size > len(plain):
                raise struct.error("the text is longer than its block")
            texts.append(plain[place + 4 : place + 4 + size].decode())
            place += 4 + size
        headers[texts[0].lower()] = texts[1]
    return headers
