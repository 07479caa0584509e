from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge.operators.nacos.database import DatabaseError, bcrypt_hash, drivers, is_bcrypt
from konverge.operators.nacos.database.passwords import Bcrypt, cost_of

NACOS = "$2a$10$EuWPZHzz32dJN7jexM34MOeYirDdFAZm2kuWj7VEOJhhZkDrxfvUu"


@pytest.mark.spec("N-06")
@pytest.mark.parametrize("prefix", ["$2a$", "$2b$", "$2y$"])
async def test_hashes_of_every_prefix_are_checked(prefix: str) -> None:
    hashed = prefix + (await bcrypt_hash("pässword", cost=4))[4:]
    assert is_bcrypt(hashed)
    assert await Bcrypt().matches("pässword", hashed)
    assert not await Bcrypt().matches("password", hashed)


async def test_two_hashes_of_one_password_differ() -> None:
    first, second = await bcrypt_hash("x", cost=4), await bcrypt_hash("x", cost=4)
    assert first != second
    assert await Bcrypt().matches("x", first)


async def test_costs_are_bounded() -> None:
    assert cost_of(await bcrypt_hash("x", cost=-5)) == 4
    assert cost_of(NACOS) == 10


async def test_the_highest_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    class Package:
        @staticmethod
        def gensalt(cost: int) -> int:
            asked.append(cost)
            return cost

        @staticmethod
        def hashpw(password: bytes, salt: int) -> bytes:
            return password + b" salted"

        @staticmethod
        def checkpw(password: bytes, hashed: bytes) -> int:
            asked.append(hashed)
            return 1

    monkeypatch.setitem(drivers._loaded, "bcrypt", Package)  # type: ignore[arg-type]
    for cost in (4, 10, 15, 16):
        assert await bcrypt_hash("é", cost=cost) == "é salted"
    assert await Bcrypt().hash("x") == "x salted"
    assert asked == [4, 10, 15, 15, 10]
    asked.clear()
    assert await Bcrypt().matches("x", NACOS.replace("$10$", "$15$")) is True
    assert not await Bcrypt().matches("x", NACOS.replace("$10$", "$16$"))
    assert not await Bcrypt().matches("x", "no hash")
    assert len(asked) == 1


async def test_a_hash_that_would_take_for_ever_is_not_checked() -> None:
    assert not await Bcrypt().matches("nacos", NACOS.replace("$10$", "$31$"))


@given(st.text())
def test_other_texts_are_no_hashes(text: str) -> None:
    assert not is_bcrypt(text)


@pytest.mark.parametrize("text", [NACOS + "\n", " " + NACOS, NACOS.replace("$10$", "$03$"), NACOS.replace("2a", "2x")])
def test_texts_that_look_almost_like_hashes_are_refused(text: str) -> None:
    assert not is_bcrypt(text)


@pytest.mark.parametrize("password", ["", "a\0b", "x" * 73])
async def test_passwords_that_bcrypt_cannot_tell_apart(password: str) -> None:
    with pytest.raises(DatabaseError) as caught:
        await bcrypt_hash(password, cost=4)
    assert caught.value.reason == "InvalidCredentials"


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(drivers._loaded, "bcrypt", raising=False)
    monkeypatch.setitem(sys.modules, "bcrypt", None)
    with pytest.raises(DatabaseError) as caught:
        await bcrypt_hash("x")
    assert caught.value.reason == "DriverMissing"
    assert "konverge[nacos]" in caught.value.message
