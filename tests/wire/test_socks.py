"""SOCKS 5."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from konverge.wire import ConnectionPool, Proxy, ProxyFailed, Request, TlsOptions

from .certificates import authority
from .support import Script, scripted, serving, spin
from .test_tls import server_tls

GET = Request("GET", "/p")


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    target.close()


def socks(asked: list[bytes], to: int, *, login: tuple[bytes, bytes] | None = None, bound: bytes = b"") -> Script:
    """A proxy that connects everybody to one port of this machine, whatever they ask for."""
    bound = bound or b"\x01\x7f\x00\x00\x01\x00\x50"

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        assert methods == (b"\x00" if login is None else b"\x00\x02")
        writer.write(b"\x05\x00" if login is None else b"\x05\x02")
        if login is not None:
            user = (await reader.readexactly((await reader.readexactly(2))[1]),)
            given = (*user, await reader.readexactly((await reader.readexactly(1))[0]))
            writer.write(b"\x01\x00" if given == login else b"\x01\x01")
        head = await reader.readexactly(4)
        size = {1: 4, 4: 16}.get(head[3]) or (await reader.readexactly(1))[0]
        asked.append(head + await reader.readexactly(size + 2))
        for byte in b"\x05\x00\x00" + bound:  # in the smallest pieces
            writer.write(bytes([byte]))
            await writer.drain()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
        try:
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
        finally:
            far_writer.close()
            with contextlib.suppress(ConnectionError):
                await far_writer.wait_closed()

    return script


@pytest.mark.parametrize(
    ("host", "kind", "encoded"),
    [
        ("cluster.example", 3, b"cluster.example"),
        ("192.0.2.7", 1, bytes((192, 0, 2, 7))),
        ("[2001:db8::1]", 4, bytes.fromhex("20010db8000000000000000000000001")),
    ],
)
@pytest.mark.parametrize("bound", [b"", b"\x03\x04host\x00\x50", b"\x04" + bytes(18)])
async def test_http_through_socks(host: str, kind: int, encoded: bytes, bound: bytes) -> None:
    asked: list[bytes] = []
    async with serving() as server, scripted(socks(asked, server.port, bound=bound)) as port:
        proxy = Proxy.parse(f"socks5://127.0.0.1:{port}")
        async with ConnectionPool(f"http://{host}:6443", proxy=proxy) as pool:
            for body in (b"x", bytes(300_000)):
                response = await pool.send(Request("POST", "/p", body=body))
                assert (response.headers.get("x-target"), response.body) == ("/p", body)
    assert asked == [bytes((5, 1, 0, kind)) + encoded + (6443).to_bytes(2, "big")]


async def test_https_through_socks_with_a_password() -> None:
    login = (b"user", "pä".encode())
    async with (
        serving(ssl=server_tls(["cluster.example"])) as server,
        scripted(socks([], server.port, login=login)) as port,
    ):
        proxy = Proxy.parse(f"socks5h://user:p%C3%A4@127.0.0.1:{port}")
        tls = TlsOptions(ca_data=authority().pem)
        async with ConnectionPool("https://cluster.example", tls=tls, proxy=proxy) as pool:
            assert (await pool.send(GET)).status == 200


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak SOCKS"),
        (b"\x05\xff", "user and password into its URL"),
        (b"\x05\x02", "user and password into its URL"),
        (b"\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", "the server refused"),
        (b"\x05\x00\x05\x63\x00\x01\x00\x00\x00\x00\x00\x00", "reason 99"),
        (b"\x05\x00\x04\x00\x00\x01", "does not speak SOCKS"),
        (b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00more", "sent more"),
        (b"\x05\x00\x05\x00", "closed the connection"),
        (b"", "closed the connection"),
    ],
)
async def test_proxies_that_refuse(answer: bytes, advice: str) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(answer)

    async with scripted(script) as port:
        proxy = Proxy.parse(f"socks5://127.0.0.1:{port}")
        async with ConnectionPool("http://cluster.example", proxy=proxy) as pool:
            with pytest.raises(ProxyFailed, match=advice):
                await pool.send(GET)
            assert pool._slots == pool.limits.connections


async def test_a_wrong_password() -> None:
    async with scripted(socks([], 1, login=(b"a", b"b"))) as port:
        proxy = Proxy.parse(f"socks5://a:wrong@127.0.0.1:{port}")
        async with ConnectionPool("http://cluster.example", proxy=proxy) as pool:
            with pytest.raises(ProxyFailed, match="check its user and password"):
                await pool.send(GET)


async def test_cancellation_at_every_step_leaves_nothing() -> None:
    async with (
        serving() as server,
        scripted(socks([], server.port)) as port,
        ConnectionPool("http://cluster.example", proxy=Proxy.parse(f"socks5://127.0.0.1:{port}")) as pool,
    ):
        for steps in range(0, 60, 3):
            task = asyncio.create_task(pool.send(GET))
            await spin(steps)
            task.cancel()
            await asyncio.wait([task])
        assert (await pool.send(GET)).status == 200
        assert pool._slots + len(pool._all) == pool.limits.connections


def test_the_default_port() -> None:
    assert Proxy.parse("socks5://h") == Proxy("socks5", "h", 1080)
