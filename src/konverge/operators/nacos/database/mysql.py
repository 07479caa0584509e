"""MySQL and MariaDB, by PyMySQL on worker threads.

The event loop opens the socket and then hands it to the driver; a second handle on it stays here. When the call is
cancelled (its time is over), that handle shuts the connection down, the call in the thread ends at once, and no thread
keeps waiting for a server.

These engines commit every CREATE TABLE by themselves, so the schema is not created in one transaction: the sentinel is
written last, and an attempt that ended half-way is completed by the next. A named lock of the server keeps two
operators apart; it ends with the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

from konverge.operators.nacos.database import errors
from konverge.operators.nacos.database.drivers import connect_by_mode, driver
from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.store import Session, SqlStore
from konverge.operators.nacos.database.target import Engine, Target

T = TypeVar("T")

OLDEST = {"MySQL": (5, 7), "MariaDB": (10, 2)}
"""Older ones cannot index the columns of Nacos in utf8mb4."""

THREADS = 16

_TLS_FAILED = 2026
_COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = DATABASE() AND table_name IN ({})
"""
_STATE = """
SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'read_only', 'super_read_only', 'innodb_read_only')
"""
_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)")


class MysqlConnector:
    """Owns the threads: each runs one call at a time, further calls wait within their own time limit."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="konverge-mysql")

    @asynccontextmanager
    async def connect(self, target: Target, *, timeout: float) -> AsyncIterator[SqlStore]:
        connection = await connect_by_mode(
            target.tls, lambda context: self._attempt(target, timeout, context), ("TlsFailed",)
        )
        try:
            session = MysqlSession(connection, target, timeout)
            await session.begin()
            yield SqlStore(session)
            await connection.call(connection.driver.close)
        finally:
            connection.abort()

    async def _attempt(self, target: Target, timeout: float, context: ssl.SSLContext | None) -> _Connection:
        pymysql = await driver("pymysql")
        client = pymysql.connections.Connection(
            host=target.tls.server_name or target.host,
            port=target.port,
            user=target.username.encode(),
            password=target.password.encode(),
            database=target.database,
            charset="utf8mb4",
            ssl=context,
            ssl_disabled=context is None,
            read_timeout=timeout,
            write_timeout=timeout,
            defer_connect=True,
        )
        opened = await _open(target, timeout)
        connection = _Connection(client, opened.dup(), target, self._threads)
        try:
            await connection.call(client.connect, opened)
        except BaseException:
            opened.close()
            connection.abort()
            raise
        return connection


async def _open(target: Target, timeout: float) -> socket.socket:
    """A connected socket, in blocking mode; each address of the host gets its share of the time."""
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        for number, (family, kind, protocol, _, address) in enumerate(addresses, 1):
            connection = socket.socket(family, kind, protocol)
            try:
                connection.setblocking(False)
                async with asyncio.timeout(timeout / len(addresses)):
                    await loop.sock_connect(connection, address)
                connection.setblocking(True)
                return connection
            except OSError:
                connection.close()
                if number == len(addresses):
                    raise
            except BaseException:
                connection.close()
                raise
    except TimeoutError:
        raise
    except OSError as error:
        raise errors.network_error(error, target) from error
    raise DatabaseError("Unreachable", f"{target}: no address is known for the host: check its name, and DNS")


class _Connection:
    """The driver's connection, and the handle that ends whatever it is waiting for."""

    def __init__(self, driver: Any, handle: socket.socket, target: Target, threads: ThreadPoolExecutor) -> None:
        self.driver = driver
        self._handle = handle
        self._target = target
        self._threads = threads

    async def call(self, function: Callable[..., T], *arguments: Any) -> T:
        work = asyncio.get_running_loop().run_in_executor(self._threads, functools.partial(function, *arguments))
        try:
            with _translated(self._target):
                return await asyncio.shield(work)
        except asyncio.CancelledError:
            self._shut_down()
            await asyncio.wait([work])
            work.exception()  # that the connection broke is no news: we closed it
            raise

    def _shut_down(self) -> None:
        with contextlib.suppress(OSError):
            self._handle.shutdown(socket.SHUT_RDWR)

    def abort(self) -> None:
        """Close without notifying the server; a connection that is closed already stays so."""
        self._shut_down()
        self._handle.close()
        with contextlib.suppress(OSError):
            self.driver._force_close()


@contextmanager
def _translated(target: Target) -> Iterator[None]:
    import pymysql  # loaded by now

    try:
        yield
    except TimeoutError:
        raise
    except pymysql.err.MySQLError as error:
        raise _error(error, target) from error
    except OSError as error:
        raise errors.network_error(error, target) from error
    except RuntimeError as error:
        # An authentication plugin that needs a package of its own.
        raise errors.mysql_error(2059, str(error), target) from error


def _error(error: Exception, target: Target) -> DatabaseError:
    number, text = _number_and_text(error)
    original = getattr(error, "original_exception", None)
    if isinstance(original, OSError):
        return errors.network_error(original, target)
    if number == _TLS_FAILED and isinstance(error.__cause__, ssl.SSLError):
        return errors.network_error(error.__cause__, target)
    if number == _TLS_FAILED:
        return errors.no_tls(target)
    return errors.mysql_error(number, text, target)


def _number_and_text(error: Exception) -> tuple[int, str]:
    """Some of the driver's errors have a text alone."""
    if len(error.args) == 2 and isinstance(error.args[0], int):
        return error.args[0], str(error.args[1])
    return 0, str(error)


class MysqlSession(Session):
    engine: Engine = "mysql"
    columns = _COLUMNS

    def __init__(self, connection: _Connection, target: Target, timeout: float) -> None:
        self._connection = connection
        self._target = target
        self._seconds = max(int(timeout), 1)

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return await self._connection.call(self._rows, query.replace("?", "%s"), values)

    async def execute(self, statement: str, *values: Any) -> None:
        await self.fetch(statement, *values)

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        with self._connection.driver.cursor() as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    async def begin(self) -> None:
        """The server does not notice that a client which waits for a lock has gone: it must not wait for long."""
        limits = f"SET SESSION lock_wait_timeout = {self._seconds}, innodb_lock_wait_timeout = {self._seconds}"
        await self.execute(limits)

    async def refuse_unless_writable(self) -> None:
        state = {str(name).lower(): str(value) for name, value in await self.fetch(_STATE)}
        _refuse_old(state.get("version", ""), self._target)
        closed = [name for name in ("super_read_only", "read_only", "innodb_read_only") if _on(state.get(name, "OFF"))]
        if closed:
            raise errors.read_only_server(self._target, closed[0])

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        name = lock_name(self._target.database)
        ((locked,),) = await self.fetch("SELECT GET_LOCK(?, ?)", name, self._seconds)
        if locked != 1:
            raise errors.occupied(self._target)
        # An error ends the connection, and with it both the transaction and the lock.
        await self.execute("START TRANSACTION")
        yield
        await self.execute("COMMIT")
        await self.fetch("SELECT RELEASE_LOCK(?)", name)


def lock_name(database: str) -> str:
    """Names of locks are shared by all databases of a server, and have 64 characters at most."""
    return f"konverge-nacos-{hashlib.sha256(database.encode()).hexdigest()[:32]}"


def _on(value: str) -> bool:
    return value.upper() not in ("OFF", "0", "")


def _refuse_old(version: str, target: Target) -> None:
    product = "MariaDB" if "mariadb" in version.lower() else "MySQL"
    match = _VERSION.match(version)
    if match and (int(match[1]), int(match[2])) < OLDEST[product]:
        raise errors.too_old(target, f"{product} {version}", ".".join(map(str, OLDEST[product])))
