"""The place of the contract, on a simulated server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from konverge.operators.nacos.database import Engine, Target
from konverge.sim.databases import Content, SimulatedDatabases
from tests.operators.nacos.database.contract import Place

PORTS: dict[Engine, int] = {"postgresql": 5432, "mysql": 3306}


class SimulatedPlace(Place):
    def __init__(self, engine: Engine) -> None:
        self.databases = self.simulated = SimulatedDatabases()
        self.connector = self.simulated._connector
        self.hasher = self.simulated._hasher
        self.server = self.simulated.add_server("db.example", PORTS[engine], engine)
        self.database = self.server.add("nacos", "operator", "it's secret")
        self.target = Target(
            engine=engine,
            host="db.example",
            port=PORTS[engine],
            database="nacos",
            username="operator",
            password="it's secret",
        )

    @property
    def content(self) -> Content:
        return self.database.content

    def tables(self) -> dict[str, set[str]]:
        return {name: set(columns) for name, columns in self.content.tables.items()}

    def version(self) -> int | None:
        return self.content.version

    def users(self) -> dict[str, tuple[str, bool]]:
        return dict(self.content.users)

    def admins(self) -> set[str]:
        return set(self.content.admins)

    def add_user(self, name: str, password_hash: str, *, enabled: bool = True, admin: bool = False) -> None:
        self.content.users[name] = (password_hash, enabled)
        if admin:
            self.content.admins.add(name)

    def drop_table(self, name: str) -> None:
        del self.content.tables[name]
        if name == "nacos_schema_version":
            self.content.version = None

    def drop_column(self, table: str, column: str) -> None:
        self.content.tables[table] -= {column}

    def set_read_only(self, on: bool) -> None:
        self.server.read_only = "setting" if on else ""

    @asynccontextmanager
    async def held(self) -> AsyncIterator[None]:
        async with self.database.lock:
            yield

    def elsewhere(self) -> Target:
        self.simulated.add_server("db.example", 1, self.target.engine).down = True
        return msgspec.structs.replace(self.target, port=1)
