"""WebSockets over a real socket: handshake, messages, pings, the end."""

from __future__ import annotations

import asyncio

import pytest

from konverge.wire import Request, Response, ServerLimits
from konverge.wire.websocket import HandshakeError, WebSocket, accept, choose
from konverge.wire.websocket_frames import Opcode, close_payload
from tests.wire.support import raw_client, serving, spin, until
from tests.wire.websocket_client import KEY, frame, handshake, talking


async def echo(socket: WebSocket) -> None:
    while (data := await socket.receive()) is not None:
        await socket.send(data)


async def handler(request: Request) -> Response:
    try:
        return accept(request, choose(request, ("five", "four")), echo, limit=100_000)
    except HandshakeError as error:
        return Response(error.status, body=str(error).encode())


async def test_the_handshake_answers_the_key_of_the_rfc_and_picks_the_clients_first_choice() -> None:
    async with serving(handler) as server, talking(server.port, "/", "six", "four", "five") as client:
        assert client.status == 101
        head = client.head.lower()
        assert "sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo=" in head
        assert "sec-websocket-protocol: four" in head
        assert "connection: upgrade" in head
        assert "content-length" not in head


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        ("sec-websocket-version: 13", "sec-websocket-version: 8", 426),
        (KEY, "c2hvcnQ=", 400),
        (KEY, "not base64!", 400),
        ("upgrade: websocket", "upgrade: h2c", 400),
        ("GET", "POST", 400),
    ],
)
async def test_what_is_no_handshake_is_refused(old: str, new: str, status: int) -> None:
    async with serving(handler) as server, raw_client(server) as client:
        client.write(handshake("/").replace(old.encode(), new.encode()))
        assert (await client.answer())[0] == status


async def test_messages_of_all_sizes_come_back() -> None:
    async with serving(handler) as server, talking(server.port, "/") as client:
        for size in (0, 1, 125, 126, 65_535, 65_536, 100_000):
            client.send(b"x" * size)
            assert await client.receive() == (Opcode.BINARY, b"x" * size)


async def test_bytes_sent_with_the_handshake_are_not_lost() -> None:
    async with serving(handler) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(handshake("/") + frame(Opcode.TEXT, b"early"))
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(7) == b"\x82\x05early"
        writer.close()
        await writer.wait_closed()


async def test_a_ping_is_answered_between_the_frames_of_a_message() -> None:
    async with serving(handler) as server, talking(server.port, "/") as client:
        client.writer.write(frame(Opcode.BINARY, b"a", final=False))
        client.send(b"still there?", Opcode.PING)
        client.writer.write(frame(Opcode.CONTINUATION, b"b"))
        assert await client.receive() == (Opcode.PONG, b"still there?")
        assert await client.receive() == (Opcode.BINARY, b"ab")


async def test_a_close_is_answered_and_the_connection_ends() -> None:
    async with serving(handler) as server, talking(server.port, "/") as client:
        client.send(close_payload(1000, "bye"), Opcode.CLOSE)
        assert await client.receive() == (Opcode.CLOSE, close_payload(1000))
        assert await client.reader.read() == b""


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"\x82\x01x", 1002),
        (frame(Opcode.BINARY, b"x" * 100_001), 1009),
        (frame(Opcode.TEXT, b"\xff"), 1007),
        (frame(3, b""), 1002),
    ],
)
async def test_a_peer_that_breaks_the_protocol_is_told_which_way(bad: bytes, code: int) -> None:
    async with serving(handler) as server, talking(server.port, "/") as client:
        client.writer.write(bad)
        opcode, payload = await client.receive()
        assert opcode is Opcode.CLOSE
        assert int.from_bytes(payload[:2], "big") == code


async def test_the_server_says_good_bye_first_when_its_side_is_done() -> None:
    async def greet(socket: WebSocket) -> None:
        await socket.send(b"hello")

    async def handler(request: Request) -> Response:
        return accept(request, "", greet)

    async with serving(handler) as server, talking(server.port, "/") as client:
        assert await client.receive() == (Opcode.BINARY, b"hello")
        assert (await client.receive())[0] is Opcode.CLOSE
        client.send(close_payload(1000), Opcode.CLOSE)
        assert await client.reader.read() == b""


async def test_a_server_that_closes_does_not_wait_for_open_sockets() -> None:
    async with serving(handler) as server, talking(server.port, "/") as client:
        closing = asyncio.create_task(server.close(grace=30))
        assert (await client.receive())[0] is Opcode.CLOSE
        client.writer.close()
        await closing


async def test_a_failing_conversation_is_cut_off_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(socket: WebSocket) -> None:
        raise ValueError("what happened")

    async def handler(request: Request) -> Response:
        return accept(request, "", fail)

    async with serving(handler) as server, talking(server.port, "/x?token=t") as client:
        assert (await client.receive())[0] is Opcode.CLOSE
        client.send(close_payload(1000), Opcode.CLOSE)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await client.receive()
    assert "what happened" in caplog.text
    assert "token" not in caplog.text


async def test_a_slow_reader_holds_the_sender_and_a_lost_one_cancels_it() -> None:
    ended = asyncio.Event()

    async def flood(socket: WebSocket) -> None:
        try:
            while True:
                await socket.send(b"x" * 60_000)
        finally:
            ended.set()

    async def handler(request: Request) -> Response:
        return accept(request, "", flood)

    async with serving(handler, limits=ServerLimits(write_buffer=1000)) as server:
        async with talking(server.port, "/") as client:
            assert (await client.receive())[0] is Opcode.BINARY
        await ended.wait()


class Wall:
    """The connection to a peer that sends pings without end and takes nothing."""

    def __init__(self) -> None:
        self.unread = 0
        self.written = 0
        self.closed = False
        self.gone = asyncio.Event()

    async def read(self) -> bytes:
        self.unread += 1
        assert self.unread < 100, "read on and on while nothing was taken"
        return frame(Opcode.PING, b"x" * 100) * 100

    def write(self, data: bytes) -> None:
        self.written += len(data)

    async def drain(self) -> None:
        if self.written > 50_000:
            await self.gone.wait()
            raise ConnectionResetError


async def test_pongs_that_nobody_takes_do_not_pile_up() -> None:
    wall = Wall()
    receiving = asyncio.create_task(WebSocket(wall).receive())
    await spin(300)
    assert not receiving.done()
    assert wall.written < 100_000
    wall.gone.set()
    assert await receiving is None


async def test_a_client_that_has_closed_its_side_before_the_upgrade_is_granted() -> None:
    gate = asyncio.Event()
    heard: list[bytes | None] = []

    async def talk(socket: WebSocket) -> None:
        heard.extend([await socket.receive(), await socket.receive()])

    async def late(request: Request) -> Response:
        await gate.wait()
        return accept(request, "", talk)

    async with serving(late) as server, raw_client(server) as client:
        client.write(handshake("/") + frame(Opcode.BINARY, b"all I have to say"))
        client.writer.write_eof()
        await until(lambda: any(connection._half_closed for connection in server._connections))
        gate.set()
        assert (await client.rest()).startswith(b"HTTP/1.1 101")
        await until(lambda: server.connections == 0)
    assert heard == [b"all I have to say", None]
