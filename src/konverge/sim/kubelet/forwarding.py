"""port-forward: connections to a pod's address, through a WebSocket.

kubectl tunnels SPDY through it: for each connection a stream for the bytes and one for an error. Other clients use
channels: two for each port that the request names, one connection per port.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

from konverge.sim.loop import end
from konverge.wire import routes, spdy
from konverge.wire.websocket import WebSocket

_BLOCK = 32 * 1024
CONNECT_TIME = 10.0


def check(address: str) -> None:
    """An annotation may give a pod any address; only those of this machine and of pod networks are connected to.

    Raises ValueError.
    """
    if not routes.is_local(address):
        known = address or "not known yet"
        raise ValueError(f"the pod's address is {known}; only loopback addresses are forwarded to, and pod networks'")


class _Refused(Exception):
    """No connection; the text is for the user."""


async def _connect(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(CONNECT_TIME):
            return await routes.open_connection(address, port)
    except TimeoutError:
        raise _Refused(f"failed to connect to {address}:{port}: it does not answer") from None
    except (OSError, OverflowError) as error:
        why = os.strerror(error.errno).lower() if isinstance(error, OSError) and error.errno else str(error)
        raise _Refused(f"failed to connect to {address}:{port}: {why}") from None


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


# ------------------------------------------------------------------ streams


class _Link:
    """One connection: its two streams and its socket."""

    def __init__(self) -> None:
        self.error = self.data = 0
        self.port = 0
        self.inbox: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=64)
        """From the client; None is its end."""
        self.task: asyncio.Task[None] | None = None


class _Streams:
    """All connections of one port-forward."""

    def __init__(self, address: str, socket: WebSocket) -> None:
        self._address = address
        self._socket = socket
        self._session = spdy.Session()
        self._requests: dict[str, _Link] = {}
        self._links: dict[int, _Link] = {}
        """By the number of the data stream."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client goes; its connections go with it. Raises SpdyError."""
        try:
            await self._listen()
        finally:
            await end(self._tasks)

    async def _listen(self) -> None:
        while (message := await self._socket.receive()) is not None:
            for event in self._session.feed(message):
                match event:
                    case spdy.Opened():
                        await self._open(event)
                    case spdy.Data(stream, payload, final):
                        await self._take(stream, payload, final)
                    case spdy.Reset(stream):
                        self._drop(stream)
                    case spdy.Pinged(answer):
                        await self._socket.send(answer)
                    case spdy.Leaving():
                        return

    async def _open(self, event: spdy.Opened) -> None:
        headers = event.headers
        port, kind = headers.get("port", ""), headers.get("streamtype", "")
        if not port.isdigit() or not 0 < int(port) < 65536 or kind not in ("error", "data"):
            await self._socket.send(spdy.reset(event.stream, spdy.REFUSED_STREAM))
            return
        key = headers.get("requestid") or f"{event.stream - (2 if kind == 'data' else 0)}"
        if key not in self._requests and len(self._requests) >= spdy.STREAMS // 2:
            await self._socket.send(spdy.reset(event.stream, spdy.REFUSED_STREAM))
            return
        await self._socket.send(self._session.reply(event.stream))
        link = self._requests.setdefault(key, _Link())
        link.port = int(port)
        if kind == "error":
            link.error = event.stream
            return
        link.data = event.stream
        self._links[event.stream] = link
        link.task = asyncio.create_task(self._serve(link, key), name=f"port-forward to {self._address}:{port}")
        self._tasks.add(link.task)
        link.task.add_done_callback(self._tasks.discard)

    async def _take(self, stream: int, payload: bytes, final: bool) -> None:
        link = self._links.get(stream)
        if link is None:
            return  # the end of an error stream, or of one that is gone
        if payload:
            await link.inbox.put(payload)
        if final:
            await link.inbox.put(None)

    def _drop(self, stream: int) -> None:
        link = self._links.get(stream)
        if link is not None and link.task is not None:
            link.task.cancel()

    async def _serve(self, link: _Link, key: str) -> None:
        try:
            reader, writer = await _connect(self._address, link.port)
        except _Refused as refusal:
            self._forget(link, key)
            frames = spdy.data(link.error, str(refusal).encode(), final=True)
            with suppress(ConnectionError):
                await self._socket.send(frames + spdy.data(link.data, b"", final=True))
            return
        filling = asyncio.create_task(self._fill(link, writer), name="port-forward: to the pod")
        try:
            while block := await reader.read(_BLOCK):
                await self._socket.send(spdy.data(link.data, block))
        except ConnectionError:
            pass
        finally:
            self._forget(link, key)
            filling.cancel()
            await asyncio.wait([filling])
            await _hang_up(writer)
        with suppress(ConnectionError):
            await self._socket.send(spdy.data(link.data, b"", final=True) + spdy.data(link.error, b"", final=True))

    def _forget(self, link: _Link, key: str) -> None:
        self._requests.pop(key, None)
        self._links.pop(link.data, None)
        while not link.inbox.empty():  # release writers that wait for room
            link.inbox.get_nowait()

    async def _fill(self, link: _Link, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while (block := await link.inbox.get()) is not None:
                writer.write(block)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()


async def by_streams(address: str, ports: Sequence[int], socket: WebSocket) -> None:
    """As kubectl does it; the ports are named by the streams."""
    try:
        await _Streams(address, socket).run()
    except spdy.SpdyError:
        await socket.close(1002, "this is not SPDY/3.1")


# ------------------------------------------------------------------ channels


async def by_channels(address: str, ports: Sequence[int], socket: WebSocket) -> None:
    """Two channels for each port: its bytes and its error."""
    for number, port in enumerate(ports):
        hello = port.to_bytes(2, "little")
        await socket.send(bytes((2 * number,)) + hello)
        await socket.send(bytes((2 * number + 1,)) + hello)
    writers: dict[int, asyncio.StreamWriter] = {}
    tasks: list[asyncio.Task[None]] = []
    try:
        for number, port in enumerate(ports):
            try:
                reader, writers[2 * number] = await _connect(address, port)
            except _Refused as refusal:
                await socket.send(bytes((2 * number + 1,)) + str(refusal).encode())
                continue
            tasks.append(asyncio.create_task(_pump(reader, socket, 2 * number), name=f"port-forward to {port}"))
        while (message := await socket.receive()) is not None:
            writer = writers.get(message[0]) if message else None
            if writer is not None:
                writer.write(message[1:])
                await writer.drain()
    except ConnectionError:
        return
    finally:
        await end(tasks)
        for writer in writers.values():
            await _hang_up(writer)


async def _pump(reader: asyncio.StreamReader, socket: WebSocket, channel: int) -> None:
    with suppress(ConnectionError):
        while block := await reader.read(_BLOCK):
            await socket.send(bytes((channel,)) + block)
        await socket.close()
