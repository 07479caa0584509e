"""`Store`: one open connection to one database; and `SqlStore`, in SQL that both engines understand.

The operations (`operations.py`) use this protocol alone. The simulation keeps a store in memory, so both decide alike
by construction. What differs between the engines is in their sessions (`postgres.py`, `mysql.py`). Statements mark
their values with `?`, which a session replaces by its own form: no value is ever put into the text.
"""

from __future__ import annotations

import functools
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, get_args

import msgspec

from konverge.operators.nacos.database import scripts
from konverge.operators.nacos.database.plan import Layout
from konverge.operators.nacos.database.scripts import SENTINEL, Family, Statement
from konverge.operators.nacos.database.target import Engine, Target


class User(msgspec.Struct, frozen=True):
    """A row of `users`, and whether `roles` makes it an administrator."""

    password_hash: str
    enabled: bool
    admin: bool


class Store(Protocol):
    """Methods raise DatabaseError. Reads see the committed state, or that of the exclusive block they are in."""

    async def refuse_unless_writable(self) -> None:
        """Raises ReadOnly or ServerTooOld."""
        ...

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        """Keeps other operators out of the same database. Changes are kept when block and connection end without error.

        In PostgreSQL nothing is kept otherwise; MySQL keeps what CREATE TABLE made, because it commits by itself.
        """
        ...

    async def layout(self) -> Layout: ...

    async def recorded(self) -> int | None:
        """The version in the sentinel table; None without table or row."""
        ...

    async def record(self, version: int) -> None: ...

    async def run(self, statement: Statement) -> None: ...

    async def add_default_admin(self) -> None:
        """nacos/nacos, if there is no user."""
        ...

    async def user(self, name: str) -> User | None: ...

    async def write_user(self, name: str, password_hash: str) -> None:
        """Enabled, with this hash; created if missing."""
        ...

    async def make_admin(self, name: str) -> None: ...

    async def remove_user(self, name: str) -> None:
        """With all its roles."""
        ...


class Connector(Protocol):
    """Opens stores; the connection is closed at the end of the block, also after an error."""

    def connect(self, target: Target, *, timeout: float) -> AbstractAsyncContextManager[Store]: ...


ROLE = "ROLE_ADMIN"


class Session(Protocol):
    """A connection that runs SQL; its errors are DatabaseErrors."""

    engine: Engine
    columns: str
    """A query for (table, column) of those tables of the current schema whose names are in the values."""

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]: ...

    async def execute(self, statement: str, *values: Any) -> None: ...

    async def refuse_unless_writable(self) -> None: ...

    def exclusive(self) -> AbstractAsyncContextManager[None]: ...


@functools.cache
def known_tables(engine: Engine) -> tuple[str, ...]:
    """The tables of all lines, and the sentinel."""
    schemas = (scripts.schema(engine, family) for family in get_args(Family))
    return tuple(sorted({statement.table for schema in schemas for statement in schema.statements}))


class SqlStore(Store):
    def __init__(self, session: Session) -> None:
        self._session = session

    async def refuse_unless_writable(self) -> None:
        await self._session.refuse_unless_writable()

    def exclusive(self) -> AbstractAsyncContextManager[None]:
        return self._session.exclusive()

    async def layout(self) -> Layout:
        return await self._columns_of(known_tables(self._session.engine))

    async def _columns_of(self, tables: tuple[str, ...]) -> dict[str, frozenset[str]]:
        placeholders = ", ".join("?" for _ in tables)
        rows = await self._session.fetch(self._session.columns.format(placeholders), *tables)
        layout: dict[str, set[str]] = {}
        for table, column in rows:
            layout.setdefault(str(table).lower(), set()).add(str(column).lower())
        return {table: frozenset(columns) for table, columns in layout.items()}

    async def recorded(self) -> int | None:
        if not await self._columns_of((SENTINEL,)):
            return None
        ((version,),) = await self._session.fetch("SELECT MAX(version) FROM nacos_schema_version")
        return None if version is None else int(version)

    async def record(self, version: int) -> None:
        await self._session.execute("DELETE FROM nacos_schema_version")
        await self._session.execute("INSERT INTO nacos_schema_version (version) VALUES (?)", version)

    async def run(self, statement: Statement) -> None:
        await self._session.execute(statement.text)

    async def add_default_admin(self) -> None:
        for text in scripts.default_admin():
            await self._session.execute(text)

    async def user(self, name: str) -> User | None:
        rows = await self._session.fetch("SELECT password, enabled FROM users WHERE username = ?", name)
        if not rows:
            return None
        password_hash, enabled = rows[0]
        return User(str(password_hash), bool(enabled), await self._is_admin(name))

    async def _is_admin(self, name: str) -> bool:
        query = "SELECT COUNT(*) FROM roles WHERE username = ? AND role = ?"
        ((count,),) = await self._session.fetch(query, name, ROLE)
        return bool(count)

    async def write_user(self, name: str, password_hash: str) -> None:
        if await self._session.fetch("SELECT 1 FROM users WHERE username = ?", name):
            statement = "UPDATE users SET password = ?, enabled = TRUE WHERE username = ?"
        else:
            statement = "INSERT INTO users (password, username, enabled) VALUES (?, ?, TRUE)"
        await self._session.execute(statement, password_hash, name)

    async def make_admin(self, name: str) -> None:
        if not await self._is_admin(name):
            await self._session.execute("INSERT INTO roles (username, role) VALUES (?, ?)", name, ROLE)

    async def remove_user(self, name: str) -> None:
        await self._session.execute("DELETE FROM roles WHERE username = ?", name)
        await self._session.execute("DELETE FROM users WHERE username = ?", name)
