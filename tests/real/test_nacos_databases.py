"""The Nacos operator's databases on real PostgreSQL and MariaDB servers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from konverge.operators.nacos.database import RealDatabases, Tls, TlsMode, mysql_script, postgres_script, scripts
from tests.operators.nacos.database.contract import (
    HASH,
    LIMIT,
    OTHER_HASH,
    SHORT,
    DatabaseContract,
    ensure,
    needed,
    refused,
    rotate,
)
from tests.real.database_places import MariadbPlace, PostgresPlace, RealPlace
from tests.real.databases import PASSWORD, Server, mariadb_server, postgres_server, postgres_standby
from tools import real_packages

pytestmark = pytest.mark.spec("N-19")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    if real_packages.postgres_programs() is None:
        pytest.skip(real_packages.advice(["postgresql"]))
    with postgres_server() as server:
        yield server


@pytest.fixture
def standby(postgres: Server) -> Iterator[Server]:
    with postgres_standby(postgres) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[Server]:
    if real_packages.mariadb_programs() is None:
        pytest.skip(real_packages.advice(["mariadb-server"]))
    with mariadb_server() as server:
        yield server


class TestPostgres(DatabaseContract):
    @pytest.fixture
    def place(self, postgres: Server) -> PostgresPlace:
        return PostgresPlace(postgres)


class TestMariadb(DatabaseContract):
    @pytest.fixture
    def place(self, mariadb: Server) -> MariadbPlace:
        return MariadbPlace(mariadb)


@pytest.fixture(params=["postgresql", "mariadb"])
def place(request: pytest.FixtureRequest) -> RealPlace:
    if request.param == "postgresql":
        return PostgresPlace(request.getfixturevalue("postgres"))
    return MariadbPlace(request.getfixturevalue("mariadb"))


def with_tls(place: RealPlace, mode: TlsMode, *, ca: str = "", server_name: str = "", host: str = "127.0.0.1") -> None:
    tls = Tls(mode=mode, ca=ca, server_name=server_name)
    place.target = msgspec.structs.replace(place.target, tls=tls, host=host)


class TestTls:
    @pytest.mark.spec("N-05")
    @pytest.mark.parametrize("mode", ["disable", "prefer", "require", "verify-ca", "verify-full"])
    async def test_each_mode_connects_with_the_right_authority(self, place: RealPlace, mode: TlsMode) -> None:
        with_tls(place, mode, ca=place.server.keys.authority.decode())
        assert (await ensure(place)).performed

    @pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
    async def test_the_connection_is_encrypted(self, place: RealPlace, mode: TlsMode) -> None:
        """The server requires encryption of this user."""
        if place.target.engine == "mysql":
            place.sql(f"ALTER USER {place.target.username} REQUIRE SSL")
            with_tls(place, "disable")
            await refused(place.databases.check(place.target, timeout=LIMIT), "AuthenticationFailed")
        with_tls(place, mode, ca=place.server.keys.authority.decode())
        async with place.connector.connect(place.target, timeout=LIMIT) as store:
            assert await _encrypted(place, store)

    async def test_another_authority_is_refused(self, place: RealPlace) -> None:
        from konverge.apiserver import certificates

        other = certificates.make(("127.0.0.1",)).authority.decode()
        for mode in ("verify-ca", "verify-full"):
            with_tls(place, mode, ca=other)
            assert "CA" in await refused(place.databases.check(place.target, timeout=LIMIT), "TlsFailed")

    async def test_a_private_authority_is_not_trusted_by_default(self, place: RealPlace) -> None:
        with_tls(place, "verify-ca")
        await refused(place.databases.check(place.target, timeout=LIMIT), "TlsFailed")

    async def test_the_server_name_must_match_the_certificate(self, place: RealPlace) -> None:
        ca = place.server.keys.authority.decode()
        with_tls(place, "verify-full", ca=ca, server_name="another.example")
        await refused(place.databases.check(place.target, timeout=LIMIT), "TlsFailed")
        with_tls(place, "verify-ca", ca=ca, server_name="another.example")
        await place.databases.check(place.target, timeout=LIMIT)
        with_tls(place, "verify-full", ca=ca, server_name="database.example")
        await place.databases.check(place.target, timeout=LIMIT)


async def _encrypted(place: RealPlace, store: object) -> bool:
    session = store._session  # type: ignore[attr-defined]
    if place.target.engine == "mysql":
        ((_, cipher),) = await session.fetch("SHOW STATUS LIKE 'Ssl_cipher'")
        return bool(cipher)
    ((encrypted,),) = await session.fetch("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
    return bool(encrypted)


@pytest.fixture(params=["postgresql", "mariadb"])
def plain_place(request: pytest.FixtureRequest) -> Iterator[RealPlace]:
    """A database on a server that does not speak TLS."""
    installed = real_packages.postgres_programs() if request.param == "postgresql" else real_packages.mariadb_programs()
    if installed is None:
        pytest.skip(real_packages.advice([request.param]))
    if request.param == "postgresql":
        with postgres_server(tls=False) as server:
            yield PostgresPlace(server)
    else:
        with mariadb_server(tls=False) as server:
            yield MariadbPlace(server)


async def test_a_server_without_tls_is_refused_where_tls_is_required(plain_place: RealPlace) -> None:
    place = plain_place
    with_tls(place, "require")
    message = await refused(place.databases.check(place.target, timeout=LIMIT), "TlsFailed")
    assert "does not speak TLS" in message
    with_tls(place, "prefer")
    await place.databases.check(place.target, timeout=LIMIT)


class TestReadOnly:
    async def test_a_standby_is_reported_as_read_only(self, standby: Server) -> None:
        target = standby.target("postgres")
        databases = RealDatabases()
        rotation = databases.rotate_admin(target, username="nacos", password_hash=HASH, timeout=LIMIT)
        for work in (databases.check(target, timeout=LIMIT), rotation):
            assert "standby" in await refused(work, "ReadOnly", PASSWORD)

    async def test_a_superuser_may_not_write_to_a_replica_either(self, mariadb: Server) -> None:
        place = MariadbPlace(mariadb)
        place.target = mariadb.target(place.name)
        place.set_read_only(True)
        try:
            assert "read_only" in await refused(ensure(place), "ReadOnly")
        finally:
            place.set_read_only(False)


class TestPermissions:
    async def test_a_user_who_may_only_connect_to_postgresql_is_denied(self, postgres: Server) -> None:
        place = PostgresPlace(postgres)
        postgres.sql(f"CREATE ROLE {place.name}_guest LOGIN PASSWORD 'guest'")
        place.target = postgres.target(place.name, f"{place.name}_guest", "guest")
        message = await refused(ensure(place), "PermissionDenied", "guest'")
        assert "ALTER DATABASE" in message
        assert place.tables() == {}

    async def test_a_user_who_may_only_read_in_mariadb_is_denied(self, mariadb: Server) -> None:
        place = MariadbPlace(mariadb)
        mariadb.sql(f"CREATE USER {place.name}_guest IDENTIFIED BY 'guest'")
        mariadb.sql(f"GRANT SELECT ON {place.name}.* TO {place.name}_guest")
        place.target = mariadb.target(place.name, f"{place.name}_guest", "guest")
        assert "GRANT ALL" in await refused(ensure(place), "PermissionDenied")
        assert place.tables() == {}

    async def test_a_missing_schema_is_a_missing_permission(self, postgres: Server) -> None:
        place = PostgresPlace(postgres)
        postgres.sql(f"ALTER ROLE {place.target.username} SET search_path = nowhere")
        await refused(ensure(place), "PermissionDenied")


@pytest.mark.parametrize("name", ["Nacos-1 ü", 'quo"ted', "back`tick", "o'clock", "100%"])
async def test_odd_names_of_databases_and_users_are_quoted(place: RealPlace, name: str) -> None:
    mark = '"' if place.target.engine == "postgresql" else "`"
    quoted = mark + name.replace(mark, mark * 2) + mark
    place.server.sql(f"CREATE DATABASE {quoted}")
    if place.target.engine == "postgresql":
        place.server.sql(f"CREATE ROLE {quoted} LOGIN PASSWORD 'x'")
        place.server.sql(f"ALTER DATABASE {quoted} OWNER TO {quoted}")
    else:
        place.server.sql(f"CREATE USER {quoted} IDENTIFIED BY 'x'")
        place.server.sql(f"GRANT ALL ON {quoted}.* TO {quoted}")
    place.target = place.server.target(name, name, "x")
    assert (await ensure(place)).performed
    assert (await rotate(place, password_hash=HASH)).performed


async def test_a_password_may_be_in_any_script(place: RealPlace) -> None:
    form = "ALTER ROLE {} PASSWORD '{}'" if place.target.engine == "postgresql" else "ALTER USER {} IDENTIFIED BY '{}'"
    place.server.sql(form.format(place.target.username, "密码 ünïcode"))
    place.target = msgspec.structs.replace(place.target, password="密码 ünïcode")
    await place.databases.check(place.target, timeout=LIMIT)


@pytest.mark.spec("N-20")
class TestSlowServers:
    async def test_a_locked_table_is_a_timeout(self, place: RealPlace) -> None:
        await ensure(place)
        lock = {"postgresql": "BEGIN; LOCK TABLE users", "mysql": "LOCK TABLES users WRITE"}[place.target.engine]
        with place.server.session(lock, place.name):
            await refused(rotate(place, password_hash=HASH, timeout=SHORT), "Timeout", place.target.password)
        assert place.users() == {}
        assert (await rotate(place, password_hash=HASH)).performed

    async def test_a_locked_row_is_a_timeout(self, place: RealPlace) -> None:
        await ensure(place)
        await rotate(place, password_hash=HASH)
        with place.server.session("BEGIN; UPDATE users SET enabled = FALSE", place.name):
            await refused(rotate(place, password_hash=OTHER_HASH, timeout=SHORT), "Timeout")
        assert place.users() == {"nacos": (HASH, True)}

    async def test_a_frozen_server_is_a_timeout(self, place: RealPlace) -> None:
        """The system still accepts connections for a process that is stopped."""
        place.server.freeze()
        try:
            await refused(place.databases.check(place.target, timeout=SHORT), "Timeout")
        finally:
            place.server.thaw()
        await place.databases.check(place.target, timeout=LIMIT)

    async def test_a_cancelled_wait_leaves_nothing_behind(self, place: RealPlace) -> None:
        async with place.held():
            work = asyncio.create_task(ensure(place), name="ensure")
            await asyncio.to_thread(_until_waiting, place, work)
            work.cancel()
            with pytest.raises(asyncio.CancelledError):
                await work
        assert place.tables() == {}
        assert (await ensure(place)).performed

    async def test_a_client_that_gave_up_leaves_no_session(self, place: RealPlace) -> None:
        await ensure(place)
        lock = {"postgresql": "BEGIN; LOCK TABLE users", "mysql": "LOCK TABLES users WRITE"}[place.target.engine]
        with place.server.session(lock, place.name):
            await refused(rotate(place, password_hash=HASH, timeout=SHORT), "Timeout")
            await asyncio.to_thread(_until_alone, place)

    async def test_a_server_that_stops_half_way_is_a_timeout(self, place: RealPlace) -> None:
        """The server does not even answer when the client closes the session."""
        async with place.held():
            work = asyncio.create_task(ensure(place, timeout=15), name="ensure")
            await asyncio.to_thread(_until_waiting, place, work)
            stopped = _processes(place)
            for number in stopped:
                os.kill(number, signal.SIGSTOP)
            try:
                await refused(work, "Timeout")
            finally:
                for number in stopped:
                    os.kill(number, signal.SIGCONT)

    async def test_a_session_that_the_server_ends_is_an_interruption(self, place: RealPlace) -> None:
        async with place.held():
            work = asyncio.create_task(ensure(place), name="ensure")
            await asyncio.to_thread(_until_waiting, place, work)
            await asyncio.to_thread(_end_sessions, place)
            await refused(work, "Interrupted", place.target.password)
        assert (await ensure(place)).performed


def _sessions(place: RealPlace) -> list[str]:
    """The sessions of the operator's user that wait for the lock."""
    user = place.target.username
    if place.target.engine == "postgresql":
        query = f"SELECT pid FROM pg_stat_activity WHERE usename = '{user}' AND wait_event = 'advisory'"
    else:
        query = f"SELECT id FROM information_schema.processlist WHERE user = '{user}' AND state = 'User lock'"
    return place.server.sql(query).split()


def _until_waiting(place: RealPlace, work: asyncio.Task[Any]) -> None:
    while not _sessions(place):
        assert not work.done(), "it is over, and did not wait for the lock"


def _until_alone(place: RealPlace) -> None:
    query = {
        "postgresql": f"SELECT pid FROM pg_stat_activity WHERE usename = '{place.target.username}'",
        "mysql": f"SELECT id FROM information_schema.processlist WHERE user = '{place.target.username}'",
    }[place.target.engine]
    while place.server.sql(query):
        pass


def _processes(place: RealPlace) -> list[int]:
    """PostgreSQL has a process per session, MariaDB one for all."""
    return [int(pid) for pid in _sessions(place)] if place.target.engine == "postgresql" else [place.server.process.pid]


def _end_sessions(place: RealPlace) -> None:
    form = "SELECT pg_terminate_backend({})" if place.target.engine == "postgresql" else "KILL {}"
    for number in _sessions(place):
        place.server.sql(form.format(number))


class TestScripts:
    @pytest.mark.spec("N-07")
    @pytest.mark.parametrize("line", ["2.0", "2.4", "3.0"])
    async def test_a_script_that_runs_twice_makes_the_schema_of_the_operator(self, place: RealPlace, line: str) -> None:
        make = postgres_script if place.target.engine == "postgresql" else mysql_script
        for _ in range(2):
            place.run_script(make(line, default_admin=True))
        assert all(place.tables()[name] == columns for name, columns in needed(place, line).items())
        assert (place.users(), place.admins()) == ({"nacos": (HASH, True)}, {"nacos"})
        assert (await ensure(place, line)).version == 1
        assert not (await ensure(place, line)).performed

    async def test_a_script_upgrades_an_old_schema(self, place: RealPlace) -> None:
        make = postgres_script if place.target.engine == "postgresql" else mysql_script
        place.run_script(make("2.4"))
        place.drop_column("config_info", "encrypted_data_key")
        place.run_script(make("3.0"))
        assert all(place.tables()[name] == columns for name, columns in needed(place, "3.0").items())

    async def test_script_and_operator_make_the_same_tables(self, place: RealPlace) -> None:
        make = postgres_script if place.target.engine == "postgresql" else mysql_script
        place.run_script(make("3.0"))
        other = type(place)(place.server)
        await ensure(other)
        assert _description(place) == _description(other)

    async def test_the_tables_take_rows_as_nacos_writes_them(self, place: RealPlace) -> None:
        await ensure(place)
        columns = "data_id, group_id, content, md5, tenant_id"
        place.sql(f"INSERT INTO config_info ({columns}) VALUES ('a', 'g', 'text 🙂', 'm', '')")
        assert place.rows("SELECT id, content, encrypted_data_key FROM config_info") == [["1", "text 🙂", ""]]
        with pytest.raises(subprocess.CalledProcessError):
            place.sql(f"INSERT INTO config_info ({columns}) VALUES ('a', 'g', 'again', 'm', '')")
        place.sql(
            "INSERT INTO his_config_info (id, data_id, group_id, content, op_type) VALUES (1, 'a', 'g', 'x', 'I')"
        )
        assert place.rows("SELECT publish_type FROM his_config_info") == [["formal"]]


def _description(place: RealPlace) -> list[list[str]]:
    where = "public" if place.target.engine == "postgresql" else place.name
    columns = "table_name, column_name, data_type, is_nullable, character_maximum_length"
    query = f"SELECT {columns} FROM information_schema.columns WHERE table_schema = '{where}' ORDER BY 1, 2"
    if place.target.engine == "mysql":
        return place.rows(query)
    indexes = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1, 2"
    return [*place.rows(query), *place.rows(indexes)]


async def test_the_server_has_the_tables_of_the_packaged_schema(place: RealPlace) -> None:
    """Every table of the package is one that the server made, with the same columns: our parser of SQL is right."""
    for line in ("2.4", "3.0"):
        await ensure(place, line)
    known = {statement.table for statement in scripts.schema(place.target.engine, "since-2.5").statements}
    assert known <= set(place.tables())
    assert all(place.tables()[name] == columns for name, columns in needed(place, "3.0").items())
