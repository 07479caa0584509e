"""Quotas of snapshots: how many, and how much is in them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.objects.kinds.core_v1 import Event
from konverge.operators.wukong.kinds import VirtualMachineSnapshot
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.resource import WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.snapshot_grants import Taking, decide_snapshots, lost_of, snapshots_used
from konverge.operators.wukong.spec_quota import QuotaSpec, SnapshotGrant
from konverge.operators.wukong.status import WITHIN_QUOTA
from konverge.runtime import find_condition, is_true
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.test_quotas import DISK, limit, quota, relimit, said
from tests.operators.wukong.test_snapshots import give, orphan, take, until_phase
from tests.operators.wukong.world import SPACE, World, make_classes, operating, world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-31")]

DISKS = [DISK, DISK | {"name": "data", "size": "5Gi"}]


def taking(name: str, size: str = "10Gi", **more: Any) -> Taking:
    created = more.pop("created", "2026-01-01T00:00:00Z")
    return Taking(name=name, uid=f"uid-{name}", created=created, disks={"a": size}, **more)


def grant(name: str, **disks: str) -> SnapshotGrant:
    return SnapshotGrant(name=name, uid=f"uid-{name}", disks=disks or {"a": "10Gi"})


def names(limits: QuotaSpec, *takings: Taking, granted: tuple[SnapshotGrant, ...] = ()) -> tuple[list[str], list[str]]:
    """What may be taken, and what waits."""
    held, waiting = decide_snapshots(limits, takings, granted)
    return [entry.name for entry in held], [entry.name for entry in waiting]


def test_snapshots_get_their_turn_by_creation_and_small_ones_pass_by() -> None:
    late = taking("a", created="2026-01-02T00:00:00Z")
    assert names(QuotaSpec(snapshots=1), late, taking("b")) == (["b"], ["a"])
    assert names(QuotaSpec(snapshot_storage="12Gi"), taking("a"), taking("b"), taking("c", "2Gi")) == (
        ["a", "c"],
        ["b"],
    )
    assert names(QuotaSpec(snapshots=1, snapshot_storage="10Gi"), taking("a")) == (["a"], []), "what fits exactly fits"


def test_nothing_is_recorded_where_snapshots_are_not_limited() -> None:
    assert decide_snapshots(QuotaSpec(machines=1, storage="1Gi"), [taking("a")], [grant("b")]) == ([], [])


def test_each_limit_is_named_with_what_is_too_much() -> None:
    limits = QuotaSpec(snapshots=1, snapshot_storage="12Gi")
    _, (entry,) = decide_snapshots(limits, [taking("a"), taking("b")], [grant("a")])
    assert (entry.name, entry.uid) == ("b", "uid-b")
    assert entry.message == (
        "snapshots: 1 of 1 in use, 1 more asked for, 1 too much; "
        "snapshotStorage: 10Gi of 12Gi in use, 10Gi more asked for, 8Gi too much"
    )


def test_the_message_says_what_all_before_it_have_been_given() -> None:
    gone = taking("b", "5Gi", lost=True)
    limits = QuotaSpec(snapshots=2, snapshot_storage="12Gi")
    held, (entry,) = decide_snapshots(limits, [taking("a", "3Gi"), gone, taking("c")], [])
    assert [grant.name for grant in held] == ["a", "b"]
    assert entry.message == (
        "snapshots: 2 of 2 in use, 1 more asked for, 1 too much; "
        "snapshotStorage: 3Gi of 12Gi in use, 10Gi more asked for, 1Gi too much"
    )


def test_what_was_begun_or_granted_stays_under_any_limit() -> None:
    none = QuotaSpec(snapshots=0)
    assert names(none, taking("a", begun=True), taking("b"), taking("c"), granted=(grant("c"),)) == (["a", "c"], ["b"])
    assert names(none, granted=(grant("gone"),)) == ([], [])


def test_what_is_in_a_snapshot_counts_as_large_as_it_was() -> None:
    grown = taking("a", "99Gi", begun=True)
    assert decide_snapshots(QuotaSpec(snapshots=1), [grown], [grant("a")])[0] == [grant("a")]
    both = grant("a", a="10Gi", b="5Gi")
    known = Taking(name="a", uid="uid-a", created="", begun=True, contents=frozenset({"b"}))
    assert decide_snapshots(QuotaSpec(snapshots=1), [known], [both])[0] == [grant("a", b="5Gi")]
    use = snapshots_used([both, grant("b")])
    assert (use.snapshots, use.snapshot_storage, use.machines, use.storage) == (2, "25Gi", 0, "0")


@pytest.mark.spec("W-41")
def test_a_snapshot_that_is_lost_takes_a_place_and_no_storage_and_its_sizes_are_kept() -> None:
    lost = taking("a", "99Gi", begun=True, lost=True, contents=frozenset({"a"}))
    granted = grant("a", a="4Gi", b="1Gi")
    held, waiting = decide_snapshots(QuotaSpec(snapshot_storage="10Gi"), [lost, taking("b")], [granted])
    assert (held, waiting) == ([grant("a", a="4Gi"), grant("b")], [])
    use = snapshots_used(held, lost_of([lost, taking("b")]))
    assert (use.snapshots, use.snapshot_storage) == (2, "10Gi")
    assert names(QuotaSpec(snapshots=1), lost, taking("b"), granted=(granted,)) == (["a"], ["b"])


async def within(w: World, name: str) -> tuple[str, str]:
    found = find_condition((await w.client.get(WukongSnapshot, name, SPACE)).status.conditions, "WithinQuota")
    return ("", "") if found is None else (found.status, found.reason)


async def test_a_snapshot_over_the_quota_waits_says_why_and_gets_its_turn() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, snapshots=5, snapshotStorage="20Gi")
        await w.running(disks=DISKS)
        await take(w, "first")
        await until_phase(w, "first", "Succeeded")
        assert await within(w, "first") == ("True", "Granted")
        await take(w, "second")
        expected = "WukongQuota default: snapshotStorage: 15Gi of 20Gi in use, 15Gi more asked for, 10Gi too much"

        async def refused() -> bool:
            return await within(w, "second") == ("False", "QuotaExceeded")

        await w.until(refused, "the refusal")
        result = await w.client.get(WukongSnapshot, "second", SPACE)
        assert (result.status.phase, result.status.error) == ("Pending", expected)
        assert await w.find(VirtualMachineSnapshot, "second") is None
        events = await w.client.list(Event, SPACE, field_selector="reason=QuotaExceeded")
        assert [event.message for event in events] == [expected]
        status = (await quota(w)).status
        assert (status.used.snapshots, status.used.snapshot_storage, status.used.storage) == (1, "15Gi", "15Gi")
        assert [(entry.name, entry.disks) for entry in status.snapshots] == [
            ("first", {"data": "5Gi", "system": "10Gi"})
        ]
        assert await said(w) == ("Enforced", "1 wait")
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []
        await w.client.delete(WukongSnapshot, "first", SPACE)
        await until_phase(w, "second", "Succeeded")
        assert [entry.name for entry in (await quota(w)).status.snapshots] == ["second"]


async def test_a_snapshot_outlives_its_machine_and_still_counts() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, snapshots=1)
        await w.running(disks=[DISK])
        await take(w, "kept")
        await until_phase(w, "kept", "Succeeded")
        await w.delete()
        await w.running("other", disks=[DISK])
        await take(w, "next", "other")
        await until_phase(w, "next", "Pending")
        await asyncio.sleep(60)
        assert await within(w, "next") == ("False", "QuotaExceeded")
        await w.client.delete(WukongSnapshot, "kept", SPACE)
        await until_phase(w, "next", "Succeeded")


async def test_what_was_taken_before_the_limit_counts_and_stays() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        for name in ("a", "b"):
            await take(w, name)
            await until_phase(w, name, "Succeeded")
        await limit(w, machines=5)
        await asyncio.sleep(10)
        assert (await quota(w)).status.snapshots == []
        await relimit(w, snapshots=1)
        await asyncio.sleep(10)
        assert (await quota(w)).status.used.snapshot_storage == "30Gi"
        reason, message = await said(w)
        assert (reason, message.startswith("snapshots: 2 of 1 in use")) == ("BelowUse", True)
        await take(w, "c")
        await until_phase(w, "c", "Pending")
        await relimit(w, snapshots=None)
        await until_phase(w, "c", "Succeeded")
        assert await within(w, "c") == ("", "")


async def test_of_many_at_once_as_many_are_taken_as_fit() -> None:
    async with world(timings=QUICK) as w, operating(w.client):
        await limit(w, snapshots=3)
        await w.running(disks=[DISK])
        await asyncio.gather(*(take(w, f"s{number}") for number in range(8)))
        for _ in range(60):
            await asyncio.sleep(1)
            assert len((await w.client.list(VirtualMachineSnapshot, SPACE)).items) <= 3
        phases = [snapshot.status.phase for snapshot in await w.client.list(WukongSnapshot, SPACE)]
        assert sorted(phases) == ["Pending"] * 5 + ["Succeeded"] * 3


async def test_a_schedule_says_that_its_snapshot_waits_for_the_quota() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, snapshots=0)
        await w.running(disks=[DISK])
        spec = {"wukongName": "web", "schedule": "@every 1h", "immediate": True}
        head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongSnapshotSchedule"}
        await w.client.create({**head, "metadata": {"name": "hourly", "namespace": SPACE}, "spec": spec})

        async def ready(reason: str) -> bool:
            schedule = await w.client.get(WukongSnapshotSchedule, "hourly", SPACE)
            found = find_condition(schedule.status.conditions, "Ready")
            return found is not None and found.reason == reason

        await w.until(lambda: ready("QuotaExceeded"), "the schedule's word")
        await relimit(w, snapshots=2)
        await w.until(lambda: ready("Scheduled"), "the schedule's peace")


async def test_killed_after_every_write_no_snapshot_slips_through() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        await cluster.settle()
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(w.client):
            await w.create(disks=[DISK])
            await w.phase("Running")
        await limit(w, snapshots=1)
        await take(w, "a")
        await take(w, "b")

        async def one_is_taken() -> bool:
            assert len((await w.client.list(VirtualMachineSnapshot, SPACE)).items) <= 1
            found = [await w.client.get(WukongSnapshot, name, SPACE) for name in ("a", "b")]
            return sorted(snapshot.status.phase for snapshot in found) == ["Pending", "Succeeded"]

        await by_mortals(w, one_is_taken)
        for snapshot in [await w.client.get(WukongSnapshot, name, SPACE) for name in ("a", "b")]:
            taken = snapshot.status.phase == "Succeeded"
            assert is_true(snapshot.status.conditions, WITHIN_QUOTA) == taken  # it had died before it could say so


@pytest.mark.spec("W-41")
async def test_a_snapshot_that_was_deleted_behind_its_back_is_lost_and_not_taken_again() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, snapshots=2, snapshotStorage="10Gi")
        await w.running(disks=DISKS[:1])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")
        await w.client.delete(VirtualMachineSnapshot, "before", SPACE)
        lost = await until_phase(w, "before", "Failed")
        ready = find_condition(lost.status.conditions, "Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("False", "SnapshotLost")
        assert lost.status.error == "VirtualMachineSnapshot before, which was taken, is not there any more"
        await asyncio.sleep(600)
        assert await w.find(VirtualMachineSnapshot, "before") is None
        await take(w, "after")
        await until_phase(w, "after", "Succeeded")
        assert (await until_phase(w, "before", "Failed")).status.error == lost.status.error


@pytest.mark.spec("W-41")
async def test_a_snapshot_that_comes_back_counts_as_large_as_it_was() -> None:
    async with world(timings=QUICK) as w:
        await limit(w, snapshotStorage="15Gi")
        await w.running(disks=[DISK])
        await take(w, "before")
        await until_phase(w, "before", "Succeeded")

        async def storage(expected: str) -> None:
            async def used() -> bool:
                return (await quota(w)).status.used.snapshot_storage == expected

            await w.until(used, f"{expected} in use")

        await storage("10Gi")
        owners = await orphan(w, "before")
        await storage("0")
        await w.change(disks=[DISK | {"size": "12Gi"}])

        async def grown() -> bool:
            return [volume.size for volume in (await w.wukong()).status.volumes] == ["12Gi"]

        await w.until(grown, "a larger disk")
        await take(w, "after")
        await until_phase(w, "after", "Succeeded")
        await storage("12Gi")
        await give(w, "before", owners)
        await storage("22Gi")
        assert (await said(w))[0] == "BelowUse"
        await asyncio.sleep(60)
        w.writes()
        await asyncio.sleep(300)
        assert w.writes() == []
