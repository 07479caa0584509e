"""The status as kubectl and kstatus (Helm, Flux, Argo CD) read it."""

from __future__ import annotations

import doctest
from typing import Any

import pytest

from konverge.operators.nacos import resource
from konverge.operators.nacos.resource import PAUSE, Nacos
from tests.operators.nacos.world import EMBEDDED, SPACE, STANDALONE, World, a_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-17")]


def kstatus(obj: dict[str, Any]) -> str:
    """Upstream: kstatus' status.Compute for a custom resource (checkGenericProperties, then Ready)."""
    status = obj.get("status", {})
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if status.get("observedGeneration", obj["metadata"]["generation"]) != obj["metadata"]["generation"]:
        return "InProgress"
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", ())}
    if conditions.get("Reconciling") == "True":
        return "InProgress"
    if conditions.get("Stalled") == "True":
        return "Failed"
    return "Current" if conditions.get("Ready", "True") == "True" else "InProgress"


def wait_is_over(obj: dict[str, Any], type: str = "Ready") -> bool:
    """Upstream: ConditionalWait.checkCondition (kubectl/pkg/cmd/wait/condition.go)."""
    for entry in obj["status"].get("conditions", ()):
        if entry["type"].lower() == type.lower():
            seen = entry.get("observedGeneration", obj["status"].get("observedGeneration", 0))
            return seen >= obj["metadata"]["generation"] and entry["status"].lower() == "true"
    return False


async def plain(world: World) -> dict[str, Any]:
    return await world.client.get(Nacos.resource, "nacos", SPACE)


def test_the_examples_in_the_code() -> None:
    assert doctest.testmod(resource).failed == 0
    assert doctest.testmod(resource).attempted > 0


async def test_a_new_resource_is_not_ready_before_it_is_seen() -> None:
    async with a_world() as world:
        await world.create("nacos", STANDALONE)
        fresh = await plain(world)
        assert "Ready" not in str(fresh["status"].get("conditions")), "no operator runs"
        assert kstatus(fresh) == "InProgress"
        async with world.operating():
            await world.until("nacos", "Creating")
            assert (kstatus(await plain(world)), wait_is_over(await plain(world))) == ("InProgress", False)
            await world.until("nacos")
            done = await plain(world)
            assert (kstatus(done), wait_is_over(done)) == ("Current", True)
            assert done["status"]["conditions"][0]["type"] == "leader", "the document's entries come first"
            assert done["status"]["conditions"][1:] == done["status"]["kubeConditions"]


async def test_servers_and_conditions_share_the_list() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        status = (await plain(world))["status"]
        servers = [entry for entry in status["conditions"] if "podName" in entry]
        assert [(entry["type"], entry["status"], entry["podName"]) for entry in servers] == [
            ("leader", "true", "nacos-0"),
            ("follower", "true", "nacos-1"),
            ("follower", "true", "nacos-2"),
        ]
        assert status["conditions"][:3] == servers, "the document's entries come first"
        assert all("lastTransitionTime" not in entry for entry in servers)
        assert status["conditions"][3:] == status["kubeConditions"]
        assert {"Ready", "Available", "Reconciling", "Stalled"} <= {entry["type"] for entry in status["kubeConditions"]}
        version = (await plain(world))["metadata"]["resourceVersion"]
        await world.advance(300.0)
        assert (await plain(world))["metadata"]["resourceVersion"] == version, "a write without a cause"


async def test_a_change_is_in_progress_until_it_is_done() -> None:
    async with a_world() as world, world.operating():
        await world.up("nacos", EMBEDDED)
        await world.change("nacos", replicas=5)
        seen = set()
        while (now := kstatus(await plain(world))) != "Current":
            seen.add((now, wait_is_over(await plain(world))))
            await world.advance(1.0)
        assert seen == {("InProgress", False)}
        assert wait_is_over(await plain(world))
        assert len((await world.nacos("nacos")).status.servers) == 5


async def test_a_change_of_a_service_alone_counts_when_it_is_seen() -> None:
    """No pod changes, and still Ready is of the new generation before kubectl and kstatus call it done."""
    async with a_world() as world, world.operating():
        await world.up("nacos", STANDALONE)
        await world.change("nacos", service={"type": "NodePort"})
        while not wait_is_over(await plain(world)):
            assert kstatus(await plain(world)) == "InProgress"
            await world.advance(1.0)
        assert kstatus(await plain(world)) == "Current"


async def test_what_only_the_user_can_repair_has_failed() -> None:
    """By a Secret without its key (301) at once; by servers that do not come up after three minutes."""
    async with a_world() as world, world.operating():
        await world.postgres()
        await world.replace_secret("admin", other="x")
        spec = {
            **EMBEDDED,
            "database": {"type": "postgresql"},
            "postgres": {"host": "pg", "database": "nacos", "credentialsSecretRef": {"name": "pg"}},
            "adminCredentialsSecretRef": {"name": "admin"},
        }
        await world.create("nacos", spec)
        await world.advance(20.0)
        assert kstatus(await plain(world)) == "Failed"
        await world.replace_secret("admin", username="nacos", password="first")
        await world.until("nacos")
        assert kstatus(await plain(world)) == "Current"
        for number in range(3):
            world.servers.fail(f"nacos-{number}", "Unreachable")
        await world.advance(60.0)
        assert kstatus(await plain(world)) == "InProgress", "it may come back by itself"
        await world.until("nacos", "Failed")
        assert kstatus(await plain(world)) == "Failed"
        world.servers.faults.clear()
        await world.until("nacos")
        assert kstatus(await plain(world)) == "Current"


async def test_a_paused_resource_shows_it() -> None:
    async with a_world() as world, world.operating():
        await world.create("nacos", STANDALONE, annotations={PAUSE: "true"})
        await world.advance(5.0)
        assert wait_is_over(await plain(world), "Paused")
        assert kstatus(await plain(world)) == "InProgress"
