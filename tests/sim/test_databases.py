"""Simulated databases behave as real ones do: the contract, and the switches."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from konverge.operators.nacos.database import Engine, Tls, bcrypt_hash, is_bcrypt
from konverge.sim.databases import simulated_hash
from tests.operators.nacos.database.contract import (
    HASH,
    OTHER_HASH,
    DatabaseContract,
    InputContract,
    ensure,
    refused,
    rotate,
)
from tests.operators.nacos.database.simulated import SimulatedPlace

ENGINES: list[Engine] = ["postgresql", "mysql"]


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest) -> SimulatedPlace:
    return SimulatedPlace(request.param)


@pytest.mark.virtual
class TestSimulatedDatabases(DatabaseContract, InputContract):
    pass


@pytest.mark.virtual
@pytest.mark.spec("N-20")
class TestSwitches:
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
