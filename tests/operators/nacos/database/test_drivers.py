"""TLS, and sessions of PostgreSQL over a driver of our own making: what is sent, and how errors are taken."""

from __future__ import annotations

import ssl
from types import SimpleNamespace
from typing import Any

import asyncpg
import pymysql
import pytest

from konverge.operators.nacos.database import DatabaseError, Target, Tls, drivers, postgres
from konverge.operators.nacos.database.drivers import connect_by_mode, tls_context
from konverge.operators.nacos.database.postgres import LOCK, PostgresSession
from tests.operators.nacos.database.contract import refused

pytestmark = pytest.mark.spec("N-05", "N-06", "N-20")
POSTGRES = Target(engine="postgresql", host="pg", port=5433, database="d", username="u", password="a password")


def changed(target: Target, **values: Any) -> Target:
    fields = {name: getattr(target, name) for name in target.__struct_fields__}
    return Target(**(fields | values))


# ------------------------------------------------------------------ TLS


@pytest.mark.parametrize(
    ("mode", "verifies", "checks_name"),
    [
        ("prefer", ssl.CERT_NONE, False),
        ("require", ssl.CERT_NONE, False),
        ("verify-ca", ssl.CERT_REQUIRED, False),
        ("verify-full", ssl.CERT_REQUIRED, True),
    ],
)
def test_the_modes_of_libpq(mode: Any, verifies: ssl.VerifyMode, checks_name: bool) -> None:
    context = tls_context(Tls(mode=mode, server_name="db.example"))
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (verifies, checks_name)
    bio = ssl.MemoryBIO()
    assert context.wrap_bio(bio, bio, server_hostname="10.0.0.1").server_hostname == "db.example"
    plain = tls_context(Tls(mode=mode))
    assert plain is not None
    assert plain.wrap_bio(bio, bio, server_hostname="host.example").server_hostname == "host.example"


def test_no_encryption_and_no_certificate() -> None:
    assert tls_context(Tls(mode="disable")) is None
    with pytest.raises(DatabaseError, match="not a bundle of certificates") as wrong:
        tls_context(Tls(mode="verify-ca", ca="nonsense"))
    assert wrong.value.reason == "InvalidTarget"
    assert tls_context(Tls(mode="require", ca="nonsense")) is not None, "it is not looked at"


def test_without_a_bundle_the_systems_certificates_count(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", lambda self: loaded.append(self))
    assert tls_context(Tls(mode="require")) is not None
    assert loaded == []
    context = tls_context(Tls(mode="verify-full"))
    assert loaded == [context]


@pytest.mark.parametrize(
    ("mode", "reason", "attempts"),
    [
        ("prefer", "TlsFailed", ["tls", "plain"]),
        ("prefer", "Unreachable", ["tls"]),
        ("require", "TlsFailed", ["tls"]),
        ("disable", "TlsFailed", ["plain"]),
    ],
)
async def test_when_plain_text_is_tried(mode: Any, reason: Any, attempts: list[str]) -> None:
    made: list[str] = []

    async def connect(context: ssl.SSLContext | None) -> str:
        made.append("plain" if context is None else "tls")
        if len(made) == 2:
            return "connected"
        raise DatabaseError(reason, "text")

    work = connect_by_mode(Tls(mode=mode), connect, ("TlsFailed",))
    if len(attempts) == 2:
        assert await work == "connected"
    else:
        await refused(work, reason)
    assert made == attempts


async def test_a_driver_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(drivers._loaded, "pymysql", raising=False)
    assert await drivers.driver("pymysql") is pymysql
    assert await drivers.driver("pymysql") is drivers._loaded["pymysql"]
    message = await refused(drivers.driver("no_such_package"), "DriverMissing")
    assert "no_such_package is not installed: pip install 'konverge[nacos]'" in message


# ------------------------------------------------------------------ PostgreSQL


class Postgres:
    """A connection of asyncpg. `fails` has the errors by the beginning of a statement."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, tuple[Any, ...]]] = []
        self.fails: dict[str, Exception] = {}
        self.ended: list[str] = []
        self.options: dict[str, Any] = {}

    async def connect(self, **options: Any) -> Postgres:
        self.options = options
        if error := self.fails.get("connect"):
            raise error
        return self

    def _note(self, text: str, values: tuple[Any, ...]) -> None:
        self.statements.append((text, values))
        for start, error in self.fails.items():
            if text.startswith(start):
                raise error

    async def fetch(self, text: str, *values: Any) -> list[list[Any]]:
        self._note(text, values)
        return [["row", 1]]

    async def execute(self, text: str, *values: Any) -> None:
        self._note(text, values)

    async def close(self, *, timeout: float) -> None:
        assert timeout == 1.0
        self.ended.append("close")
        if error := self.fails.get("close"):
            raise error

    def terminate(self) -> None:
        self.ended.append("terminate")

    @property
    def texts(self) -> list[str]:
        return [text for text, _ in self.statements]


@pytest.fixture
def pg(monkeypatch: pytest.MonkeyPatch) -> Postgres:
    server = Postgres()
    monkeypatch.setitem(drivers._loaded, "asyncpg", SimpleNamespace(connect=server.connect))  # type: ignore[arg-type]
    return server


async def test_a_connection_to_postgresql_is_one_transaction(pg: Postgres) -> None:
    async with postgres.connect(changed(POSTGRES, tls=Tls(mode="disable")), timeout=2.5):
        assert pg.ended == []
    limits = "SELECT set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)"
    assert pg.statements == [("BEGIN", ()), (limits, ("2500ms", "2500ms")), ("COMMIT", ())]
    assert pg.ended == ["close"]
    assert pg.options == {
        "host": "pg",
        "port": 5433,
        "user": "u",
        "password": "a password",
        "database": "d",
        "ssl": False,
        "direct_tls": False,
        "target_session_attrs": "any",
        "timeout": 2.5,
        "statement_cache_size": 0,
        "server_settings": {"application_name": "konverge"},
    }


async def test_an_error_in_between_ends_the_connection_without_a_commit(pg: Postgres) -> None:
    with pytest.raises(LookupError):
        async with postgres.connect(POSTGRES, timeout=1):
            raise LookupError
    assert pg.ended == ["terminate"]
    assert "COMMIT" not in pg.texts
    assert isinstance(pg.options["ssl"], ssl.SSLContext)


async def test_a_commit_that_fails_is_an_error(pg: Postgres) -> None:
    pg.fails["COMMIT"] = asyncpg.PostgresError("lost")

    async def work() -> None:
        async with postgres.connect(POSTGRES, timeout=1):
            pass

    await refused(work(), "Failed")
    assert pg.ended == ["terminate"]


@pytest.mark.parametrize("error", [TimeoutError(), ConnectionResetError(), asyncpg.PostgresError("lost")])
async def test_what_is_committed_is_done_however_the_session_ends(pg: Postgres, error: Exception) -> None:
    pg.fails["close"] = error
    async with postgres.connect(POSTGRES, timeout=1):
        pass
    assert pg.texts[-1] == "COMMIT"
    assert pg.ended == ["close", "terminate"]


async def test_plain_text_after_a_refusal_of_tls(pg: Postgres) -> None:
    pg.fails["connect"] = asyncpg.InvalidAuthorizationSpecificationError("no pg_hba.conf entry for host, SSL on")
    attempts: list[Any] = []
    original = pg.connect

    async def connect(**options: Any) -> Postgres:
        attempts.append(options["ssl"])
        if len(attempts) == 2:
            pg.fails.clear()
        return await original(**options)

    drivers._loaded["asyncpg"] = SimpleNamespace(connect=connect)  # type: ignore[assignment]
    async with postgres.connect(POSTGRES, timeout=1):
        pass
    assert [bool(context) for context in attempts] == [True, False]


def postgres_error(sqlstate: str | None) -> Exception:
    error = asyncpg.PostgresError("text")
    error.sqlstate = sqlstate
    return error  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("error", "mode", "reason"),
    [
        (postgres_error("42P01"), "require", "SchemaMissing"),
        (postgres_error(None), "require", "Failed"),
        (asyncpg.InterfaceError("closed"), "require", "Interrupted"),
        (ConnectionError("rejected SSL upgrade"), "require", "TlsFailed"),
        (ConnectionError("rejected SSL upgrade"), "disable", "Unreachable"),
        (ConnectionRefusedError(111, "refused"), "require", "Unreachable"),
        (OSError(113, "no route"), "require", "Unreachable"),
    ],
)
@pytest.mark.parametrize("where", ["fetch", "execute"])
async def test_errors_of_asyncpg(error: Exception, mode: Any, reason: str, where: str) -> None:
    server = Postgres()
    server.fails["X"] = error
    session = PostgresSession(server, changed(POSTGRES, tls=Tls(mode=mode)), 1)
    await refused(getattr(session, where)("X"), reason, "a password")


async def test_a_timeout_of_asyncpg_is_explained_by_the_caller() -> None:
    server = Postgres()
    server.fails["X"] = TimeoutError()
    with pytest.raises(TimeoutError):
        await PostgresSession(server, POSTGRES, 1).fetch("X")


async def test_values_of_postgresql_are_numbered() -> None:
    server = Postgres()
    session = PostgresSession(server, POSTGRES, 0.0001)
    assert await session.fetch("SELECT ?, ?", 1, "a") == [("row", 1)]
    await session.execute("INSERT ?", 1)
    await session.execute("SELECT '?'")
    async with session.exclusive():
        pass
    assert server.statements == [
        ("SELECT $1, $2", (1, "a")),
        ("INSERT $1", (1,)),
        ("SELECT '?'", ()),
        ("SELECT pg_advisory_xact_lock($1)", (LOCK,)),
    ]
    await session.begin()
    assert server.statements[-1][1] == ("1ms", "1ms"), "never no limit"
