"""The places of the database contract on real servers; see tests/operators/nacos/database/contract.py."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from konverge.operators.nacos.database import RealDatabases, Target
from konverge.operators.nacos.database.mysql import lock_name
from konverge.operators.nacos.database.postgres import LOCK
from tests.operators.nacos.database.contract import Place
from tests.real.databases import Server
from tools.control_plane import free_port


class RealPlace(Place):
    """A new database on a server, and a user with no more rights than Nacos needs."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = server.new_database()
        self.databases = RealDatabases()
        self.connector = self.databases._connector
        self.hasher = self.databases._hasher
        self.target = server.target(self.name, f"{self.name}_user", 'user\'s "own" %')

    def sql(self, statement: str) -> str:
        return self.server.sql(statement, self.name)

    def rows(self, statement: str) -> list[list[str]]:
        text = self.sql(statement)
        return [line.split("\t") for line in text.split("\n")] if text else []

    def run_script(self, script: str) -> None:
        """Run it as the user of Nacos, through the engine's own client."""
        raise AssertionError("of the engine")

    def tables(self) -> dict[str, set[str]]:
        tables: dict[str, set[str]] = {}
        for table, column in self.rows(self.columns()):
            tables.setdefault(table, set()).add(column)
        return tables

    def columns(self) -> str:
        raise AssertionError("of the engine")

    def version(self) -> int | None:
        if "nacos_schema_version" not in self.tables():
            return None
        rows = self.rows("SELECT version FROM nacos_schema_version")
        return int(rows[0][0]) if rows else None

    def users(self) -> dict[str, tuple[str, bool]]:
        rows = self.rows("SELECT username, password, enabled FROM users")
        return {name: (password, enabled in ("t", "1")) for name, password, enabled in rows}

    def admins(self) -> set[str]:
        return {name for (name,) in self.rows("SELECT username FROM roles WHERE role = 'ROLE_ADMIN'")}

    def add_user(self, name: str, password_hash: str, *, enabled: bool = True, admin: bool = False) -> None:
        self.sql(f"INSERT INTO users (username, password, enabled) VALUES ('{name}', '{password_hash}', {enabled})")
        if admin:
            self.sql(f"INSERT INTO roles (username, role) VALUES ('{name}', 'ROLE_ADMIN')")

    def drop_table(self, name: str) -> None:
        self.sql(f"DROP TABLE {name}")

    def drop_column(self, table: str, column: str) -> None:
        self.sql(f"ALTER TABLE {table} DROP COLUMN {column}")

    def elsewhere(self) -> Target:
        return msgspec.structs.replace(self.target, port=free_port())


class PostgresPlace(RealPlace):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        password = self.target.password.replace("'", "''")
        server.sql(f"CREATE ROLE {self.target.username} LOGIN PASSWORD '{password}'")
        server.sql(f"ALTER DATABASE {self.name} OWNER TO {self.target.username}")

    def columns(self) -> str:
        return "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'"

    def run_script(self, script: str) -> None:
        self.sql(f"SET ROLE {self.target.username}; {script}")

    def set_read_only(self, on: bool) -> None:
        self.server.sql(f"ALTER DATABASE {self.name} SET default_transaction_read_only = {'on' if on else 'off'}")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        with self.server.session(f"BEGIN; SELECT pg_advisory_xact_lock({LOCK})", self.name):
            yield


class MariadbPlace(RealPlace):
    missing_database = "PermissionDenied"

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        password = self.target.password.replace("'", "''")
        server.sql(f"CREATE USER {self.target.username} IDENTIFIED BY '{password}'")
        server.sql(f"GRANT ALL ON {self.name}.* TO {self.target.username}")

    def columns(self) -> str:
        return f"SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = '{self.name}'"

    def run_script(self, script: str) -> None:
        self.sql(script)  # tables have no owner here

    def set_read_only(self, on: bool) -> None:
        self.server.sql(f"SET GLOBAL read_only = {int(on)}")

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        with self.server.session(f"SELECT GET_LOCK('{lock_name(self.name)}', 5)", self.name):
            yield
