"""Versions and read-only states of servers that cannot be installed here."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.nacos.database import Target
from konverge.operators.nacos.database.mysql import MysqlSession, lock_name
from konverge.operators.nacos.database.postgres import PostgresSession
from tests.operators.nacos.database.contract import refused


def target(engine: Any) -> Target:
    return Target(engine=engine, host="db", port=1, database="d", username="u", password="a password")


class PostgresConnection:
    def __init__(self, *row: Any) -> None:
        self._row = row

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        return [self._row]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((90624, "9.6.24", False, "off"), "ServerTooOld"),
        ((100023, "10.23", True, "on"), "ReadOnly"),
        ((170002, "17.2", True, "on"), "ReadOnly"),
        ((170002, "17.2", False, "on"), "ReadOnly"),
        ((170002, "17.2", True, "off"), "ReadOnly"),
    ],
)
async def test_postgresql_servers_that_cannot_be_used(row: tuple[Any, ...], reason: str) -> None:
    session = PostgresSession(PostgresConnection(*row), target("postgresql"), 5)
    await refused(session.refuse_unless_writable(), reason, "a password")


async def test_the_oldest_postgresql_server() -> None:
    for number in (99999, 100000):
        session = PostgresSession(PostgresConnection(number, "x", False, "off"), target("postgresql"), 5)
        if number == 100000:
            await session.refuse_unless_writable()
        else:
            assert "10 or newer is needed" in await refused(session.refuse_unless_writable(), "ServerTooOld")


async def test_a_new_postgresql_server() -> None:
    await PostgresSession(
        PostgresConnection(180000, "18.0", False, "off"), target("postgresql"), 5
    ).refuse_unless_writable()


class MysqlConnection:
    def __init__(self, **variables: str) -> None:
        self._variables = variables

    async def call(self, function: Any, *arguments: Any) -> Any:
        return list(self._variables.items())


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        ({"version": "5.6.51", "read_only": "OFF"}, "ServerTooOld"),
        ({"version": "10.1.48-MariaDB", "read_only": "OFF"}, "ServerTooOld"),
        ({"version": "5.5.5-10.1.48-MariaDB", "read_only": "OFF"}, "ServerTooOld"),
        ({"version": "8.4.0", "read_only": "ON", "super_read_only": "OFF"}, "ReadOnly"),
        ({"version": "8.4.0", "read_only": "ON", "super_read_only": "ON"}, "ReadOnly"),
        ({"version": "8.4.0", "read_only": "OFF", "innodb_read_only": "ON"}, "ReadOnly"),
        ({"version": "12.0.1-MariaDB", "read_only": "NO_LOCK_NO_ADMIN"}, "ReadOnly"),
    ],
)
async def test_mysql_servers_that_cannot_be_used(variables: dict[str, str], reason: str) -> None:
    session = MysqlSession(MysqlConnection(**variables), target("mysql"), 5)  # type: ignore[arg-type]
    await refused(session.refuse_unless_writable(), reason, "a password")


@pytest.mark.parametrize("version", ["5.7.44", "8.0.36", "8.4.0-log", "9.1.0", "10.2.44-MariaDB", "11.4.2-MariaDB-ubu"])
async def test_usable_mysql_servers(version: str) -> None:
    connection = MysqlConnection(version=version, read_only="OFF", innodb_read_only="OFF")
    await MysqlSession(connection, target("mysql"), 5).refuse_unless_writable()  # type: ignore[arg-type]


def test_names_of_locks_fit() -> None:
    assert len(lock_name("x" * 255)) <= 64
    assert lock_name("a") != lock_name("b")
