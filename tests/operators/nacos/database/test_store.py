"""The SQL of a store: what is sent for each question and each change, and how rows are read."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.operators.nacos.database import scripts
from konverge.operators.nacos.database.scripts import SENTINEL, Statement
from konverge.operators.nacos.database.store import SqlStore, User

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-05", "N-06")]


class Session:
    """Answers by the beginning of a query, and keeps all statements."""

    engine = "postgresql"
    columns = "COLUMNS ({})"

    def __init__(self, **rows: list[tuple[Any, ...]]) -> None:
        self.rows = rows
        self.sent: list[tuple[str, tuple[Any, ...]]] = []

    async def fetch(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        self.sent.append((query, values))
        return self.rows.get(query.split()[0] + query.partition("FROM ")[2].partition(" ")[0], [])

    async def execute(self, statement: str, *values: Any) -> None:
        self.sent.append((statement, values))

    async def refuse_unless_writable(self) -> None:
        self.sent.append(("writable?", ()))

    def exclusive(self) -> Any:
        return "exclusive"


def store_of(**rows: list[tuple[Any, ...]]) -> tuple[SqlStore, Session]:
    session = Session(**rows)
    return SqlStore(session), session  # type: ignore[arg-type]


async def test_the_layout_is_in_lower_case() -> None:
    store, session = store_of(COLUMNS=[("USERS", "Name"), ("users", "PASSWORD"), ("roles", "role")])
    assert await store.layout() == {"users": frozenset({"name", "password"}), "roles": frozenset({"role"})}
    ((query, tables),) = session.sent
    assert query == f"COLUMNS ({', '.join('?' * len(tables))})"
    assert {"users", SENTINEL, "config_info_aggr", "config_info_gray"} <= set(tables), "of all lines"
    assert list(tables) == sorted(tables)


async def test_the_version_that_is_recorded() -> None:
    store, session = store_of()
    assert await store.recorded() is None
    assert session.sent == [("COLUMNS (?)", (SENTINEL,))]
    store, _ = store_of(COLUMNS=[(SENTINEL, "version")], SELECTnacos_schema_version=[(None,)])
    assert await store.recorded() is None
    store, _ = store_of(COLUMNS=[(SENTINEL, "version")], SELECTnacos_schema_version=[("7",)])
    assert await store.recorded() == 7
    store, session = store_of()
    await store.record(8)
    assert session.sent == [
        ("DELETE FROM nacos_schema_version", ()),
        ("INSERT INTO nacos_schema_version (version) VALUES (?)", (8,)),
    ]


async def test_users() -> None:
    store, _ = store_of()
    assert await store.user("me") is None
    store, session = store_of(SELECTusers=[("hash", 1)], SELECTroles=[(2,)])
    assert await store.user("me") == User("hash", True, True)
    assert [values for _, values in session.sent] == [("me",), ("me", "ROLE_ADMIN")]
    store, _ = store_of(SELECTusers=[("hash", 0)], SELECTroles=[(0,)])
    assert await store.user("me") == User("hash", False, False)


async def test_users_are_written() -> None:
    store, session = store_of(SELECTusers=[(1,)])
    await store.write_user("me", "hash")
    assert session.sent[-1] == ("UPDATE users SET password = ?, enabled = TRUE WHERE username = ?", ("hash", "me"))
    store, session = store_of()
    await store.write_user("me", "hash")
    insert = "INSERT INTO users (password, username, enabled) VALUES (?, ?, TRUE)"
    assert session.sent[-1] == (insert, ("hash", "me"))
    await store.remove_user("me")
    assert [text for text, _ in session.sent[-2:]] == [
        "DELETE FROM roles WHERE username = ?",
        "DELETE FROM users WHERE username = ?",
    ]
    assert [values for _, values in session.sent[-2:]] == [("me",), ("me",)]


@pytest.mark.parametrize("count", [0, 1])
async def test_administrators_are_made_once(count: int) -> None:
    store, session = store_of(SELECTroles=[(count,)])
    await store.make_admin("me")
    insert = ("INSERT INTO roles (username, role) VALUES (?, ?)", ("me", "ROLE_ADMIN"))
    assert (insert in session.sent) == (count == 0)


async def test_the_rest_of_a_store() -> None:
    store, session = store_of()
    await store.refuse_unless_writable()
    assert store.exclusive() == "exclusive"  # type: ignore[comparison-overlap]
    await store.run(Statement("CREATE x", "x"))
    await store.add_default_admin()
    assert [text for text, _ in session.sent] == ["writable?", "CREATE x", *scripts.default_admin()]
