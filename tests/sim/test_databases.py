"""Simulated databases behave like real ones: the contract, and their faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from konverge.operators.nacos.database import Engine, Target, Tls, bcrypt_hash, is_bcrypt
from konverge.sim.databases import Content, SimulatedDatabases, simulated_hash
from tests.operators.nacos.database.contract import (
    HASH,
    OTHER_HASH,
    DatabaseContract,
    InputContract,
    Place,
    ensure,
    refused,
    rotate,
)

PORTS: dict[Engine, int] = {"postgresql": 5432, "mysql": 3306}


class SimulatedPlace(Place):
    """A simulated server, for the contract."""

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


@pytest.fixture(params=PORTS)
def place(request: pytest.FixtureRequest) -> SimulatedPlace:
    return SimulatedPlace(request.param)


@pytest.mark.virtual
class TestSimulatedDatabases(DatabaseContract, InputContract):
    pass


@pytest.mark.virtual
@pytest.mark.spec("N-20")
class TestFaults:
    async def test_down_and_up_again(self, place: SimulatedPlace) -> None:
        place.server.down = True
        await refused(ensure(place), "Unreachable")
        place.server.down = False
        assert (await ensure(place)).performed

    async def test_an_unknown_host(self, place: SimulatedPlace) -> None:
        place.target = msgspec.structs.replace(place.target, host="nowhere.example")
        assert "DNS" in await refused(ensure(place), "Unreachable")

    async def test_a_slow_server_within_and_beyond_the_limit(self, place: SimulatedPlace) -> None:
        loop = asyncio.get_running_loop()
        place.server.delay = 2.0
        assert (await ensure(place, timeout=600)).performed
        started = loop.time()
        await refused(rotate(place, password_hash=HASH, timeout=3), "Timeout")
        assert loop.time() - started == 3.0
        assert place.users() == {}

    async def test_a_frozen_server(self, place: SimulatedPlace) -> None:
        place.server.freeze()
        await refused(ensure(place, timeout=10), "Timeout")
        waiting = asyncio.create_task(ensure(place, timeout=10), name="waiting")
        await asyncio.sleep(5)
        place.server.thaw()
        assert (await waiting).performed

    async def test_no_free_connection(self, place: SimulatedPlace) -> None:
        place.server.full = True
        await refused(ensure(place), "Overloaded")

    async def test_no_right_to_create(self, place: SimulatedPlace) -> None:
        place.server.denied = True
        assert "OWNER" in (message := await refused(ensure(place), "PermissionDenied")) or "GRANT" in message
        assert place.tables() == {}

    @pytest.mark.parametrize("after", [0, 1, 5, 12, 13])
    async def test_the_connection_breaks_half_way(self, place: SimulatedPlace, after: int) -> None:
        place.server.break_after(after)
        await refused(ensure(place, "2.4"), "Interrupted")
        assert bool(place.tables()) == (place.target.engine == "mysql" and after > 0)
        outcome = await ensure(place, "2.4")
        assert (outcome.performed, outcome.version) == (True, 1)

    async def test_a_half_initialised_simulated_database(self, place: SimulatedPlace) -> None:
        place.database.initialise("2.4", tables=4, version=None)
        assert len(place.tables()) == 4
        assert "completed" in (await ensure(place, "2.4")).message
        place.database.initialise("3.0", version=3)
        assert not (await ensure(place, policy="BumpVersion", version=3)).performed

    @pytest.mark.parametrize(
        ("tls", "reason"),
        [
            (Tls(mode="disable"), ""),
            (Tls(mode="require"), ""),
            (Tls(mode="verify-ca", ca="theirs"), ""),
            (Tls(mode="verify-ca", ca="another"), "TlsFailed"),
            (Tls(mode="verify-full", ca="theirs"), "TlsFailed"),
            (Tls(mode="verify-full", ca="theirs", server_name="database.example"), ""),
        ],
    )
    async def test_certificates_are_verified_by_mode(self, place: SimulatedPlace, tls: Tls, reason: str) -> None:
        place.server.ca, place.server.names = "theirs", frozenset({"database.example"})
        place.target = msgspec.structs.replace(place.target, tls=tls)
        if reason:
            await refused(ensure(place), reason)
        else:
            assert (await ensure(place)).performed

    @pytest.mark.spec("N-74")
    async def test_a_server_that_insists_on_tls(self, place: SimulatedPlace) -> None:
        place.server.insists_on_tls = True
        place.target = msgspec.structs.replace(place.target, tls=Tls(mode="disable"))
        expected = "TlsFailed" if place.target.engine == "mysql" else "AuthenticationFailed"
        await refused(ensure(place), expected)
        for mode in ("prefer", "require"):
            place.target = msgspec.structs.replace(place.target, tls=Tls(mode=mode))  # type: ignore[arg-type]
            await ensure(place)

    async def test_a_server_without_tls(self, place: SimulatedPlace) -> None:
        place.server.tls = False
        place.target = msgspec.structs.replace(place.target, tls=Tls(mode="require"))
        await refused(ensure(place), "TlsFailed")
        place.target = msgspec.structs.replace(place.target, tls=Tls(mode="prefer"))
        assert (await ensure(place)).performed

    async def test_calls_and_writes_are_counted(self, place: SimulatedPlace) -> None:
        await ensure(place)
        writes = place.server.writes
        await ensure(place)
        await place.databases.check(place.target, timeout=1)
        assert place.simulated.calls == {"ensure_schema": 2, "check": 1}
        assert (place.server.writes, place.server.connections) == (writes, 3)


class TestLogin:
    def test_a_simulated_hash_looks_like_bcrypt(self) -> None:
        assert is_bcrypt(simulated_hash("x"))
        assert simulated_hash("x") != simulated_hash("y")

    async def test_the_password_that_was_rotated_in(self, place: SimulatedPlace) -> None:
        await ensure(place)
        await rotate(place, password="first")
        assert place.database.accepts("nacos", "first")
        await rotate(place, password_hash=await bcrypt_hash("second", cost=4))
        assert place.database.accepts("nacos", "second")
        assert not place.database.accepts("nacos", "first")
        assert not place.database.accepts("nobody", "first")

    async def test_the_default_admin(self, place: SimulatedPlace) -> None:
        await ensure(place, "2.0", default_admin=True)
        assert place.database.accepts("nacos", "nacos")
        await rotate(place, password_hash=OTHER_HASH)
        assert not place.database.accepts("nacos", "nacos")
