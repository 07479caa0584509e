"""Events: what goes as planned is Normal, what is wrong is a Warning."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Event
from tests.operators.nacos.world import EMBEDDED, MYSQL, SPACE, STANDALONE, World, a_simulated_world, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(120), pytest.mark.spec("N-17")]

WITH_JOB = {
    **EMBEDDED,
    "database": {"type": "mysql", "mysqlHost": "my", "mysqlCredentialsSecretRef": {"name": "my"}},
    "mysqlInitImage": "mysql:8",
}


async def warnings(world: World) -> set[tuple[str, str]]:
    events = await world.client.list(Event, SPACE)
    return {
        (event.reason or "", event.message or "")
        for event in events
        if event.type == "Warning" and event.involved_object.kind == "Nacos"
    }


@pytest.mark.parametrize("spec", [STANDALONE, EMBEDDED, WITH_JOB], ids=["standalone", "cluster", "mysql"])
async def test_a_creation_and_planned_changes_give_no_warning(spec: dict[str, Any]) -> None:
    async with a_simulated_world() as (world, _), world.operating():
        world.mysql()
        await world.secret("my", username="nacos", password="word")
        await world.up("nacos", spec)
        assert await warnings(world) == set()
        assert {"Creating", "Running"} <= {event.reason for event in await world.client.list(Event, SPACE)}
        await world.update("nacos", image="nacos/nacos-server:v2.5.0")
        if spec["type"] == "cluster":
            await world.update("nacos", replicas=5)
            await world.update("nacos", replicas=3)
        assert await warnings(world) == set()


async def test_what_is_wrong_is_a_warning() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        for number in range(3):
            world.servers.fail(f"nacos-{number}", "Unreachable")
        await world.advance(60.0)
        assert {reason for reason, _ in await warnings(world)} == {"QuorumLost"}
        await world.until("nacos", "Failed")
        assert {reason for reason, _ in await warnings(world)} == {"QuorumLost", "Failed"}


async def test_a_creation_that_does_not_come_up_ends_in_a_warning() -> None:
    async with a_world() as world, world.operating():
        for number in range(3):
            world.servers.fail(f"nacos-{number}", "Unreachable")
        await world.create("nacos", EMBEDDED)
        await world.advance(60.0)
        assert await warnings(world) == set(), "it may only be slow"
        await world.until("nacos", "Failed")
        ((reason, message),) = await warnings(world)
        assert (reason, "not healthy for 180 s" in message) == ("Failed", True)


@pytest.mark.spec("N-03")
async def test_plain_passwords_and_missing_secrets_are_warnings_at_once() -> None:
    async with a_world() as world, world.operating():
        world.mysql()
        await world.create("nacos", {**MYSQL, "adminCredentialsSecretRef": {"name": "none"}, "image": "n:v2.4.3"})
        await world.advance(15.0)
        assert {reason for reason, _ in await warnings(world)} == {"PlainTextPassword", "SecretMissing"}
