"""An object that was found to be as desired is not compared again, for as long as both are the same."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.cache.record import Key
from konverge.runtime import NotOwned
from konverge.runtime.containment import first_difference
from tests.runtime.test_context import Cached, Scene, config_map, record, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-25")]

CHILD = Key("shop", "c")


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was compared."""
    seen: list[Any] = []

    def noted(*given: Any) -> str:
        seen.append(given)
        return first_difference(*given)

    monkeypatch.setattr("konverge.runtime.base_context.first_difference", noted)
    return seen


async def test_what_is_as_desired_is_compared_twice_for_all_reconciles(compared: list[Any]) -> None:
    cached = Cached(config_map("u-c", secret(), a="1"))
    for _ in range(4):
        scene = Scene(ConfigMap=cached)
        assert not await scene.ctx.apply(config_map(a="1"))
        assert scene.verbs == []
    assert len(compared) == 2


async def test_a_first_sync_computes_no_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(ConfigMap=Cached(config_map("u-c", secret(), a="1")))
    monkeypatch.delattr("hashlib.blake2b")
    assert not await scene.ctx.apply(config_map(a="1"))
    with pytest.raises(ImportError):
        await scene.ctx.apply(config_map(a="1"))


async def test_another_desired_state_is_compared_and_written(compared: list[Any]) -> None:
    scene = Scene(ConfigMap=Cached(config_map("u-c", secret(), a="1")))
    for _ in range(3):
        assert not await scene.ctx.apply(config_map(a="1"))
    assert await scene.ctx.apply(config_map(a="2"))
    assert len(compared) > 2


async def test_another_state_of_the_object_is_compared_and_written() -> None:
    cached = Cached(config_map("u-c", secret(), a="1"))
    scene = Scene(ConfigMap=cached)
    for _ in range(3):
        assert not await scene.ctx.apply(config_map(a="1"))
    cached.records[CHILD] = record(config_map("u-c", secret(), a="changed by others"))
    assert await scene.ctx.apply(config_map(a="1"))


async def test_what_one_manager_found_says_nothing_to_another(compared: list[Any]) -> None:
    scene = Scene(ConfigMap=Cached(config_map("u-c", secret(), a="1")))
    for _ in range(3):
        assert not await scene.ctx.apply(config_map(a="1"))
    scene.ctx._manager = "another"
    assert not await scene.ctx.apply(config_map(a="1"))
    assert len(compared) == 3


async def test_an_object_of_others_that_is_as_desired_does_not_become_ours() -> None:
    scene = Scene(ConfigMap=Cached(config_map("u-c", a="1")))
    for _ in range(3):
        assert not await scene.ctx.apply(config_map(a="1"), own=False)
    with pytest.raises(NotOwned):
        await scene.ctx.apply(config_map(a="1"))
