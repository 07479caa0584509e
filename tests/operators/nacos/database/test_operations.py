"""`RealDatabases` without a server; the rest is in the real lane."""

from __future__ import annotations

import asyncio
import sys

import pytest

from konverge.operators.nacos.database import Engine, RealDatabases, Target, Tls, drivers
from tests.operators.nacos.database.contract import refused

DRIVERS: list[tuple[Engine, str]] = [("postgresql", "asyncpg"), ("mysql", "pymysql")]


def missing(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.delitem(drivers._loaded, package, raising=False)
    monkeypatch.setitem(sys.modules, package, None)


def target(engine: Engine, port: int, host: str = "127.0.0.1", mode: str = "disable", ca: str = "") -> Target:
    tls = Tls(mode=mode, ca=ca)  # type: ignore[arg-type]
    return Target(engine=engine, host=host, port=port, database="d", username="u", password="a password", tls=tls)


@pytest.mark.parametrize(("engine", "package"), DRIVERS)
async def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch, engine: Engine, package: str) -> None:
    missing(monkeypatch, package)
    message = await refused(RealDatabases().check(target(engine, 1), timeout=5), "DriverMissing")
    assert "konverge[nacos]" in message


@pytest.mark.parametrize(("engine", "package"), DRIVERS)
async def test_a_server_that_says_nothing(engine: Engine, package: str) -> None:
    accepted: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda reader, writer: accepted.append(writer), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await refused(RealDatabases().check(target(engine, port), timeout=0.2), "Timeout", "a password")
    await _end(server, accepted)


@pytest.mark.parametrize("mode", ["disable", "prefer", "require"])
@pytest.mark.parametrize("answer", [b"", b"\0", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\xff" * 4096, b"E", b"S", b"N"])
@pytest.mark.parametrize(("engine", "package"), DRIVERS)
async def test_something_else_listens_there(engine: Engine, package: str, answer: bytes, mode: str) -> None:
    accepted: list[asyncio.StreamWriter] = []

    def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(writer)
        writer.write(answer)
        writer.write_eof()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reasons = ("Unreachable", "Interrupted", "TlsFailed", "Failed", "Timeout")
    with pytest.raises(Exception) as caught:
        await RealDatabases().check(target(engine, port, mode=mode), timeout=2)
    assert getattr(caught.value, "reason", caught.value) in reasons
    assert "a password" not in str(caught.value)
    await _end(server, accepted)


@pytest.mark.parametrize(("engine", "package"), DRIVERS)
async def test_an_invalid_ca_is_refused(engine: Engine, package: str) -> None:
    message = await refused(
        RealDatabases().check(target(engine, 1, mode="verify-full", ca="not a certificate"), timeout=5), "InvalidTarget"
    )
    assert "PEM" in message


@pytest.mark.parametrize(("engine", "package"), DRIVERS)
async def test_a_host_without_address(engine: Engine, package: str) -> None:
    await refused(RealDatabases().check(target(engine, 1, host="no-such-host.invalid"), timeout=30), "Unreachable")


async def _end(server: asyncio.Server, accepted: list[asyncio.StreamWriter]) -> None:
    """Connections are accepted in their order: when one of our own is, no other is still on its way."""
    _, own = await asyncio.open_connection(*server.sockets[0].getsockname())
    while not any(writer.get_extra_info("peername") == own.get_extra_info("sockname") for writer in accepted):
        await asyncio.sleep(0)
    server.close()
    for writer in (own, *accepted):
        writer.transport.abort()
    await server.wait_closed()
