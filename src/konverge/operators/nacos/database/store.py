"""One open connection to one database, in the words of this package.

The operations (`operations.py`) are written on this protocol alone. `SqlStore` puts it into SQL, the simulation keeps
it in memory; so both sides decide alike by construction.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec

from konverge.operators.nacos.database.contract import Target
from konverge.operators.nacos.database.plan import Layout
from konverge.operators.nacos.database.scripts import Statement


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
        """No other operator is inside for the same database. Changes are kept when block and connection end well.

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
        """Enabled, with this hash; made if it is not there."""
        ...

    async def make_admin(self, name: str) -> None: ...

    async def remove_user(self, name: str) -> None:
        """With all its roles."""
        ...


class Connector(Protocol):
    """Opens stores; the connection is closed at the end of the block, whatever happened in it."""

    def connect(self, target: Target, *, timeout: float) -> AbstractAsyncContextManager[Store]: ...
