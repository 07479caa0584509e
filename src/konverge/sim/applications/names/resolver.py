"""The DNS server: UDP and TCP on one address. It knows the cluster's names and `localhost`, and no others."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from types import TracebackType
from typing import Self, cast

from konverge.sim.applications.names import message
from konverge.sim.applications.names.message import MessageError, Question
from konverge.sim.applications.names.zone import DOMAIN, Names, search_domains
from konverge.sim.loop import end


def resolv_conf(address: str, namespace: str = "default", domain: str = DOMAIN) -> str:
    """The text of /etc/resolv.conf for a process that shall see the cluster as a pod of this namespace does."""
    searched = " ".join(search_domains(namespace, domain))
    return f"nameserver {address}\nsearch {searched}\noptions ndots:5 timeout:1 attempts:2\n"


class Resolver:
    """Answers for `names` while its block lasts."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._datagrams: list[asyncio.DatagramTransport] = []
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transport in self._datagrams:
            transport.close()
        for server in self._servers:
            server.close()
        await end(self._tasks)
        for server in self._servers:
            await server.wait_closed()

    async def listen(self, host: str = "127.0.0.1", port: int = 53) -> int:
        """Answer on an address, by UDP and TCP; 0 is any free port. The result is the port."""
        server = await asyncio.start_server(self._connected, host, port)
        self._servers.append(server)
        chosen: int = server.sockets[0].getsockname()[1]
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), local_addr=(host, chosen))
        self._datagrams.append(transport)
        return chosen

    async def serve(self, stream: socket.socket, datagrams: socket.socket) -> None:
        """Answer on sockets that are bound already, as those of another network are."""
        self._servers.append(await asyncio.start_server(self._connected, sock=stream))
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), sock=datagrams)
        self._datagrams.append(transport)

    def answer(self, data: bytes, limit: int = 0) -> bytes | None:
        """The answer to a query; None to what is no query."""
        try:
            question = message.parse(data)
        except MessageError:
            return None
        if question.name == "localhost":
            entries = [message.Entry("localhost", message.A, "127.0.0.1")] if question.type == message.A else []
            return message.answer(question, message.NO_ERROR, entries)
        return self._named(question, limit)

    def _named(self, question: Question, limit: int) -> bytes:
        result = self._names.look_up(question.name, question.type)
        return message.answer(question, result.code, result.entries, result.extra, limit)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer), name="names over TCP")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(2), "big")
                answer = self.answer(await reader.readexactly(size))
                if answer is None:
                    return
                writer.write(len(answer).to_bytes(2, "big") + answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


class _Datagrams(asyncio.DatagramProtocol):
    """One query, one answer."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # no subclass of it, in spite of its name

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._resolver.answer(data, message.SMALL)
        if answer is not None and self._transport is not None:
            self._transport.sendto(answer, addr)
