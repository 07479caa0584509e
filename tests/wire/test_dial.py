"""Hosts with several addresses, some of which never answer."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from konverge.wire import ConnectFailed, ConnectionPool, Request
from konverge.wire import dial as dialling

from .support import serving, spin

GET = Request("GET", "/")
SILENT = ("192.0.2.1", "2001:db8::1", "2001:db8::2")


def result(host: str, port: int) -> dialling.Found:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    place = (host, port, 0, 0) if ":" in host else (host, port)
    return (family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, runner: asyncio.Runner) -> dict[str, list[str]]:
    """Names and their addresses, of which those in SILENT swallow whatever is sent there."""
    known: dict[str, list[str]] = {}
    loop: Any = runner.get_loop()
    connect = loop.sock_connect

    async def getaddrinfo(host: str, port: int, **options: Any) -> list[dialling.Found]:
        return [result(address, port) for address in known.get(host, [host])]

    async def sock_connect(sock: socket.socket, place: tuple[Any, ...]) -> None:
        if place[0] in SILENT:
            await asyncio.Event().wait()
        await connect(sock, place)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    monkeypatch.setattr(dialling, "STAGGER", 0.001)
    return known


async def test_a_silent_address_does_not_hold_the_others_up(names: dict[str, list[str]]) -> None:
    names["cluster"] = [*SILENT, "127.0.0.1"]
    async with serving() as server, ConnectionPool(f"http://cluster:{server.port}") as pool:
        assert (await pool.send(GET)).status == 200
        assert server.connections == 1


async def test_one_that_refuses_gives_way_at_once(names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "STAGGER", 1000.0)
    names["cluster"] = ["127.0.0.2", "127.0.0.1"]
    async with serving() as server, ConnectionPool(f"http://cluster:{server.port}") as pool:
        assert (await pool.send(GET)).status == 200


async def test_when_all_refuse_the_first_says_why(names: dict[str, list[str]]) -> None:
    async with serving() as server:
        port = server.port
    names["cluster"] = ["127.0.0.2", "127.0.0.1"]
    async with ConnectionPool(f"http://cluster:{port}") as pool:
        with pytest.raises(ConnectFailed, match=r"refused|Connect call failed"):
            await pool.send(GET)
    names["nowhere"] = []
    async with ConnectionPool(f"http://nowhere:{port}") as pool:
        with pytest.raises(ConnectFailed, match="no address"):
            await pool.send(GET)


async def test_cancellation_at_every_step_leaves_no_socket(names: dict[str, list[str]]) -> None:
    names["cluster"] = [SILENT[0], "127.0.0.1", "127.0.0.1", SILENT[1]]
    async with serving() as server, ConnectionPool(f"http://cluster:{server.port}") as pool:
        for steps in range(30):
            task = asyncio.create_task(pool.send(GET))
            await spin(steps)
            task.cancel()
            await asyncio.wait([task])
            for connection in list(pool._all):
                connection.abort()
        assert (await pool.send(GET)).status == 200
        assert pool._slots + len(pool._all) == pool.limits.connections


def test_families_take_turns() -> None:
    hosts = ["2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1", "192.0.2.1"]
    mixed = [entry[4][0] for entry in dialling._mixed(result(host, 1) for host in hosts)]
    assert mixed == ["2001:db8::1", "192.0.2.1", "2001:db8::2", "2001:db8::3"]
