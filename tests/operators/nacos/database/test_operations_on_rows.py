"""What the operator does to a database, step by step, on a store that keeps what was done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from konverge.operators.nacos.database import DatabaseError, Databases, Target
from konverge.operators.nacos.database.operations import AdminOutcome, SchemaOutcome
from konverge.operators.nacos.database.passwords import Hasher
from konverge.operators.nacos.database.plan import decide
from konverge.operators.nacos.database.scripts import SENTINEL, Schema, Statement, schema
from konverge.operators.nacos.database.store import Connector, Store, User
from tests.operators.nacos.database.contract import HASH, OTHER_HASH, refused

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-05", "N-06")]
TARGET = Target(engine="postgresql", host="h", port=1, database="d", username="u", password="p")
MADE = {SENTINEL: frozenset({"version", "updated_at"})}


def wanted() -> Schema:
    return schema("postgresql", "since-2.5")


def whole() -> dict[str, frozenset[str]]:
    """All tables of Nacos, and not the operator's own."""
    return wanted().needs()


class Rows(Store):
    """A store that keeps in `done` what was done, in order."""

    def __init__(self, layout: dict[str, frozenset[str]] | None = None, recorded: int | None = None) -> None:
        self.tables = layout or {}
        self.version = recorded
        self.users: dict[str, User] = {}
        self.done: list[str] = []
        self.other: Any = None
        """Another operator, who acts before this one gets the lock."""

    async def refuse_unless_writable(self) -> None:
        self.done.append("check")

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        if self.other is not None:
            self.other()
        self.done.append("lock")
        yield
        self.done.append("unlock")

    async def layout(self) -> dict[str, frozenset[str]]:
        return dict(self.tables)

    async def recorded(self) -> int | None:
        return self.version

    async def record(self, version: int) -> None:
        self.done.append(f"record {version}")
        self.version = version

    async def run(self, statement: Statement) -> None:
        self.done.append("run")
        self.tables[statement.table] = self.tables.get(statement.table, frozenset()) | statement.columns

    async def add_default_admin(self) -> None:
        self.done.append("default admin")

    async def user(self, name: str) -> User | None:
        assert name, "no user without a name is looked for"
        return self.users.get(name)

    async def write_user(self, name: str, password_hash: str) -> None:
        self.done.append(f"write {name} {password_hash}")

    async def make_admin(self, name: str) -> None:
        self.done.append(f"admin {name}")

    async def remove_user(self, name: str) -> None:
        self.done.append(f"remove {name}")


class Plain(Hasher):
    async def hash(self, password: str) -> str:
        return f"hash of {password}"

    async def matches(self, password: str, hashed: str) -> bool:
        return hashed == f"hash of {password}"


class Given(Connector):
    def __init__(self, store: Store) -> None:
        self._store = store
        self.timeouts: list[float] = []

    def connect(self, target: Target, *, timeout: float) -> AbstractAsyncContextManager[Store]:
        self.timeouts.append(timeout)

        @asynccontextmanager
        async def opened() -> AsyncIterator[Store]:
            yield self._store

        return opened()


def databases(store: Store) -> Databases:
    return Databases(Given(store), Plain())


async def ensure(store: Rows, **options: Any) -> SchemaOutcome:
    values: dict[str, Any] = {"line": "3.0", "policy": "IfNotPresent", "schema_version": 2, "timeout": 5.0}
    return await databases(store).ensure_schema(TARGET, **(values | options))


async def rotate(store: Rows, username: str = "nacos", **options: Any) -> AdminOutcome:
    return await databases(store).rotate_admin(TARGET, username=username, timeout=5.0, **options)


# ------------------------------------------------------------------ the schema


async def test_an_empty_database_gets_the_schema_under_the_lock() -> None:
    store = Rows()
    outcome = await ensure(store)
    assert outcome == SchemaOutcome(performed=True, version=2, message="the schema was created")
    assert store.done[:2] == ["check", "lock"]
    assert store.done[-2:] == ["record 2", "unlock"], "the version is written last"
    assert set(store.done[2:-2]) == {"run"}
    assert set(whole()) <= set(store.tables)
    assert await ensure(store) == SchemaOutcome(performed=False, version=2, message="schema version 2 is in place")
    assert store.done[-1] == "check", "no lock where there is nothing to do"


async def test_the_default_user_comes_with_its_table_only() -> None:
    store = Rows()
    await ensure(store, default_admin=True)
    assert store.done[-3:] == ["default admin", "record 2", "unlock"]
    store = Rows({"users": whole()["users"]})
    await ensure(store, default_admin=True)
    assert "default admin" not in store.done
    store = Rows()
    await ensure(store)
    assert "default admin" not in store.done


async def test_another_operator_was_faster() -> None:
    store = Rows()
    store.other = lambda: store.tables.update(whole() | MADE)
    store.version = 2
    outcome = await ensure(store)
    assert outcome == SchemaOutcome(performed=False, version=2, message="schema version 2 is in place")
    assert store.done == ["check", "lock", "unlock"]


async def test_the_line_decides_which_tables() -> None:
    old = Rows()
    await ensure(old, line="2.4")
    assert "config_info_aggr" in old.tables
    assert "config_info_aggr" not in whole()


# ------------------------------------------------------------------ the administrator


async def test_a_new_administrator() -> None:
    store = Rows()
    outcome = await rotate(store, password="word")
    assert outcome == AdminOutcome(performed=True, message="nacos is the administrator with the new password")
    assert store.done == ["check", "lock", "write nacos hash of word", "admin nacos", "unlock"]
    store = Rows()
    await rotate(store, password_hash=HASH)
    assert f"write nacos {HASH}" in store.done


async def test_a_former_administrator_is_removed() -> None:
    store = Rows()
    outcome = await rotate(store, "boss", password="word", previous="nacos")
    assert store.done[-3:] == ["admin boss", "remove nacos", "unlock"]
    assert outcome.message.endswith("; the former administrator nacos was removed")
    store = Rows()
    await rotate(store, password="word", previous="nacos")
    assert "remove nacos" not in store.done, "the same user"


@pytest.mark.parametrize(
    ("user", "given", "right"),
    [
        (User("hash of word", True, True), {"password": "word"}, True),
        (User("hash of word", True, True), {"password": "other"}, False),
        (User("hash of word", False, True), {"password": "word"}, False),
        (User("hash of word", True, False), {"password": "word"}, False),
        (User(HASH, True, True), {"password_hash": HASH}, True),
        (User(HASH, True, True), {"password_hash": OTHER_HASH}, False),
    ],
)
async def test_rows_that_are_right_are_left_alone(user: User, given: dict[str, str], right: bool) -> None:
    store = Rows()
    store.users["nacos"] = user
    outcome = await rotate(store, **given)
    assert outcome.performed is not right
    assert (store.done == ["check"]) == right
    if right:
        assert outcome.message == "nacos is the administrator already"


async def test_a_former_administrator_who_is_still_there() -> None:
    store = Rows()
    store.users["boss"] = User("hash of word", True, True)
    assert not (await rotate(store, "boss", password="word", previous="nacos")).performed
    store.users["nacos"] = User("x", True, True)
    assert (await rotate(store, "boss", password="word", previous="nacos")).performed
    assert "remove nacos" in store.done


async def test_of_two_operators_the_second_keeps_the_hash_of_the_first() -> None:
    store = Rows()
    store.other = lambda: store.users.update(nacos=User("hash of word", True, True))
    outcome = await rotate(store, password="word")
    assert not outcome.performed
    assert store.done == ["check", "lock", "unlock"]


@pytest.mark.parametrize(
    ("username", "given"),
    [
        ("", {"password": "word"}),
        ("x" * 51, {"password": "word"}),
        ("a\0b", {"password": "word"}),
        ("nacos", {}),
        ("nacos", {"password": "word", "password_hash": HASH}),
        ("nacos", {"password": "x" * 73}),
        ("nacos", {"password": "é" * 37}),
        ("nacos", {"password": "a\0b"}),
        ("nacos", {"password_hash": "no hash"}),
        ("nacos", {"password_hash": HASH.replace("$10$", "$16$")}),
    ],
)
async def test_credentials_that_cannot_be(username: str, given: dict[str, str]) -> None:
    store = Rows()
    await refused(rotate(store, username, **given), "InvalidCredentials")
    assert store.done == []


@pytest.mark.parametrize(
    ("username", "given"),
    [
        ("x" * 50, {"password": "word"}),
        ("nacos", {"password": "x" * 72}),
        ("nacos", {"password_hash": HASH.replace("$10$", "$15$")}),
    ],
)
async def test_credentials_at_their_limits(username: str, given: dict[str, str]) -> None:
    assert (await rotate(Rows(), username, **given)).performed


async def test_what_is_missing_or_too_much_is_said() -> None:
    assert (await refused(rotate(Rows()), "InvalidCredentials")).endswith("the Secret has neither")
    both = rotate(Rows(), password="word", password_hash=HASH)
    assert (await refused(both, "InvalidCredentials")).endswith("the Secret has both")


# ------------------------------------------------------------------ targets and time


@pytest.mark.parametrize(
    ("field", "value", "good"),
    [
        ("host", "", False),
        ("database", "", False),
        ("username", "", False),
        ("password", "", True),
        ("host", "h" * 255, True),
        ("host", "h" * 256, False),
        ("database", "d\0", False),
        ("username", "\ud800", False),
        ("password", "p" * 4096, True),
        ("password", "p" * 4097, False),
        ("port", 0, False),
        ("port", 65535, True),
        ("port", 65536, False),
    ],
)
async def test_targets_that_no_server_could_be(field: str, value: Any, good: bool) -> None:
    store = Rows()
    fields = {name: getattr(TARGET, name) for name in TARGET.__struct_fields__}
    work = databases(store).check(Target(**(fields | {field: value})), timeout=5.0)
    if good:
        await work
        assert store.done == ["check"]
        return
    message = await refused(work, "InvalidTarget")
    assert field in message
    assert store.done == []


async def test_a_call_has_its_time() -> None:
    class Slow(Rows):
        async def refuse_unless_writable(self) -> None:
            await asyncio.sleep(10)

    connector = Given(Slow())
    began = asyncio.get_running_loop().time()
    message = await refused(Databases(connector, Plain()).check(TARGET, timeout=2.5), "Timeout")
    assert asyncio.get_running_loop().time() - began == 2.5
    assert "did not finish within 2.5 s" in message
    assert connector.timeouts == [2.5], "the server gets the limit too"


# ------------------------------------------------------------------ plans


@pytest.mark.parametrize(
    ("layout", "recorded", "policy", "performs", "version", "message"),
    [
        ("nacos", None, "Never", False, 0, "the policy is Never, and all tables exist"),
        ("nacos", 3, "Never", False, 3, "the policy is Never, and all tables exist"),
        ("nacos", None, "IfNotPresent", False, 0, "all tables exist, not created by this operator"),
        ("both", 1, "IfNotPresent", False, 1, "schema version 1 is in place"),
        ("both", 9, "IfNotPresent", False, 9, "schema version 9 is in place"),
        ("both", None, "IfNotPresent", True, 2, "the schema was applied again"),
        ("both", 2, "BumpVersion", False, 2, "schema version 2 is in place"),
        ("both", 1, "BumpVersion", True, 2, "the schema was applied again"),
        ("both", 2, "Always", True, 2, "the schema was applied again"),
        ("", None, "Always", True, 2, "the schema was created"),
        ("ours", 9, "IfNotPresent", True, 9, "the schema was created"),
    ],
)
def test_plans(layout: str, recorded: int | None, policy: Any, performs: bool, version: int, message: str) -> None:
    tables = {"nacos": whole(), "both": whole() | MADE, "ours": MADE, "": {}}[layout]
    plan = decide(tables, recorded, wanted(), policy, 2)
    assert (bool(plan.statements), plan.version, plan.message) == (performs, version, message)


@pytest.mark.parametrize("policy", ["BumpVersion", "Always"])
def test_a_newer_database_is_not_changed(policy: Any) -> None:
    with pytest.raises(DatabaseError, match="set schemaVersion to 3 or more") as wrong:
        decide(whole() | MADE, 3, wanted(), policy, 2)
    assert wrong.value.reason == "VersionMismatch"


def without(*names: str) -> dict[str, frozenset[str]]:
    return {table: columns for table, columns in whole().items() if table not in names}


def test_missing_tables_are_named() -> None:
    with pytest.raises(DatabaseError) as wrong:
        decide(without("roles"), None, wanted(), "Never", 2)
    assert wrong.value.reason == "SchemaMissing"
    assert wrong.value.message.startswith("roles is missing, and the policy is Never")
    with pytest.raises(DatabaseError, match=r"^roles, permissions are missing"):
        decide(without("roles", "permissions"), None, wanted(), "Never", 2)
    with pytest.raises(DatabaseError, match=r" and [0-9]+ more are missing") as wrong:
        decide({}, None, wanted(), "Never", 2)
    assert len(wrong.value.message.partition(" and ")[0].split(", ")) == 5
    six = [*whole()][:6]
    with pytest.raises(DatabaseError, match=r"^\w+(, \w+){4} are missing"):
        decide(without(*six[:5]), None, wanted(), "Never", 2)
    with pytest.raises(DatabaseError, match=r"^\w+(, \w+){4} and 1 more are missing"):
        decide(without(*six), None, wanted(), "Never", 2)
    completed = decide(without("roles"), None, wanted(), "IfNotPresent", 2)
    assert completed.message == "an incomplete schema was completed: roles is new"
    assert {statement.table for statement in completed.statements} == {SENTINEL, "roles"}
    assert not completed.first_users
    assert decide(without("users"), None, wanted(), "IfNotPresent", 2).first_users


def test_tables_of_another_application_are_named() -> None:
    layout = dict(whole()) | {"users": frozenset({"id"}), "roles": frozenset({"id"})}
    with pytest.raises(DatabaseError) as wrong:
        decide(layout, None, wanted(), "Always", 2)
    assert wrong.value.reason == "SchemaBroken"
    assert "in the place of roles, users" in wrong.value.message


def test_columns_of_later_releases_are_added() -> None:
    layout = dict(whole())
    layout["his_config_info"] -= {"gray_name"}
    plan = decide(layout, None, wanted(), "IfNotPresent", 2)
    assert plan.message == "an incomplete schema was completed: his_config_info.gray_name is new"
    assert [statement.adds for statement in plan.statements if statement.table != SENTINEL] == ["gray_name"]
