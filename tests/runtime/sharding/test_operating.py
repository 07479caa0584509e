"""What a sharded manager says about itself, what runs once in the group, and what may not be declared."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client, MergePatch, NotConnected
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.runtime import Manager
from konverge.runtime.election import Timing
from konverge.runtime.elector import LeadershipLost
from konverge.runtime.manager import LeaderElection
from konverge.runtime.sharding import Sharding
from konverge.runtime.tasks.manager_tasks import TaskContext
from tests.runtime.objects import SPACE, secret
from tests.runtime.sharding.test_manager import Process
from tests.runtime.test_manager_settings import scrape

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-82")]


async def test_metrics_and_probes_show_the_group_and_our_part(server: ApiServer, client: Client) -> None:
    for number in range(30):
        await client.create(secret(f"s{number}"))
    first = Process(server, "first")
    await asyncio.sleep(5)
    second = Process(server, "second")
    await asyncio.sleep(5)
    samples = [await scrape(process.manager) for process in (first, second)]
    assert [s["sharding_members", "op"] for s in samples] == [2, 2]
    assert sum(s["sharding_keys_owned", "op"] for s in samples) == 30
    assert sum(s["sharding_slots_owned", "op"] for s in samples) == 1024
    assert sum(s["leader_election_master_status", "op"] for s in samples) == 1
    assert samples[0]["sharding_handovers_total", "op"] == 2, "its own begin, and the second's"
    assert first.manager.health.ready["sharding"]() == ""
    first.wire.away = True
    await asyncio.sleep(11)
    assert "no valid Lease" in first.manager.health.ready["sharding"]()
    first.wire.away = False
    await first.end()
    await second.end()


async def test_what_holds_up_a_hand_over_is_said(server: ApiServer, client: Client) -> None:
    first = Process(server, "first", drain_timeout=30.0)
    await asyncio.sleep(3)
    first.seconds = 20.0
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(1)
    second = Process(server, "second")
    await asyncio.sleep(5)
    name = first.manager.shares.replica.leases.own  # type: ignore[union-attr]
    assert second.manager.health.remarks["sharding"]() == f"a hand-over waits for {name}"
    first.seconds = 0.0
    await asyncio.sleep(60)
    assert second.manager.health.remarks["sharding"]() == ""
    await first.end()
    await second.end()


async def test_tasks_of_the_leader_run_on_one_replica_and_move_with_it(server: ApiServer, client: Client) -> None:
    running: list[str] = []

    def add_task(process: Process) -> None:
        async def once(ctx: TaskContext) -> None:
            running.append(process.name)
            try:
                await ctx.stop.wait()
            finally:
                running.remove(process.name)

        process.manager.add_task(once, leader_only=True)

    processes = []
    for name in ("first", "second"):
        process = Process(server, name)
        add_task(process)
        processes.append(process)
        await asyncio.sleep(5)
    assert running == ["first"]
    await processes[0].end()
    await asyncio.sleep(1)
    assert running == ["second"]
    await processes[1].end()
    assert running == []


async def test_a_replica_that_fell_silent_ends_the_tasks_of_the_leader(server: ApiServer, client: Client) -> None:
    running: list[str] = []

    def add_task(process: Process) -> None:
        async def once(ctx: TaskContext) -> None:
            assert not running, "at two replicas at once"
            running.append(process.name)
            try:
                await asyncio.Event().wait()
            finally:
                running.remove(process.name)

        process.manager.add_task(once, leader_only=True)

    processes = []
    for name in ("first", "second"):
        process = Process(server, name)
        add_task(process)
        processes.append(process)
        await asyncio.sleep(5)
    assert running == ["first"]
    processes[0].wire.away = True
    await asyncio.sleep(40)
    assert running == ["second"]
    processes[0].wire.away = False
    await asyncio.sleep(40)
    assert len(running) == 1
    for process in processes:
        await process.end()
    assert running == []


async def test_a_replica_that_comes_back_works_and_leads_again(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    first = Process(server, "first")
    await asyncio.sleep(5)
    replica = first.manager.shares.replica  # type: ignore[union-attr]
    assert replica.is_first
    first.wire.away = True
    await asyncio.sleep(30)
    assert (replica.is_first, replica.membership.share) == (False, frozenset())
    text = f"the Lease {replica.leases.own} was not renewed in time: this replica works on nothing"
    assert caplog.messages.count(text) == 1
    first.wire.away = False
    await asyncio.sleep(30)
    assert (replica.is_first, len(replica.membership.share)) == (True, 1024)
    await first.end()
    assert replica.membership.me is None, "a Lease that was released is nobody's"


async def test_a_lease_that_is_deleted_by_hand_costs_a_moment(server: ApiServer, client: Client) -> None:
    first, second = Process(server, "first"), Process(server, "second")
    for number in range(20):
        await client.create(secret(f"s{number}"))
    await asyncio.sleep(10)
    for lease in (await client.list(Lease, SPACE)).items:
        await client.delete(Lease, lease.metadata.name, SPACE)
    await asyncio.sleep(30)
    first.worked.clear()
    second.worked.clear()
    for number in range(20):
        await client.patch("secrets", f"s{number}", MergePatch({"metadata": {"labels": {"a": "b"}}}), SPACE)
    await asyncio.sleep(1)
    assert sorted(first.worked + second.worked) == sorted(f"s{number}" for number in range(20))
    assert first.worked
    assert second.worked
    await first.end()
    await second.end()


async def test_a_plugin_that_fails_in_its_own_way_costs_an_attempt(server: ApiServer, client: Client) -> None:
    """Credentials come from code of others: what it raises ends neither a member nor the sharder."""
    first = Process(server, "first")
    await asyncio.sleep(5)
    replica = first.manager.shares.replica  # type: ignore[union-attr]
    failed: list[str] = []

    def fail_once(target: Any, name: str) -> None:
        working = getattr(target, name)

        async def call(*arguments: Any, **options: Any) -> Any:
            if name not in failed:
                failed.append(name)
                raise RuntimeError("the plugin is broken")
            return await working(*arguments, **options)

        setattr(target, name, call)

    fail_once(replica._client, "get")
    fail_once(replica, "_write_assignment")
    touched = MergePatch({"metadata": {"annotations": {"touched": "yes"}}})
    await client.patch(Lease, replica.leases.own, touched, SPACE)
    second = Process(server, "second")
    await asyncio.sleep(10)
    assert sorted(failed) == ["_write_assignment", "get"]
    assert not first.serving.done()
    shares = [process.manager.shares.replica.membership.share for process in (first, second)]  # type: ignore[union-attr]
    assert sum(map(len, shares)) == 1024
    assert all(shares)
    await first.end()
    await second.end()


async def test_all_leases_of_a_group_have_its_timing(server: ApiServer, client: Client) -> None:
    process = Process(server, "first", timing=Timing(lease_duration=60, renew_deadline=40, retry_period=5))
    await asyncio.sleep(10)
    leases = {lease.metadata.name: lease.spec for lease in (await client.list(Lease, SPACE)).items}
    own = process.manager.shares.replica.leases.own  # type: ignore[union-attr]
    assert (leases[own].lease_duration_seconds, leases["op"].lease_duration_seconds) == (60, 60)
    await process.end()


async def test_who_ends_releases_its_lease(server: ApiServer, client: Client) -> None:
    first = Process(server, "first")
    await asyncio.sleep(5)
    name = first.manager.shares.replica.leases.own  # type: ignore[union-attr]
    assert (await client.get(Lease, name, SPACE)).spec.holder_identity
    await first.end()
    assert not (await client.get(Lease, name, SPACE)).spec.holder_identity


@pytest.mark.parametrize("error", [NotConnected("away"), RuntimeError("the plugin is broken"), LeadershipLost("no")])
async def test_a_sharder_that_cannot_write_tries_again_after_a_pause(server: ApiServer, error: Exception) -> None:
    first = Process(server, "first")
    await asyncio.sleep(5)
    replica, attempts = first.manager.shares.replica, 0  # type: ignore[union-attr]
    writing = replica._write_assignment

    async def fail(*_: Any) -> None:
        nonlocal attempts
        attempts += 1
        await asyncio.sleep(0.001)
        raise error

    replica._write_assignment = fail  # type: ignore[method-assign]
    second = Process(server, "second")
    await asyncio.sleep(10)
    assert 2 < attempts < 300
    assert second.manager.shares.replica.not_ready()  # type: ignore[union-attr]
    replica._write_assignment = writing  # type: ignore[method-assign]
    await asyncio.sleep(10)
    assert not second.manager.shares.replica.not_ready()  # type: ignore[union-attr]
    for process in (first, second):
        await process.end()


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="leader_election or sharding"):
        Manager(sharding=Sharding(name="a"), leader_election=LeaderElection(name="a"))
    with pytest.raises(ValueError, match="by='key'"):
        Sharding(name="a", by="uid")  # type: ignore[arg-type]
    for wrong in ({"drain_timeout": -1}, {"replicas": 0}):
        with pytest.raises(ValueError, match="drain_timeout"):
            Sharding(name="a", **wrong)
    assert Sharding(name="a", replicas=1, drain_timeout=0).replicas == 1
