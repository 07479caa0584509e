"""While nothing happens: servers are asked as often as ever, and no child is compared with what it should be again."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Service
from konverge.runtime.containment import first_difference
from tests.operators.nacos.world import EMBEDDED, SPACE, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-78")]


async def test_rounds_at_rest_ask_every_server_and_compare_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def noted(*given: Any) -> str:
        compared.append(given)
        return first_difference(*given)

    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        await world.advance(120.0)
        monkeypatch.setattr("konverge.runtime.base_context.first_difference", noted)
        world.servers.calls.clear()
        await world.advance(120.0)
        asked = [pod for pod, _ in world.servers.calls]
        assert min(asked.count(f"nacos-{number}") for number in range(3)) >= 3, "every half minute"
        assert compared == []
        patch = MergePatch({"spec": {"selector": {"app": "another"}}})
        await world.client.patch(Service, "nacos-client", patch, SPACE)
        await world.advance(5.0)
        assert compared, "what others change is compared, and put right"
        service = await world.client.get(Service, "nacos-client", SPACE)
        assert service.spec.selector["app"] == "nacos"


async def test_a_server_that_fails_is_noticed_in_the_next_round() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        await world.advance(120.0)
        world.servers.fail("nacos-1", "Timeout")
        await world.advance(33.5)  # the longest time between two rounds, and one question
        nacos = await world.nacos("nacos")
        assert not nacos.status.healthy
        assert "nacos-1" in nacos.status.event[-1].message
