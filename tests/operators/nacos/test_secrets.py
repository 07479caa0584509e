"""Changed Secrets reach the pods by a rolling update, also an identity that old servers refuse."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import MergePatch
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import Pod, Secret
from konverge.operators.nacos.names import SECRETS_DIGEST
from tests.operators.nacos.world import CLUSTER, POSTGRES, SPACE, World, a_simulated_world, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.limit(180)]
THIRD: dict[str, Any] = {**CLUSTER, "image": "nacos/nacos-server:v3.0.3"}


async def digests(world: World) -> set[str]:
    pods = await world.client.list(Pod, SPACE, label_selector="app=nacos")
    return {pod.metadata.annotations.get(SECRETS_DIGEST, "") for pod in pods}


@pytest.mark.spec("N-15")
async def test_a_regenerated_secret_is_rolled_out_follower_by_follower() -> None:
    async with a_simulated_world(nodes=4) as (world, simulated), world.operating():
        await world.up("nacos", THIRD)
        leader, (before,) = simulated.leader(), await digests(world)
        await world.client.delete(Secret, "nacos-auth", SPACE)
        assert await world.until_ready() >= 2
        (after,) = await digests(world)
        assert before != after
        order = world.replaced()
        assert sorted(order) == ["nacos-0", "nacos-1", "nacos-2"]
        assert order[-1] == leader
        assert not await world.events("Failed"), "it needs no failure"
        assert not await world.events("Healing")


@pytest.mark.spec("N-15")
async def test_labels_that_others_took_from_the_secret_come_back_and_its_values_stay() -> None:
    async with a_simulated_world(nodes=4) as (world, _), world.operating():
        await world.up("nacos", THIRD)
        uids = await world.uids()
        before = await world.client.get(Secret, "nacos-auth", SPACE)
        bare = MergePatch({"metadata": {"labels": {"app": None, "theirs": "stays"}}})
        await world.client.patch(Secret, "nacos-auth", bare, SPACE)
        await world.advance(60.0)
        after = await world.client.get(Secret, "nacos-auth", SPACE)
        assert after.metadata.labels == {**before.metadata.labels, "theirs": "stays"}
        assert (after.data, after.metadata.owner_references) == (before.data, before.metadata.owner_references)
        assert await world.restarted(uids) == []


@pytest.mark.spec("N-15")
async def test_a_changed_password_of_the_database_reaches_the_servers() -> None:
    async with a_world() as world, world.operating():
        server = await world.postgres()
        await world.up("nacos", POSTGRES)
        (before,) = await digests(world)
        server.users["nacos"] = "other"
        await world.replace_secret("pg", username="nacos", password="other")
        await world.advance(5.0)
        await world.until("nacos")
        (after,) = await digests(world)
        assert before != after
        assert sorted(world.replaced()) == ["nacos-0", "nacos-1", "nacos-2"]


@pytest.mark.spec("N-15", "N-20")
async def test_a_missing_secret_restarts_no_pod() -> None:
    async with a_world() as world, world.operating():
        await world.postgres()
        await world.secret("token", token="c2VjcmV0")
        auth = {"enabled": True, "tokenSecretRef": {"name": "token"}}
        await world.up("nacos", {**POSTGRES, "certification": auth})
        template = (await world.client.get(StatefulSet, "nacos", SPACE)).spec.template
        await world.client.delete(Secret, "token", SPACE)
        await world.advance(60.0)
        assert (await world.client.get(StatefulSet, "nacos", SPACE)).spec.template == template
        assert not world.replaced()


@pytest.mark.spec("N-15")
async def test_labels_of_a_secret_restart_no_pod() -> None:
    async with a_world() as world, world.operating():
        await world.postgres()
        await world.up("nacos", POSTGRES)
        await world.client.patch(Secret, "pg", MergePatch({"metadata": {"labels": {"team": "a"}}}), SPACE)
        await world.advance(60.0)
        assert not world.replaced()
