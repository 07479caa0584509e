"""A WebSocket client of a few lines, for tests: it masks, and a test can make it break the rules."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from konverge.wire.websocket_frames import Opcode, unmasked

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MASK = b"\x11\x22\x33\x44"


def handshake(target: str, *protocols: str, extra: str = "") -> bytes:
    offered = f"sec-websocket-protocol: {', '.join(protocols)}\r\n" if protocols else ""
    return (
        f"GET {target} HTTP/1.1\r\nhost: x\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n"
        f"sec-websocket-version: 13\r\nsec-websocket-key: {KEY}\r\n{offered}{extra}\r\n"
    ).encode()


def frame(opcode: int, data: bytes, *, final: bool = True, mask: bytes = MASK) -> bytes:
    size = len(data)
    first = bytes(((0x80 if final else 0) | opcode,))
    if size < 126:
        head = bytes((0x80 | size,))
    elif size < 0x10000:
        head = bytes((0x80 | 126,)) + size.to_bytes(2, "big")
    else:
        head = bytes((0x80 | 127,)) + size.to_bytes(8, "big")
    return first + head + mask + unmasked(data, mask)


class Talker:
    """The client's end of an open WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str) -> None:
        self.reader = reader
        self.writer = writer
        self.head = head

    @property
    def status(self) -> int:
        return int(self.head.split()[1])

    def send(self, data: bytes, opcode: int = Opcode.BINARY) -> None:
        self.writer.write(frame(opcode, data))

    async def receive(self) -> tuple[Opcode, bytes]:
        first, second = await self.reader.readexactly(2)
        assert not second & 0x80, "a server does not mask"
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
        return Opcode(first & 0x0F), await self.reader.readexactly(size)


@contextlib.asynccontextmanager
async def talking(
    port: int, target: str, *protocols: str, extra: str = "", host: str = "127.0.0.1"
) -> AsyncIterator[Talker]:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(handshake(target, *protocols, extra=extra))
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        yield Talker(reader, writer, head)
    finally:
        writer.close()
        await writer.wait_closed()
