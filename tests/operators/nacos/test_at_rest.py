"""While nothing happens: servers are asked as often as ever, and no child is compared with what it should be again; the
steps themselves run every five minutes, and as soon as anything is not as it was."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.core_v1 import Service
from konverge.operators.nacos import operator
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.steps import STEPS, ReconcileState
from konverge.operators.nacos.steps.outcome import CONTINUE, Outcome
from konverge.runtime.containment import first_difference
from tests.operators.nacos.world import EMBEDDED, MYSQL, SPACE, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-78")]


async def test_rounds_at_rest_ask_every_server_and_compare_no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []

    def noted(*given: Any) -> str:
        compared.append(given)
        return first_difference(*given)

    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        await world.advance(1000.0)
        monkeypatch.setattr("konverge.runtime.base_context.first_difference", noted)
        world.servers.calls.clear()
        await world.advance(240.0)
        asked = [pod for pod, _ in world.servers.calls]
        assert min(asked.count(f"nacos-{number}") for number in range(3)) >= 7, "every half minute"
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


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The resources of the reconciles in which the steps ran, in order."""
    ran: list[str] = []

    async def note(state: ReconcileState) -> Outcome:
        ran.append(state.key.name)
        return CONTINUE

    monkeypatch.setattr(operator, "STEPS", (note, *STEPS))
    return ran


@pytest.mark.spec("N-79")
class TestWholeReconciles:
    async def test_the_steps_run_every_five_minutes(self, whole: list[str]) -> None:
        async with a_world() as world, world.operating():
            await world.up("nacos", EMBEDDED)
            await world.advance(120.0)
            whole.clear()
            world.servers.calls.clear()
            await world.advance(1000.0)
            asked = [pod for pod, _ in world.servers.calls].count("nacos-0")
            assert 30 <= asked <= 38, "every half minute"
            assert 2 <= len(whole) <= 4

    async def test_with_a_database_every_minute(self, whole: list[str]) -> None:
        async with a_world() as world, world.operating():
            world.mysql()
            await world.up("nacos", MYSQL)
            await world.advance(120.0)
            whole.clear()
            await world.advance(600.0)
            assert 6 <= len(whole) <= 10

    async def test_what_servers_say_otherwise_is_in_the_status_after_the_next_look(self) -> None:
        async with a_world() as world, world.operating():
            await world.up("nacos", EMBEDDED)
            await world.advance(120.0)
            world.servers.leading = 2
            await world.advance(33.5)
            assert (await world.nacos("nacos")).status.leader == "nacos-2"

    async def test_a_status_that_another_client_wrote_is_put_right_after_the_next_look(self) -> None:
        async with a_world() as world, world.operating():
            await world.up("nacos", EMBEDDED)
            await world.advance(120.0)
            patch = MergePatch({"status": {"phase": "Failed"}})
            await world.client.patch(Nacos, "nacos", patch, SPACE, subresource="status")
            await world.advance(33.5)
            assert (await world.nacos("nacos")).status.phase == "Running"

    async def test_a_change_is_answered_at_once(self, whole: list[str]) -> None:
        async with a_world() as world, world.operating():
            await world.up("nacos", EMBEDDED)
            await world.up("other", EMBEDDED)
            await world.advance(120.0)
            whole.clear()
            await world.client.delete(Service, "nacos-client", SPACE)
            await world.advance(1.0)
            assert set(whole) == {"nacos"}
            service = await world.client.get(Service, "nacos-client", SPACE)
            assert service.spec.selector["app"] == "nacos"

    async def test_a_resource_of_the_same_name_is_not_taken_for_the_one_at_rest(self, whole: list[str]) -> None:
        async with a_world() as world, world.operating():
            await world.up("nacos", EMBEDDED)
            await world.advance(120.0)
            await world.client.delete(Nacos, "nacos", SPACE)
            await world.advance(60.0)
            whole.clear()
            await world.up("nacos", EMBEDDED)
            assert whole
