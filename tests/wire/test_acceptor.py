"""Listening."""

from __future__ import annotations

import asyncio
import errno
import socket
from typing import Any

import pytest

from konverge.wire import ConnectionPool, Request, Response, Server, TlsOptions

from .certificates import authority
from .support import echo, pool_to
from .test_tls import server_tls


def _names(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    async def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        families = [socket.AF_INET6 if ":" in address else socket.AF_INET for address in addresses]
        return [(family, 1, 6, "", (address, port)) for family, address in zip(families, addresses, strict=True)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)


async def test_addresses_that_this_machine_has_not_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `localhost` is on a machine whose IPv6 is turned off, but still in its hosts file."""
    _names(monkeypatch, "2001:db8::1", "127.0.0.1")
    server = await Server(echo).start("localhost")
    assert [host for host, _ in server.addresses] == ["127.0.0.1"]
    async with pool_to(server) as pool:
        assert (await pool.send(Request("GET", "/"))).status == 200
    await server.close()


async def test_without_any_address_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _names(monkeypatch, "2001:db8::1")
    with pytest.raises(OSError, match=r"cannot listen on here:0: .*; choose another host"):
        await Server(echo).start("here")


async def test_a_port_in_use_is_an_error_and_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        _names(monkeypatch, "127.0.0.2", "127.0.0.1")
        with pytest.raises(OSError, match="choose another port") as caught:
            await Server(echo).start("here", taken.getsockname()[1])
        assert caught.value.errno == errno.EADDRINUSE


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="no IPv6 here")
@pytest.mark.parametrize("secured", [False, True])
async def test_ipv6(secured: bool) -> None:
    seen: list[tuple[str, str]] = []

    async def handler(request: Request) -> Response:
        seen.append((request.headers.get("host"), request.peer.address))
        return Response(200)

    server = await Server(handler).start("::1", ssl=server_tls(["::1"]) if secured else None)
    base = f"{'https' if secured else 'http'}://[0:0::1]:{server.port}"
    async with ConnectionPool(base, tls=TlsOptions(ca_data=authority().pem)) as pool:
        assert (await pool.send(Request("GET", "/"))).status == 200
    await server.close()
    ((host, peer),) = seen
    assert host == f"[0:0::1]:{server.port}"
    assert peer.startswith("::1:")
