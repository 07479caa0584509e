"""Ways to addresses that only a part of this process knows."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest

from konverge.wire import ConnectionPool, Headers, Request, Response, routes
from tests.wire.support import serving

pytestmark = pytest.mark.spec("S-52")

BLOCK = ipaddress.IPv4Network("203.0.113.0/24")


class Way:
    """Leads to a port of this machine, whatever was asked for."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.asked: list[tuple[str, int]] = []

    async def __call__(self, address: str, port: int) -> socket.socket:
        self.asked.append((address, port))
        sock = socket.socket()
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self._port))
        return sock


async def hello(request: Request) -> Response:
    return Response(200, Headers(), request.headers.get("host").encode())


async def test_clients_go_the_way_that_is_registered() -> None:
    async with serving(hello) as server:
        way = Way(server.port)
        with routes.route(BLOCK, way):
            async with ConnectionPool("http://203.0.113.7:80") as pool:
                answer = await pool.send(Request("GET", "/", Headers()))
            _, writer = await routes.open_connection("203.0.113.8", 9000)
            writer.close()
            await writer.wait_closed()
    assert answer.body == b"203.0.113.7"
    assert way.asked == [("203.0.113.7", 80), ("203.0.113.8", 9000)]


@pytest.mark.spec("S-80")
def test_local_is_loopback_and_what_there_is_a_way_to() -> None:
    with routes.route(BLOCK, Way(1)):
        for address in ("127.0.0.1", "127.255.255.254", "::1", "203.0.113.0", "203.0.113.255"):
            assert routes.is_local(address), address
        for address in (
            "203.0.112.255",
            "203.0.114.0",
            "126.255.255.255",
            "128.0.0.1",
            "::2",
            "0.0.0.0",
            "localhost",
            "",
        ):
            assert not routes.is_local(address), address
    assert not routes.is_local("203.0.113.0")


async def test_other_addresses_and_names_are_the_machines_own() -> None:
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    with routes.route(BLOCK, Way(1)):
        assert [routes.way_to(host) for host in ("203.0.114.1", "localhost", "::1")] == [None, None, None]
        reader, writer = await routes.open_connection(*server.sockets[0].getsockname()[:2])
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert routes.way_to("203.0.113.7") is None
    server.close()
    await server.wait_closed()


def test_blocks_do_not_overlap() -> None:
    with routes.route(BLOCK, Way(1)):
        assert routes.is_taken(ipaddress.IPv4Network("203.0.113.128/25"))
        with pytest.raises(ValueError, match="there is a way"), routes.route(BLOCK, Way(2)):
            pass
        assert routes.way_to("203.0.113.1") is not None
    assert not routes.is_taken(BLOCK)
