"""Proxies: which one, and how they are spoken to."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from pathlib import Path

import pytest

from konverge.wire import (
    ConnectionPool,
    Proxy,
    ProxyFailed,
    Request,
    TlsOptions,
    proxy_from_environment,
    server_context,
)
from konverge.wire.proxy import bypassed

from .certificates import authority
from .support import Script, read_head, scripted, serving
from .test_tls import server_tls

GET = Request("GET", "/p")


def relay(heads: list[bytes], *, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> Script:
    """A proxy that tunnels."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_head(reader)
        heads.append(head)
        writer.write(answer)
        if not answer.startswith(b"HTTP/1.1 2"):
            return
        host, port = head.split()[1].decode().rsplit(":", 1)
        far_reader, far_writer = await asyncio.open_connection(host, int(port))

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError):
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            target.close()

        try:
            await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))
        finally:
            far_writer.close()
            with contextlib.suppress(ConnectionError):
                await far_writer.wait_closed()

    return script


async def test_a_tunnel_for_https() -> None:
    heads: list[bytes] = []
    async with serving(ssl=server_tls()) as server, scripted(relay(heads)) as port:
        proxy = Proxy.parse(f"http://user:p%40ss@127.0.0.1:{port}")
        tls = TlsOptions(ca_data=authority().pem)
        async with ConnectionPool(f"https://127.0.0.1:{server.port}", tls=tls, proxy=proxy) as pool:
            for body in (b"x", bytes(300_000)):
                assert (await pool.send(Request("POST", "/", body=body))).body == body
        target = b"127.0.0.1:%d" % server.port
        credentials = b64encode(b"user:p@ss")
        assert heads == [
            b"CONNECT %b HTTP/1.1\r\nhost: %b\r\nproxy-authorization: Basic %b\r\n\r\n" % (target, target, credentials)
        ]


async def test_absolute_targets_for_http() -> None:
    async with serving() as server:  # a server accepts absolute targets, so it can stand for the proxy
        proxy = Proxy.parse(f"127.0.0.1:{server.port}")
        async with ConnectionPool("http://cluster.example/base", proxy=proxy) as pool:
            assert (await pool.send(GET)).headers.get("x-target") == "/base/p"


async def test_what_an_http_proxy_is_told() -> None:
    heads: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await read_head(reader))
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with scripted(script) as port:
        proxy = Proxy.parse(f"http://u@127.0.0.1:{port}")
        async with ConnectionPool("http://cluster.example:8080", proxy=proxy, gzip=False) as pool:
            await pool.send(GET)
    assert heads == [
        b"GET http://cluster.example:8080/p HTTP/1.1\r\nhost: cluster.example:8080\r\n"
        b"proxy-authorization: Basic " + b64encode(b"u:") + b"\r\n\r\n"
    ]


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (b"HTTP/1.1 407 Auth\r\n\r\n", "user and password"),
        (b"HTTP/1.1 403 No\r\n\r\n", "NO_PROXY"),
        (b"garbage\r\n\r\n", "did not answer in HTTP"),
        (b"HTTP/1.1 407 Auth\r\ncontent-length: 5\r\n\r\nhello", "user and password"),
        (b"HTTP/1.1 200 OK\r\n\r\nextra", "sent more"),
        (b"x" * 20_000, "not HTTP/1.1"),
        (b"", "closed the connection"),
    ],
)
async def test_proxies_that_refuse(answer: bytes, advice: str) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(answer)

    async with scripted(script) as port:
        proxy = Proxy.parse(f"http://127.0.0.1:{port}")
        async with ConnectionPool("https://cluster.example", proxy=proxy) as pool:
            with pytest.raises(ProxyFailed, match=advice):
                await pool.send(GET)
            assert pool._slots == pool.limits.connections


async def test_cancellation_in_the_tunnel_leaves_nothing() -> None:
    async with serving(ssl=server_tls()) as server, scripted(relay([])) as port:
        proxy = Proxy.parse(f"http://127.0.0.1:{port}")
        tls = TlsOptions(ca_data=authority().pem)
        async with ConnectionPool(f"https://127.0.0.1:{server.port}", tls=tls, proxy=proxy) as pool:
            for steps in range(0, 40, 3):
                task = asyncio.create_task(pool.send(GET))
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            assert (await pool.send(GET)).status == 200
            assert pool._slots + len(pool._all) == pool.limits.connections


@pytest.mark.parametrize("secured", [True, False])
async def test_a_proxy_that_is_reached_over_tls(secured: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.pem").write_bytes(authority("the proxy's").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    outer = server_context(*authority("the proxy's").issue("proxy", ["127.0.0.1"]))
    inner = server_tls() if secured else None
    tls = TlsOptions(ca_data=authority().pem)
    async with serving(ssl=inner) as server, scripted(relay([]), ssl=outer) as port, serving(ssl=outer) as plain:
        proxy = Proxy.parse(f"https://127.0.0.1:{port if secured else plain.port}")
        base = f"{'https' if secured else 'http'}://127.0.0.1:{server.port}"
        async with ConnectionPool(base, tls=tls, proxy=proxy) as pool:
            for body in (b"x", bytes(300_000)):
                assert (await pool.send(Request("POST", "/", body=body))).body == body


async def test_a_proxy_that_does_not_speak_tls() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad\r\n\r\n")

    async with scripted(script) as port:
        proxy = Proxy.parse(f"https://127.0.0.1:{port}")
        async with ConnectionPool("http://cluster.example", proxy=proxy) as pool:
            with pytest.raises(ProxyFailed, match=f"TLS with the proxy 127.0.0.1:{port}"):
                await pool.send(GET)


RULES = [
    ("::ffff:10.1.2.3", "10.1.2.3", True),
    ("10.0.0.0/8", "::ffff:10.1.2.3", True),
    ("", "::ffff:127.0.0.1", True),
    (":6443", "example.com", False),
    (".", "example.com", False),
    ("fd00::1", "fd00:0::1", True),
    ("[fd00::1]:443", "fd00::1", False),
    ("example.com", "example.com", True),
    ("example.com", "api.example.com", True),
    ("example.com", "badexample.com", False),
    (".example.com", "example.com", False),
    (".example.com", "api.example.com", True),
    ("*.example.com", "api.example.com", True),
    ("*", "anything", True),
    ("EXAMPLE.com, other", "Example.COM", True),
    ("example.com:6443", "example.com", True),
    ("example.com:443", "example.com", False),
    ("10.0.0.0/8", "10.1.2.3", True),
    ("10.0.0.0/8", "11.1.2.3", False),
    ("10.0.0.0/8", "ten.example", False),
    ("10.0.0.0/99", "10.1.2.3", False),
    ("10.1.2.3", "10.1.2.3", True),
    ("fd00::/8", "fd00::1", True),
    ("[fd00::1]:6443", "fd00::1", True),
    ("", "localhost", True),
    ("", "127.0.0.9", True),
    ("", "::1", True),
    (",,", "example.com", False),
]


@pytest.mark.parametrize(("rules", "host", "wanted"), RULES)
def test_no_proxy(rules: str, host: str, wanted: bool) -> None:
    assert bypassed(host, 6443, rules) is wanted


def test_the_environment() -> None:
    environ = {"HTTPS_PROXY": "http://secure:1", "http_proxy": "plain:2", "NO_PROXY": "skip.example"}
    assert proxy_from_environment("https://a.example", environ) == Proxy("http", "secure", 1)
    assert proxy_from_environment("http://a.example", environ) == Proxy("http", "plain", 2)
    assert proxy_from_environment("https://skip.example", environ) is None
    assert proxy_from_environment("https://127.0.0.1", environ) is None
    assert proxy_from_environment("https://a.example", {}) is None
    with pytest.raises(ValueError, match="not supported"):
        proxy_from_environment("https://a.example", {"HTTPS_PROXY": "ftp://x:1"})


def test_credentials_are_not_shown() -> None:
    assert "Basic" not in repr(Proxy.parse("http://u:p@h:1"))


@pytest.mark.parametrize("url", ["http://user:secret#more@h:1", "http://u:p@h:secret", "http://u:secret/x@h:1"])
def test_a_url_that_cannot_be_read_is_not_quoted(url: str) -> None:
    with pytest.raises(ValueError, match="port") as caught:
        Proxy.parse(url)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__
