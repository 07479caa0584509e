"""Sessions of MySQL over a driver of our own making, on real sockets: what is sent, what is closed, which errors."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from konverge.operators.nacos.database import Target, Tls, drivers, mysql
from konverge.operators.nacos.database.mysql import MysqlConnector, MysqlSession, _Connection
from tests.operators.nacos.database.contract import refused
from tests.operators.nacos.database.test_drivers import changed

pytestmark = pytest.mark.spec("N-05", "N-06", "N-20")
MYSQL = Target(engine="mysql", host="127.0.0.1", port=1, database="d", username="ü", password="a password")


class Cursor:
    def __init__(self, server: Mysql) -> None:
        self.server = server

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exc: object) -> None: ...

    def execute(self, query: str, values: Any) -> None:
        self.server.statements.append((query, values))
        for start, error in self.server.fails.items():
            if query.startswith(start):
                raise error

    def fetchall(self) -> tuple[tuple[Any, ...], ...]:
        return (self.server.rows.get(self.server.statements[-1][0], (1,)),)


class Mysql:
    """A connection of pymysql."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.statements: list[tuple[str, Any]] = []
        self.fails: dict[str, Exception] = {}
        self.rows: dict[str, tuple[Any, ...]] = {}
        self.ended: list[str] = []
        self.connected: socket.socket | None = None

    def connect(self, connection: socket.socket) -> None:
        assert threading.current_thread() is not threading.main_thread(), "the driver blocks"
        assert connection.getblocking()
        self.connected = connection
        if error := self.fails.get("connect"):
            raise error

    def cursor(self) -> Cursor:
        return Cursor(self)

    def close(self) -> None:
        self.ended.append("close")

    def _force_close(self) -> None:
        self.ended.append("force")
        if self.connected is not None:
            self.connected.close()


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[Target, asyncio.Queue[bytes]]]:
    """A server that only accepts; the queue has what it read until the end of each connection."""
    ends: asyncio.Queue[bytes] = asyncio.Queue()

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends.put_nowait(await reader.read())
        writer.close()

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield changed(MYSQL, port=server.sockets[0].getsockname()[1]), ends
    finally:
        server.close()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Mysql]:
    """The connections that the driver made."""
    connections: list[Mysql] = []

    def connection(**options: Any) -> Mysql:
        client = Mysql(**options)
        connections.append(client)
        return client

    module = SimpleNamespace(connections=SimpleNamespace(Connection=connection))
    monkeypatch.setitem(drivers._loaded, "pymysql", module)  # type: ignore[arg-type]
    return connections


async def test_a_connection_to_mysql(made: list[Mysql]) -> None:
    async with listening() as (target, ends):
        plain = changed(target, tls=Tls(mode="disable"))
        async with MysqlConnector().connect(plain, timeout=7.9):
            assert made[0].ended == []
        await asyncio.wait_for(ends.get(), 10)
    (client,) = made
    limits = "SET SESSION lock_wait_timeout = 7, innodb_lock_wait_timeout = 7"
    assert client.statements == [(limits, None)]
    assert client.ended == ["close", "force"]
    assert client.options == {
        "host": "127.0.0.1",
        "port": target.port,
        "user": "ü".encode(),
        "password": b"a password",
        "database": "d",
        "charset": "utf8mb4",
        "ssl": None,
        "ssl_disabled": True,
        "read_timeout": 7.9,
        "write_timeout": 7.9,
        "defer_connect": True,
    }


async def test_the_name_in_the_certificate_of_mysql(made: list[Mysql]) -> None:
    async with listening() as (target, ends):
        named = changed(target, tls=Tls(mode="require", server_name="db.example"))
        async with MysqlConnector().connect(named, timeout=5):
            pass
        await asyncio.wait_for(ends.get(), 10)
    assert made[0].options["host"] == "db.example"
    assert made[0].options["ssl_disabled"] is False
    assert isinstance(made[0].options["ssl"], ssl.SSLContext)


async def test_an_error_in_between_ends_the_connection(made: list[Mysql]) -> None:
    async with listening() as (target, ends):
        with pytest.raises(LookupError):
            async with MysqlConnector().connect(target, timeout=5):
                raise LookupError
        await asyncio.wait_for(ends.get(), 10)
    assert made[0].ended == ["force"]


async def test_plain_text_where_mysql_has_no_tls(made: list[Mysql], monkeypatch: pytest.MonkeyPatch) -> None:
    connect = Mysql.connect

    def refusing(self: Mysql, connection: socket.socket) -> None:
        connect(self, connection)
        if not self.options["ssl_disabled"]:
            raise pymysql.err.OperationalError(2026, "SSL is required")

    monkeypatch.setattr(Mysql, "connect", refusing)
    async with listening() as (target, ends):
        async with MysqlConnector().connect(target, timeout=5):
            pass
        for _ in range(2):
            await asyncio.wait_for(ends.get(), 10)
        strict = changed(target, tls=Tls(mode="require"))
        connector = MysqlConnector()

        async def work() -> None:
            async with connector.connect(strict, timeout=5):
                pass

        assert "does not speak TLS" in await refused(work(), "TlsFailed")
        await asyncio.wait_for(ends.get(), 10)
    assert [client.options["ssl_disabled"] for client in made] == [False, True, False]
    assert made[2].ended == ["force"], "nothing stays open after a refusal"


async def test_a_call_that_is_cancelled_ends_its_connection(made: list[Mysql]) -> None:
    async with listening() as (target, ends):
        plain = changed(target, tls=Tls(mode="disable"))
        async with MysqlConnector().connect(plain, timeout=5):
            opened = made[0].connected
            assert opened is not None
            connection = _Connection(made[0], opened.dup(), target, ThreadPoolExecutor(1))
            ended = threading.Event()

            def ask(waiting: socket.socket) -> None:
                waiting.recv(1)  # the server does not answer
                ended.set()
                raise ConnectionResetError

            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await connection.call(ask, opened)
            assert ended.is_set(), "no thread keeps waiting for a server"
            connection.abort()
        await asyncio.wait_for(ends.get(), 10)


async def test_the_next_address_of_a_host_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as (target, ends):
        loop = asyncio.get_running_loop()
        dead = ("127.0.0.1", 1)
        answers: list[list[Any]] = []

        async def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
            assert (host, port, options) == ("db", target.port, {"type": socket.SOCK_STREAM})
            return answers[-1]

        monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)

        def entry(address: tuple[str, int]) -> Any:
            return (socket.AF_INET, socket.SOCK_STREAM, 6, "", address)

        named = changed(target, host="db")
        answers.append([entry(dead), entry(("127.0.0.1", target.port))])
        opened = await mysql._open(named, 5)
        assert opened.getblocking()
        assert opened.getpeername()[1] == target.port
        opened.close()
        await asyncio.wait_for(ends.get(), 10)
        answers.append([entry(dead), entry(dead)])
        assert "no address is known" not in await refused(mysql._open(named, 5), "Unreachable")
        answers.append([])
        assert "no address is known" in await refused(mysql._open(named, 5), "Unreachable")


async def test_the_time_of_a_host_is_shared_by_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    tried: list[Any] = []

    async def getaddrinfo(host: str, port: int, **options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", number)) for number in (1, 2)]

    async def sock_connect(connection: socket.socket, address: Any) -> None:
        tried.append((connection, address))
        await asyncio.sleep(60)

    monkeypatch.setattr(loop, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(loop, "sock_connect", sock_connect)
    with pytest.raises(TimeoutError):
        await mysql._open(MYSQL, 0.1)
    assert [address[1] for _, address in tried] == [1, 2]
    assert all(connection.fileno() == -1 for connection, _ in tried), "closed"
    tried.clear()
    work = asyncio.ensure_future(mysql._open(MYSQL, 100))
    await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [connection.fileno() for connection, _ in tried] == [-1]


def session(client: Mysql, timeout: float = 5.0) -> MysqlSession:
    class Connection:
        driver = client

        async def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
            return function(*arguments)

    return MysqlSession(Connection(), MYSQL, timeout)  # type: ignore[arg-type]


async def test_values_of_mysql() -> None:
    client = Mysql()
    work = session(client, 0.5)
    assert await work.fetch("SELECT ?, ?", 1, "a") == [(1,)]
    await work.execute("DELETE FROM t WHERE x LIKE 'a%'")
    await work.begin()
    assert client.statements == [
        ("SELECT %s, %s", (1, "a")),
        ("DELETE FROM t WHERE x LIKE 'a%'", None),
        ("SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1", None),
    ]


async def test_the_lock_of_mysql_is_around_the_transaction() -> None:
    client = Mysql()
    work = session(client, 3.7)
    async with work.exclusive():
        await work.execute("CHANGE")
    name = mysql.lock_name("d")
    assert client.statements == [
        ("SELECT GET_LOCK(%s, %s)", (name, 3)),
        ("START TRANSACTION", None),
        ("CHANGE", None),
        ("COMMIT", None),
        ("SELECT RELEASE_LOCK(%s)", (name,)),
    ]


@pytest.mark.parametrize("locked", [0, None])
async def test_a_lock_that_another_operator_holds(locked: int | None) -> None:
    client = Mysql()
    client.rows["SELECT GET_LOCK(%s, %s)"] = (locked,)

    async def work() -> None:
        async with session(client).exclusive():
            raise AssertionError("nothing is done without the lock")

    assert "another operator" in await refused(work(), "Timeout")


async def test_an_error_under_the_lock_commits_nothing() -> None:
    client = Mysql()
    with pytest.raises(LookupError):
        async with session(client).exclusive():
            raise LookupError
    assert client.statements[-1] == ("START TRANSACTION", None)


class Broken(pymysql.err.OperationalError):  # type: ignore[misc]
    def __init__(self, *args: Any, original: Exception | None = None, cause: Exception | None = None) -> None:
        super().__init__(*args)
        if original is not None:
            self.original_exception = original
        self.__cause__ = cause


REFUSED = ConnectionRefusedError(111, "Connection refused")
VERIFY = ssl.SSLCertVerificationError(1, "bad")
VERIFY.verify_message = "self-signed"


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (Broken(1045, "denied"), "AuthenticationFailed", "denied"),
        (Broken("a text alone"), "Failed", "a text alone"),
        (Broken("a", "b"), "Failed", "'a', 'b'"),
        (Broken(1045, "denied", "more"), "Failed", "denied"),
        (Broken(2003, "cannot connect", original=REFUSED), "Unreachable", "Connection refused"),
        (Broken(2003, "cannot connect", original=ValueError("x")), "Unreachable", "cannot connect"),
        (Broken(2026, "SSL error", cause=VERIFY), "TlsFailed", "self-signed"),
        (Broken(2026, "SSL error", cause=ValueError("x")), "TlsFailed", "does not speak TLS"),
        (Broken(2013, "lost", cause=VERIFY), "Interrupted", "lost"),
        (OSError(113, "no route"), "Unreachable", "no route"),
        (RuntimeError("cryptography is required"), "AuthenticationFailed", "cryptography is required"),
    ],
)
async def test_errors_of_pymysql(error: Exception, reason: str, text: str) -> None:
    first, second = socket.socketpair()
    connection = _Connection(Mysql(), first, changed(MYSQL, tls=Tls(mode="require")), ThreadPoolExecutor(1))

    def work() -> None:
        raise error

    assert text in await refused(connection.call(work), reason, "a password")
    connection.abort()
    assert second.recv(1) == b"", "the connection is shut down"
    second.close()
    connection.abort()


async def test_a_timeout_of_pymysql_is_explained_by_the_caller() -> None:
    first, second = socket.socketpair()
    connection = _Connection(Mysql(), first, MYSQL, ThreadPoolExecutor(1))

    def work() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await connection.call(work)
    connection.abort()
    second.close()
