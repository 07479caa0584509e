"""PostgreSQL, by asyncpg.

A connection is one transaction (read committed: each statement sees what others have committed before it). Changes are
made under an advisory lock that ends with the transaction: so it also works through a pooler, and a process that dies
leaves nothing behind. The server gets the time limit as well: a client that gave up must not leave a session there that
waits for a lock.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from konverge.operators.nacos.database import errors
from konverge.operators.nacos.database.drivers import connect_by_mode, driver
from konverge.operators.nacos.database.errors import DatabaseError
from konverge.operators.nacos.database.store import Session, SqlStore
from konverge.operators.nacos.database.target import Engine, Target

OLDEST = 100000
"""server_version_num of PostgreSQL 10: older ones get no fixes, and no test here."""

LOCK = int.from_bytes(b"nacos", "big")
"""The key of the advisory lock; such locks belong to one database, so all operators take the same."""

_CLOSE_TIMEOUT = 1.0

_COLUMNS = """
SELECT c.relname::text, a.attname::text FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND a.attnum > 0 AND NOT a.attisdropped AND c.relname::text IN ({})
"""

_STATE = """
SELECT current_setting('server_version_num')::int, current_setting('server_version'), pg_is_in_recovery(),
current_setting('transaction_read_only')
"""


@asynccontextmanager
async def connect(target: Target, *, timeout: float) -> AsyncIterator[SqlStore]:
    # As libpq does: some servers have no TLS, others let this user in without it only.
    reasons = ("TlsFailed", "AuthenticationFailed")
    connection = await connect_by_mode(target.tls, lambda context: _attempt(target, timeout, context), reasons)
    try:
        session = PostgresSession(connection, target, timeout)
        await session.begin()
        yield SqlStore(session)
        await session.execute("COMMIT")
        await _close(connection)
    except BaseException:
        # No ROLLBACK: a server that does not answer would not answer that either, and it rolls back by itself.
        connection.terminate()
        await asyncio.sleep(0)  # the driver's own tasks see that they were cancelled before the caller goes on
        raise


async def _close(connection: Any) -> None:
    """What was to be done is done: a server that is slow to end the session, or has gone, changes nothing."""
    try:
        await connection.close(timeout=_CLOSE_TIMEOUT)
    except Exception:
        connection.terminate()
        await asyncio.sleep(0)


async def _attempt(target: Target, timeout: float, context: ssl.SSLContext | None) -> Any:
    asyncpg = await driver("asyncpg")
    with _translated(target):
        return await asyncpg.connect(
            host=target.host,
            port=target.port,
            user=target.username,
            password=target.password,
            database=target.database,
            ssl=context or False,
            direct_tls=False,
            target_session_attrs="any",
            timeout=timeout,
            statement_cache_size=0,
            server_settings={"application_name": "konverge"},
        )


@contextmanager
def _translated(target: Target) -> Iterator[None]:
    import asyncpg  # loaded by now

    try:
        yield
    except TimeoutError:
        raise  # an OSError too, but the caller explains it
    except asyncpg.PostgresError as error:
        raise errors.postgres_error(error.sqlstate or "", str(error), target) from error
    except asyncpg.InterfaceError as error:
        raise DatabaseError("Interrupted", f"{target}: the connection was lost; the operator will try again") from error
    except ConnectionError as error:
        # The driver's own errors have no number: the server answered that it does not support TLS.
        raise (
            errors.no_tls(target)
            if error.errno is None and target.tls.mode != "disable"
            else errors.network_error(error, target)
        ) from error
    except OSError as error:
        raise errors.network_error(error, target) from error


class PostgresSession(Session):
    engine: Engine = "postgresql"
    columns = _COLUMNS

    def __init__(self, connection: Any, target: Target, timeout: float) -> None:
        self._connection = connection
        self._target = target
        self._limit = f"{max(int(timeout * 1000), 1)}ms"

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with _translated(self._target):
            return [tuple(row) for row in await self._connection.fetch(_numbered(query), *values)]

    async def execute(self, statement: str, *values: Any) -> None:
        with _translated(self._target):
            await self._connection.execute(_numbered(statement) if values else statement, *values)

    async def refuse_unless_writable(self) -> None:
        ((number, version, standby, read_only),) = await self.fetch(_STATE)
        if number < OLDEST:
            raise errors.too_old(self._target, f"PostgreSQL {version}", str(OLDEST // 10000))
        if standby:
            raise errors.standby(self._target)
        if read_only == "on":
            raise errors.read_only_transactions(self._target)

    async def begin(self) -> None:
        """Settings that end with the transaction, because a pooler may give the session to others after it."""
        await self.execute("BEGIN")
        limits = "SELECT set_config('lock_timeout', ?, true), set_config('statement_timeout', ?, true)"
        await self.fetch(limits, self._limit, self._limit)

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        await self.fetch("SELECT pg_advisory_xact_lock(?)", LOCK)
        yield


def _numbered(text: str) -> str:
    numbers = itertools.count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", text)
