"""A store in SQL that both engines understand; what differs is in the sessions (`postgres.py`, `mysql.py`).

Statements mark their values with `?`; a session puts its own form in the place. No value is ever put into the text.
"""

from __future__ import annotations

import functools
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, get_args

from konverge.operators.nacos.database import scripts
from konverge.operators.nacos.database.contract import Engine
from konverge.operators.nacos.database.lines import Family
from konverge.operators.nacos.database.plan import Layout
from konverge.operators.nacos.database.scripts import SENTINEL, Statement
from konverge.operators.nacos.database.store import Store, User

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
    """Every table that any line needs, and the sentinel."""
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
        marks = ", ".join("?" for _ in tables)
        rows = await self._session.fetch(self._session.columns.format(marks), *tables)
        found: dict[str, set[str]] = {}
        for table, column in rows:
            found.setdefault(str(table).lower(), set()).add(str(column).lower())
        return {table: frozenset(columns) for table, columns in found.items()}

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
