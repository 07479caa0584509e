"""The contract of `Databases`: run on the simulated ones, and in the real lane on real servers.

A subclass gives a `place`: one server with a new, empty database, and methods to read and to break it that do not use
the code under test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

import msgspec
import pytest

from konverge.operators.nacos.database import DatabaseError, Databases, Policy, Target, bcrypt_hash, is_bcrypt, scripts
from konverge.operators.nacos.database.operations import AdminOutcome, SchemaOutcome
from konverge.operators.nacos.database.passwords import Hasher
from konverge.operators.nacos.database.scripts import family_of
from konverge.operators.nacos.database.store import Connector, Store

LIMIT = 120.0
"""Seconds for real servers on a machine that is busy with other things."""
SHORT = 0.5
HASH = "$2a$10$EuWPZHzz32dJN7jexM34MOeYirDdFAZm2kuWj7VEOJhhZkDrxfvUu"
OTHER_HASH = "$2y$04$qbjp4E2YfDbYSBF5rEjS6OcXZ7zQ4SXiUzNrL8cLkD8vPVRLVqzE6"
ODD_NAMES = ["o'brien", 'say "hi"', "back\\slash", "100%s", "管理员", "a;--b", "$1 ?", "x" * 50]


class Place(Protocol):
    """A database server with an empty database on it."""

    databases: Databases
    connector: Connector
    hasher: Hasher
    target: Target
    missing_database: str = "DatabaseMissing"

    def tables(self) -> dict[str, set[str]]: ...

    def version(self) -> int | None: ...

    def users(self) -> dict[str, tuple[str, bool]]: ...

    def admins(self) -> set[str]: ...

    def add_user(self, name: str, password_hash: str, *, enabled: bool = True, admin: bool = False) -> None: ...

    def drop_table(self, name: str) -> None: ...

    def drop_column(self, table: str, column: str) -> None: ...

    def set_read_only(self, on: bool) -> None: ...

    def held(self) -> AbstractAsyncContextManager[None]:
        """Another operator works on the database."""
        ...

    def elsewhere(self) -> Target:
        """A port of the same host where nothing listens."""
        ...


class Killed(BaseException):
    """The process ends here, as far as the database can tell."""


class KillingConnector(Connector):
    """Kills the caller instead of running the statement with this number."""

    def __init__(self, inner: Connector, after: int) -> None:
        self._inner = inner
        self._left = after

    @asynccontextmanager
    async def connect(self, target: Target, *, timeout: float) -> AsyncIterator[Store]:
        async with self._inner.connect(target, timeout=timeout) as store:
            original = store.run

            async def run(statement: scripts.Statement) -> None:
                if self._left == 0:
                    raise Killed
                self._left -= 1
                await original(statement)

            store.run = run  # type: ignore[method-assign]
            yield store


async def ensure(
    place: Place, line: str = "3.0", policy: Policy = "IfNotPresent", version: int = 1, **options: Any
) -> SchemaOutcome:
    options.setdefault("timeout", LIMIT)
    return await place.databases.ensure_schema(
        place.target, line=line, policy=policy, schema_version=version, **options
    )


async def rotate(place: Place, username: str = "nacos", **options: Any) -> AdminOutcome:
    options.setdefault("timeout", LIMIT)
    return await place.databases.rotate_admin(place.target, username=username, **options)


async def refused(work: Any, reason: str, password: str = "") -> str:
    with pytest.raises(DatabaseError) as caught:
        await work
    assert caught.value.reason == reason, caught.value.message
    assert not password or password not in caught.value.message
    return caught.value.message


def needed(place: Place, line: str) -> dict[str, set[str]]:
    schema = scripts.schema(place.target.engine, family_of(line))
    return {table: set(columns) for table, columns in schema.needs().items()}


def calls(databases: Databases, target: Target) -> list[Callable[[], Any]]:
    return [
        lambda: databases.check(target, timeout=LIMIT),
        lambda: databases.ensure_schema(target, line="3.0", policy="Always", schema_version=9, timeout=LIMIT),
        lambda: databases.rotate_admin(target, username="nacos", password_hash=OTHER_HASH, timeout=LIMIT),
    ]


class ConnectionContract:
    async def test_a_good_database_passes_the_check(self, place: Place) -> None:
        await place.databases.check(place.target, timeout=LIMIT)

    @pytest.mark.parametrize("call", range(3))
    async def test_a_wrong_password(self, place: Place, call: int) -> None:
        target = msgspec.structs.replace(place.target, password="not the password")
        message = await refused(calls(place.databases, target)[call](), "AuthenticationFailed", "not the password")
        assert "Secret" in message

    async def test_an_unknown_user(self, place: Place) -> None:
        target = msgspec.structs.replace(place.target, username='no "body"')
        await refused(place.databases.check(target, timeout=LIMIT), "AuthenticationFailed", target.password)

    async def test_a_missing_database(self, place: Place) -> None:
        target = msgspec.structs.replace(place.target, database="not-there")
        # MySQL does not tell a user without rights on it whether a database exists.
        message = await refused(place.databases.check(target, timeout=LIMIT), place.missing_database, target.password)
        assert "CREATE DATABASE" in message
        assert "not-there" in message

    async def test_nothing_listens(self, place: Place) -> None:
        target = place.elsewhere()
        message = await refused(place.databases.check(target, timeout=LIMIT), "Unreachable", target.password)
        assert str(target.port) in message

    @pytest.mark.spec("N-05", "N-20")
    @pytest.mark.parametrize("call", range(3))
    async def test_a_read_only_server(self, place: Place, call: int) -> None:
        await ensure(place)
        place.add_user("nacos", HASH)
        place.set_read_only(True)
        try:
            message = await refused(calls(place.databases, place.target)[call](), "ReadOnly", place.target.password)
            assert "read" in message
            assert (place.version(), place.users()) == (1, {"nacos": (HASH, True)})
        finally:
            place.set_read_only(False)
        await calls(place.databases, place.target)[call]()


class SchemaContract:
    @pytest.mark.spec("N-05", "N-19")
    @pytest.mark.parametrize("line", ["2.0", "2.4", "2.5", "3.0", "v3.1.2"])
    async def test_an_empty_database_gets_every_table(self, place: Place, line: str) -> None:
        outcome = await ensure(place, line, version=7)
        assert (outcome.performed, outcome.version) == (True, 7)
        assert "created" in outcome.message
        tables = place.tables()
        assert {name: tables[name] for name in needed(place, line)} == needed(place, line)
        assert (place.version(), place.users()) == (7, {})

    async def test_the_second_time_nothing_happens(self, place: Place) -> None:
        await ensure(place)
        outcome = await ensure(place)
        assert (outcome.performed, outcome.version) == (False, 1)

    async def test_an_upgrade_of_the_servers_completes_the_tables(self, place: Place) -> None:
        await ensure(place, "2.4")
        outcome = await ensure(place, "3.0")
        assert outcome.performed
        assert "config_info_gray" in place.tables()
        assert "config_info_aggr" in place.tables(), "a former line's table, which may hold data"
        assert {"publish_type", "gray_name", "ext_info"} <= place.tables()["his_config_info"]

    @pytest.mark.spec("N-20")
    @pytest.mark.parametrize("policy", ["IfNotPresent", "Always", "BumpVersion"])
    async def test_a_half_initialised_database_is_completed(self, place: Place, policy: Policy) -> None:
        await ensure(place, "2.4")
        place.drop_table("roles")
        place.drop_table("config_info_tag")
        place.drop_column("his_config_info", "encrypted_data_key")
        outcome = await ensure(place, "2.4", policy)
        assert outcome.performed
        assert all(place.tables()[name] >= columns for name, columns in needed(place, "2.4").items())
        assert not (await ensure(place, "2.4")).performed

    @pytest.mark.parametrize("policy", ["IfNotPresent", "Always", "Never", "BumpVersion"])
    async def test_tables_of_another_application_are_left_alone(self, place: Place, policy: Policy) -> None:
        await ensure(place)
        place.drop_column("users", "enabled")
        place.drop_table("roles")
        before = place.tables()
        message = await refused(ensure(place, policy=policy, version=2), "SchemaBroken")
        assert "users.enabled" in message
        assert (place.tables(), place.version()) == (before, 1)

    async def test_never_creates_nothing(self, place: Place) -> None:
        message = await refused(ensure(place, policy="Never"), "SchemaMissing")
        assert "IfNotPresent" in message
        assert place.tables() == {}
        await ensure(place)
        assert not (await ensure(place, policy="Never", version=5)).performed
        assert place.version() == 1

    async def test_always_applies_again(self, place: Place) -> None:
        await ensure(place, policy="Always")
        outcome = await ensure(place, policy="Always", version=3)
        assert (outcome.performed, outcome.version, place.version()) == (True, 3, 3)

    async def test_bump_version_applies_when_the_version_grows(self, place: Place) -> None:
        assert (await ensure(place, policy="BumpVersion", version=2)).performed
        assert not (await ensure(place, policy="BumpVersion", version=2)).performed
        outcome = await ensure(place, policy="BumpVersion", version=4)
        assert (outcome.performed, outcome.version, place.version()) == (True, 4, 4)

    @pytest.mark.parametrize("policy", ["Always", "BumpVersion"])
    async def test_a_version_never_falls(self, place: Place, policy: Policy) -> None:
        await ensure(place, version=5)
        message = await refused(ensure(place, policy=policy, version=4), "VersionMismatch")
        assert "schemaVersion" in message
        outcome = await ensure(place, policy="IfNotPresent", version=4)
        assert (outcome.performed, outcome.version, place.version()) == (False, 5, 5)

    async def test_tables_of_another_origin_need_no_sentinel(self, place: Place) -> None:
        await ensure(place)
        place.drop_table(scripts.SENTINEL)
        outcome = await ensure(place, version=2)
        assert (outcome.performed, outcome.version, place.version()) == (False, 0, None)
        outcome = await ensure(place, policy="BumpVersion", version=2)
        assert (outcome.performed, place.version()) == (True, 2)

    async def test_the_default_admin_only_where_no_user_ever_was(self, place: Place) -> None:
        await ensure(place, "2.2", default_admin=True)
        assert (place.users(), place.admins()) == ({"nacos": (HASH, True)}, {"nacos"})
        await rotate(place, "other", password_hash=OTHER_HASH, previous="nacos")
        await ensure(place, "2.2", "Always", default_admin=True)
        assert set(place.users()) == {"other"}

    @pytest.mark.spec("N-05")
    async def test_five_operators_at_once(self, place: Place) -> None:
        outcomes = await asyncio.gather(*(ensure(place) for _ in range(5)))
        assert sorted(outcome.performed for outcome in outcomes) == [False] * 4 + [True]
        assert {outcome.version for outcome in outcomes} == {1}

    @pytest.mark.spec("N-20")
    async def test_another_operator_works_for_too_long(self, place: Place) -> None:
        async with place.held():
            await refused(ensure(place, timeout=SHORT), "Timeout", place.target.password)
            assert place.tables() == {}
        assert (await ensure(place)).performed

    @pytest.mark.spec("N-20")
    @pytest.mark.parametrize("after", [0, 1, 7])
    async def test_killed_between_two_statements(self, place: Place, after: int) -> None:
        databases = Databases(KillingConnector(place.connector, after), place.hasher)
        with pytest.raises(Killed):
            await databases.ensure_schema(
                place.target, line="2.4", policy="IfNotPresent", schema_version=1, timeout=LIMIT
            )
        kept = 0 if place.target.engine == "postgresql" else min(after, 1)
        assert bool(place.tables()) == bool(kept), "PostgreSQL keeps all or nothing"
        assert place.version() is None
        assert (await ensure(place, "2.4")).performed
        assert not (await ensure(place, "2.4")).performed


class AdminContract:
    @pytest.mark.spec("N-06", "N-19")
    async def test_a_hash_is_written_once(self, place: Place) -> None:
        await ensure(place)
        assert (await rotate(place, password_hash=HASH)).performed
        assert (place.users(), place.admins()) == ({"nacos": (HASH, True)}, {"nacos"})
        assert not (await rotate(place, password_hash=HASH)).performed
        assert (await rotate(place, password_hash=OTHER_HASH)).performed
        assert place.users() == {"nacos": (OTHER_HASH, True)}

    @pytest.mark.spec("N-06")
    async def test_a_password_is_hashed_once(self, place: Place) -> None:
        await ensure(place)
        assert (await rotate(place, password="it's ~{}")).performed
        first = place.users()
        assert is_bcrypt(first["nacos"][0])
        assert not (await rotate(place, password="it's ~{}")).performed
        assert place.users() == first
        assert (await rotate(place, password="another")).performed
        assert place.users() != first

    async def test_rights_taken_from_the_admin_are_restored(self, place: Place) -> None:
        await ensure(place)
        place.add_user("nacos", HASH, enabled=False, admin=False)
        assert (await rotate(place, password_hash=HASH)).performed
        assert (place.users(), place.admins()) == ({"nacos": (HASH, True)}, {"nacos"})

    async def test_a_new_name_takes_the_place_of_the_old(self, place: Place) -> None:
        await ensure(place)
        place.add_user("somebody", OTHER_HASH)
        await rotate(place, "first", password_hash=HASH)
        outcome = await rotate(place, "second", password_hash=HASH, previous="first")
        assert "first" in outcome.message
        assert place.users() == {"somebody": (OTHER_HASH, True), "second": (HASH, True)}
        assert place.admins() == {"second"}
        assert not (await rotate(place, "second", password_hash=HASH, previous="first")).performed
        assert not (await rotate(place, "second", password_hash=HASH, previous="second")).performed

    @pytest.mark.parametrize("name", ODD_NAMES)
    async def test_names_are_values_never_sql(self, place: Place, name: str) -> None:
        await ensure(place)
        await rotate(place, name, password_hash=HASH)
        assert (place.users(), place.admins()) == ({name: (HASH, True)}, {name})

    async def test_without_tables_the_schema_is_asked_for(self, place: Place) -> None:
        await refused(rotate(place, password_hash=HASH), "SchemaMissing")

    async def test_five_rotations_at_once(self, place: Place) -> None:
        await ensure(place)
        outcomes = await asyncio.gather(*(rotate(place, password_hash=HASH) for _ in range(5)))
        assert sum(outcome.performed for outcome in outcomes) == 1
        hashes = [HASH, OTHER_HASH, await bcrypt_hash("x", cost=4)] if not _virtual() else [HASH, OTHER_HASH]
        await asyncio.gather(*(rotate(place, password_hash=hashed) for hashed in hashes))
        assert place.users()["nacos"][0] in hashes
        assert place.admins() == {"nacos"}


def _virtual() -> bool:
    return hasattr(asyncio.get_running_loop(), "wall_time")


class InputContract:
    """What is refused before any server is asked: it needs no real one."""

    @pytest.mark.parametrize("field", ["host", "database", "username"])
    @pytest.mark.parametrize("value", ["", "zero\0byte", "x" * 5000, "\ud800"])
    async def test_an_impossible_target_is_refused_at_once(self, place: Place, field: str, value: str) -> None:
        target = msgspec.structs.replace(place.target, **{field: value})
        await refused(place.databases.check(target, timeout=LIMIT), "InvalidTarget", target.password)

    async def test_an_unknown_line_is_the_callers_mistake(self, place: Place) -> None:
        await refused(ensure(place, "latest"), "InvalidTarget")

    @pytest.mark.parametrize("name", ["", "x" * 51, "zero\0"])
    async def test_names_that_do_not_fit(self, place: Place, name: str) -> None:
        await refused(rotate(place, name, password_hash=HASH), "InvalidCredentials")

    @pytest.mark.parametrize(
        "secret",
        [
            {},
            {"password": "x", "password_hash": HASH},
            {"password": "x" * 73},
            {"password": "zero\0byte"},
            {"password_hash": "plain text"},
            {"password_hash": HASH[:-1]},
            {"password_hash": HASH.replace("$10$", "$31$")},
        ],
    )
    async def test_secrets_that_cannot_be_right(self, place: Place, secret: dict[str, str]) -> None:
        message = await refused(rotate(place, **secret), "InvalidCredentials")
        assert not any(value in message for value in secret.values() if len(value) > 1)


class DatabaseContract(ConnectionContract, SchemaContract, AdminContract):
    """All that concerns servers."""
