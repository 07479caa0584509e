"""Schedules of snapshots: when they are taken, what is deleted again, and what is left alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import clock
from konverge.client import Conflict, Invalid, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Event
from konverge.objects.meta import ObjectMeta
from konverge.objects.times import parse_time
from konverge.operators.wukong import names
from konverge.operators.wukong.kinds import VirtualMachineSnapshot
from konverge.operators.wukong.operator import OPERATOR
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.schedules import SCHEDULES, ScheduleReconciler
from konverge.runtime import find_condition
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import QUICK, SimulatedKubeVirt
from konverge.sim.kubevirt.faults import CONFIG_MAP
from tests.operators.wukong.stage import Stage, made, refused
from tests.operators.wukong.test_killed import by_mortals
from tests.operators.wukong.test_retention import day
from tests.operators.wukong.test_snapshots import DISKS, give, orphan, take
from tests.operators.wukong.world import SPACE, World, make_classes, operating, world
from tests.sim.kubevirt.conftest import kinds_of_volume_snapshots

pytestmark = [pytest.mark.virtual, pytest.mark.spec("W-19")]

MINUTE = 60.0
NIGHTLY = "nightly"


async def schedule(w: World, name: str = NIGHTLY, **spec: Any) -> None:
    made = {"wukongName": "web", "schedule": "0 3 * * *", **spec}
    head = {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongSnapshotSchedule"}
    await w.client.create({**head, "metadata": {"name": name, "namespace": SPACE}, "spec": made})


async def change(w: World, **spec: Any) -> None:
    await w.client.patch(WukongSnapshotSchedule, NIGHTLY, MergePatch({"spec": spec}), SPACE)


async def seen(w: World, name: str = NIGHTLY) -> WukongSnapshotSchedule:
    return await w.client.get(WukongSnapshotSchedule, name, SPACE)


async def ready(w: World, name: str = NIGHTLY) -> tuple[str, str]:
    condition = find_condition((await seen(w, name)).status.conditions, "Ready")
    return ("", "") if condition is None else (condition.status, condition.reason)


async def starts(w: World, name: str = NIGHTLY) -> list[str]:
    """The starts of the schedule's snapshots."""
    listed = await w.client.list(WukongSnapshot, SPACE, label_selector=f"{names.SCHEDULE}={name}")
    return sorted(item.metadata.annotations[names.SCHEDULED_AT][5:16] for item in listed)


async def until(moment: str) -> None:
    """Wait for a time of January 2026, in UTC: `02T03:01`. Tests begin with the first of the month."""
    await asyncio.sleep((parse_time(f"2026-01-{moment}:00Z") - clock.utc_now()).total_seconds())


async def events(w: World) -> list[str]:
    listed = await w.client.list(Event, SPACE, field_selector="involvedObject.kind=WukongSnapshotSchedule")
    return sorted(event.reason or "" for event in listed)


async def test_snapshots_are_taken_at_their_times_and_the_oldest_go() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "by-hand")
        await schedule(w, timeZone="Asia/Shanghai", retention={"keepLast": 2})
        await until("01T18:00")
        assert await starts(w) == []
        assert (await seen(w)).status.next_schedule_time == "2026-01-01T19:00:00Z", "three o'clock in Shanghai"
        assert await ready(w) == ("True", "Scheduled")
        await until("01T19:01")
        assert await starts(w) == ["01-01T19:00"]
        status = (await seen(w)).status
        assert (status.last_snapshot, status.snapshots) == ("nightly-20260101190000", 1)
        assert (status.last_schedule_time, status.last_successful_time) == ("2026-01-01T19:00:00Z",) * 2
        await until("04T19:01")
        assert await starts(w) == ["01-03T19:00", "01-04T19:00"]
        assert (await seen(w)).status.snapshots == 2
        assert await w.find(WukongSnapshot, "by-hand") is not None
        assert set(await events(w)) == {"SnapshotScheduled", "SnapshotExpired"}
        w.writes()
        await until("05T18:59")
        assert w.writes() == [], "between two starts nothing is written"


async def test_the_snapshots_outlive_the_schedule_and_a_new_one_leaves_them_alone() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", retention={"keepLast": 2})
        await until("01T03:01")
        await w.client.delete(WukongSnapshotSchedule, NIGHTLY, SPACE)
        await until("01T03:10")
        assert await starts(w) == ["01-01T02:00", "01-01T03:00"]
        await schedule(w, schedule="@hourly", retention={"keepLast": 1})
        await until("01T06:01")
        assert await starts(w) == ["01-01T02:00", "01-01T03:00", "01-01T06:00"], "those have another schedule's uid"


async def test_starts_that_were_missed_make_one_snapshot() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(cluster.client):
            await w.running(disks=DISKS)
            await schedule(w, schedule="@hourly")
            await schedule(w, "strict", schedule="@hourly", startingDeadlineSeconds=600)
            await until("01T01:30")
        await until("01T09:30")
        async with operating(cluster.client):
            await until("01T09:31")
            assert await starts(w) == ["01-01T01:00", "01-01T09:00"]
            assert await starts(w, "strict") == ["01-01T01:00"], "half an hour is too late for it"
            await until("01T10:01")
            assert await starts(w) == ["01-01T01:00", "01-01T09:00", "01-01T10:00"]
            assert await starts(w, "strict") == ["01-01T01:00", "01-01T10:00"]


@pytest.mark.spec("N-87")
async def test_an_interval_that_is_longer_than_the_deadline() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await until("01T00:30")
        await schedule(w, schedule="@every 6h", startingDeadlineSeconds=600)
        await until("01T03:30")
        assert (await seen(w)).status.next_schedule_time == "2026-01-01T06:30:00Z"
        await change(w, retention={"keepLast": 5})  # it is looked at, which moves nothing
        await until("01T06:31")
        assert await starts(w) == ["01-01T06:30"]
        await until("01T12:31")
        assert await starts(w) == ["01-01T06:30", "01-01T12:30"]
        assert (await seen(w)).status.next_schedule_time == "2026-01-01T18:30:00Z"


async def test_a_suspended_schedule_takes_and_deletes_nothing() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", immediate=True, retention={"maxAge": "5h"})
        await asyncio.sleep(MINUTE)
        assert len(await starts(w)) == 1, "the first one at once"
        await until("01T02:01")
        assert len(await starts(w)) == 3
        await change(w, suspend=True)
        await until("01T20:00")
        assert len(await starts(w)) == 3
        assert await ready(w) == ("False", "Suspended")
        assert (await seen(w)).status.next_schedule_time is None
        await change(w, suspend=False)
        await until("01T20:02")
        assert await starts(w) == ["01-01T20:00"], "one for all that were missed, and it took the place of the old ones"


@pytest.mark.spec("W-20")
async def test_without_its_machine_a_schedule_deletes_nothing() -> None:
    async with world(timings=QUICK) as w:
        await schedule(w, schedule="@hourly", retention={"maxAge": "90m"})
        await until("01T00:50")
        assert (await events(w)) == ["WukongNotFound"], "one event, however often it was looked for"
        await until("01T01:10")
        assert (await starts(w), await ready(w)) == ([], ("False", "WukongNotFound"))
        await w.running(disks=DISKS)
        await until("01T02:10")
        assert len(await starts(w)) == 2
        await w.delete()
        await until("01T12:00")
        assert (await starts(w), await ready(w)) == (["01-01T01:00", "01-01T02:00"], ("False", "WukongNotFound"))


async def test_a_start_waits_for_the_snapshot_before_it() -> None:
    async with world(timings=QUICK) as w:
        slow = ConfigMap(metadata=ObjectMeta(name=CONFIG_MAP, namespace=SPACE), data={"vmsnapshot": "fails"})
        await w.client.create(slow)
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", retention={"keepLast": 3})
        await until("01T01:10")
        assert await ready(w) == ("False", "SnapshotFailed")
        assert (await seen(w)).status.snapshots == 0
        await until("01T02:10")
        assert len(await starts(w)) == 2, "a failure does not hold the next one"
        await w.client.delete(ConfigMap, CONFIG_MAP, SPACE)
        await until("01T03:10")
        assert await ready(w) == ("True", "Scheduled")
        assert await starts(w) == ["01-01T03:00"], "failures go with the next success"


async def test_an_object_of_another_user_under_the_name_is_left_alone() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await take(w, "nightly-20260101010000")
        await schedule(w, schedule="@hourly", retention={"keepLast": 1})
        await until("01T01:10")
        assert (await starts(w), await ready(w)) == ([], ("False", "NotOurs"))
        assert (await events(w)).count("NotOurs") == 1
        await until("01T03:10")
        assert await ready(w) == ("True", "Scheduled")
        assert await w.find(WukongSnapshot, "nightly-20260101010000") is not None


async def test_what_cannot_be_a_schedule() -> None:
    async with world(timings=QUICK) as w:
        for wrong in ({"schedule": "TZ=Asia/Tokyo @daily"}, {"schedule": ""}, {"retention": {"keepLast": 0}}):
            with pytest.raises(Invalid):
                await schedule(w, **wrong)
        with pytest.raises(Invalid):
            await schedule(w, "n" * 49)
        for name, wrong in (
            ("fields", {"schedule": "* * *"}),
            ("zone", {"timeZone": "Asia/Atlantis"}),
            ("never", {"schedule": "0 0 31 2 *"}),
        ):
            await w.create(f"m-{name}", disks=DISKS)
            await schedule(w, name, wukongName=f"m-{name}", **wrong)
            await asyncio.sleep(5)
            assert await ready(w, name) == ("False", "InvalidSchedule")
        await schedule(w)
        with pytest.raises(Invalid, match="one machine for ever"):
            await change(w, wukongName="other")


async def test_without_the_snapshot_api_that_is_said() -> None:
    async with world(timings=QUICK, parts=("kubevirt", "cdi")) as w:
        await schedule(w, immediate=True)
        await asyncio.sleep(5)
        assert await ready(w) == ("False", "SnapshotsUnavailable")


@pytest.mark.spec("W-14")
async def test_processes_that_die_after_each_write_make_no_snapshot_twice() -> None:
    async with Cluster() as cluster, SimulatedKubeVirt(cluster, timings=QUICK) as kubevirt:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await make_classes(cluster.client)
        w = World(cluster, kubevirt, None, None)  # type: ignore[arg-type]
        async with operating(cluster.client):
            await w.running(disks=DISKS)
            await asyncio.sleep(MINUTE)
        await schedule(w, immediate=True, retention={"keepLast": 1})

        async def taken() -> bool:
            status = (await seen(w)).status
            return status.snapshots == 1 and await ready(w) == ("True", "Scheduled")

        writes = await by_mortals(w, taken)
        assert writes.count("create wukongsnapshots") == 1
        first = await starts(w)
        await until("02T03:00")

        async def replaced() -> bool:
            return await taken() and await starts(w) == ["01-02T03:00"]

        writes = await by_mortals(w, replaced)
        assert (writes.count("create wukongsnapshots"), writes.count("delete wukongsnapshots")) == (1, 1)
        assert first != ["01-02T03:00"]


@pytest.mark.spec("W-20", "W-41")
async def test_a_snapshot_that_is_lost_and_comes_back_is_one_of_those_to_keep() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", retention={"keepLast": 2})
        await until("01T02:10")
        owners = await orphan(w, "nightly-20260101020000")
        await until("01T02:11")
        assert ((await seen(w)).status.snapshots, await ready(w)) == (1, ("False", "SnapshotFailed"))
        await give(w, "nightly-20260101020000", owners)
        await until("01T02:12")
        assert ((await seen(w)).status.snapshots, await ready(w)) == (2, ("True", "Scheduled"))
        await until("01T03:10")
        assert await starts(w) == ["01-01T02:00", "01-01T03:00"]


@pytest.mark.spec("W-43")
async def test_without_its_class_of_snapshots_no_copy_of_a_disk_is_lost() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", retention={"keepLast": 1})
        await until("01T02:10")
        first = await w.client.get(WukongSnapshot, "nightly-20260101020000", SPACE)
        assert first.status.volumes == ["system"]
        for definition in kinds_of_volume_snapshots():  # now it says which classes take snapshots: none
            await w.client.create(definition)
        await until("01T04:10")
        assert await starts(w) == ["01-01T02:00", "01-01T04:00"]
        assert await ready(w) == ("True", "Scheduled")


async def without_contents(w: World, name: str, gone: bool = True) -> None:
    """KubeVirt says so when a VolumeSnapshot is deleted; the phase stays."""
    error = {"message": "VolumeSnapshot is missing"} if gone else None
    status = {"readyToUse": not gone, "error": error}
    await w.client.patch(VirtualMachineSnapshot, name, MergePatch({"status": status}), SPACE, subresource="status")


@pytest.mark.spec("W-43")
async def test_a_snapshot_without_its_contents_takes_no_good_one_away() -> None:
    async with world(timings=QUICK) as w:
        await w.running(disks=DISKS)
        await schedule(w, schedule="@hourly", retention={"keepLast": 2})
        await until("01T02:10")
        await without_contents(w, "nightly-20260101020000")
        await until("01T03:10")
        assert await starts(w) == ["01-01T01:00", "01-01T02:00", "01-01T03:00"]
        assert (await seen(w)).status.snapshots == 2
        await without_contents(w, "nightly-20260101020000", gone=False)
        await until("01T03:20")
        assert await starts(w) == ["01-01T02:00", "01-01T03:00"], "it is back"


@pytest.mark.spec("W-20", "W-41")
async def test_a_snapshot_is_deleted_as_it_was_looked_at() -> None:
    """An old cache may show one as lost that is whole by now."""

    async def run(error: Exception | None = None) -> Stage:
        spec = {"wukongName": "web", "schedule": "@daily", "retention": {"keepLast": 5}}
        schedule = made(WukongSnapshotSchedule, NIGHTLY, owners=(), spec=spec)
        stage = Stage(None, schedule, day(1, "Failed"), day(2))
        stage.indexes = {SCHEDULES: lambda record, meta: (NIGHTLY,)}
        if error is not None:
            stage.errors["delete", "WukongSnapshot"] = error
        await ScheduleReconciler(Options()).reconcile(stage.context(schedule))
        return stage

    stage = await run()
    (sent,) = stage.sent
    assert (sent.verb, sent.name) == ("delete", "nightly-20261101000000")
    assert sent.body["preconditions"] == {"uid": "uid-of-nightly-20261101000000", "resourceVersion": "7"}
    assert sent.body["propagationPolicy"] == "Background"
    assert ("Normal", "SnapshotExpired") in stage.events
    with pytest.raises(Conflict):
        await run(refused(Conflict))
    assert ("Normal", "SnapshotExpired") not in (await run(refused(NotFound))).events
