"""NacosBackupSchedule: a backup for each start, one at a time, and the end of those that are too old."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge import clock
from konverge.client import Invalid, MergePatch
from konverge.objects.times import format_time, parse_time
from konverge.operators.nacos.backup.kinds import NacosBackup
from tests.operators.nacos.backup.test_backups import by_mortals
from tests.operators.nacos.backup.world import CLAIM, BackupWorld, a_backed_up_nacos, condition, message
from tests.operators.nacos.world import SPACE, a_simulated_world

pytestmark = [pytest.mark.virtual, pytest.mark.spec("N-58")]
KIND = "NacosBackupSchedule"
DAY = 86400.0


class Scheduled(BackupWorld):
    """Backups that end as the test says: their own controller is paused."""

    async def schedule(self, schedule: str = "0 3 * * *", name: str = "nightly", **spec: Any) -> Any:
        given = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": CLAIM}}, "schedule": schedule}
        return await self.create(KIND, name, {**given, **spec})

    async def backups(self) -> list[NacosBackup]:
        """The oldest first."""
        listed = (await self.client.list(NacosBackup, SPACE)).items
        return sorted(listed, key=lambda backup: backup.metadata.name)

    async def names(self) -> list[str]:
        return [backup.metadata.name for backup in await self.backups()]

    async def end(self, phase: str = "Completed") -> None:
        """All that are being made."""
        for backup in await self.backups():
            if backup.status.phase in ("", "Pending", "Running"):
                now = format_time(clock.utc_now())
                failure = {"type": "Failed", "status": "True", "reason": "JobFailed", "message": "no space"}
                status: dict[str, Any] = {"phase": phase, "completionTime": now}
                if phase == "Failed":
                    status["conditions"] = [{**failure, "lastTransitionTime": now}]
                patch = MergePatch({"status": status})
                await self.client.patch(NacosBackup, backup.metadata.name, patch, SPACE, subresource="status")
        await self.world.advance(1.0)

    async def until_time(self, moment: datetime) -> None:
        await self.world.advance((moment - clock.utc_now()).total_seconds())

    async def next_start(self, name: str = "nightly") -> datetime:
        return parse_time((await self.get(name, KIND)).status.next_schedule_time)

    async def days(self, count: int, phase: str = "Completed") -> None:
        """Each start of a daily schedule, and the end of its backup."""
        for _ in range(count):
            await self.until_time(await self.next_start() + timedelta(seconds=2))
            await self.end(phase)


@asynccontextmanager
async def scheduled() -> AsyncIterator[Scheduled]:
    async with a_simulated_world() as (world, simulated), world.operating(paused=["nacosbackup"]):
        yield Scheduled(world, simulated)


async def test_a_backup_for_each_start() -> None:
    async with scheduled() as world:
        schedule = await world.schedule(image="postgres:16", timeoutSeconds=61)
        await world.world.advance(1.0)
        first = await world.next_start()
        assert (first.hour, first.minute) == (3, 0)
        assert await world.backups() == []
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled")
        await world.until_time(first + timedelta(seconds=2))
        (backup,) = await world.backups()
        assert backup.metadata.name == f"nightly-{first:%Y%m%d%H%M%S}"
        assert backup.metadata.annotations == {
            "nacos.io/scheduled-by": schedule.metadata.uid,
            "nacos.io/scheduled-at": format_time(first),
        }
        assert backup.metadata.owner_references == []
        spec = backup.spec
        assert (spec.nacos_ref.name, spec.image, spec.timeout_seconds) == ("nacos", "postgres:16", 61)
        assert spec.storage.volume is not None
        assert (spec.storage.volume.claim_name, spec.deletion_policy) == (CLAIM, "Delete")
        seen = (await world.get("nightly", KIND)).status
        assert (seen.last_schedule_time, seen.last_backup) == (format_time(first), backup.metadata.name)
        assert (seen.backups, seen.last_successful_time) == (0, "")
        assert parse_time(seen.next_schedule_time) == first + timedelta(days=1)
        await world.end()
        seen = (await world.get("nightly", KIND)).status
        assert seen.backups == 1
        assert parse_time(seen.last_successful_time) > first
        assert seen.observed_generation == 1


async def test_its_backups_stay_when_it_goes() -> None:
    async with scheduled() as world:
        await world.schedule(deletionPolicy="Retain")
        await world.world.advance(1.0)
        await world.days(2)
        names = await world.names()
        await world.delete("nightly", KIND)
        await world.until_gone("nightly", KIND)
        await world.world.advance(10.0)
        assert await world.names() == names
        assert len(names) == 2
        assert (await world.backups())[0].spec.deletion_policy == "Retain"


async def test_a_schedule_of_the_same_name_does_not_take_them_over() -> None:
    async with scheduled() as world:
        await world.schedule(retention={"keepLast": 1})
        await world.world.advance(1.0)
        await world.days(1)
        (old,) = await world.names()
        await world.delete("nightly", KIND)
        await world.until_gone("nightly", KIND)
        await world.schedule(retention={"keepLast": 1})
        await world.world.advance(1.0)
        await world.days(3)
        assert (await world.names())[0] == old
        assert len(await world.names()) == 2


async def test_a_start_waits_for_the_backup_before() -> None:
    async with scheduled() as world:
        await world.schedule("0 * * * *")
        await world.world.advance(1.0)
        await world.until_time(await world.next_start() + timedelta(hours=3, seconds=2))
        (first,) = await world.names()
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("True", "Waiting")
        assert message(seen) == f"NacosBackup {first} is still being made"
        await world.end()
        names = await world.names()
        assert len(names) == 2, "one for all starts that were missed"
        missed = parse_time((await world.backups())[1].metadata.annotations["nacos.io/scheduled-at"])
        assert missed - parse_time(
            (await world.backups())[0].metadata.annotations["nacos.io/scheduled-at"]
        ) == timedelta(hours=3)


async def test_a_backup_that_cannot_begin_is_reported_when_the_next_one_is_due() -> None:
    async with a_backed_up_nacos() as backups:
        world = Scheduled(backups.world, backups.simulated)
        await world.schedule("0 * * * *", storage={"volume": {"claimName": "later"}}, immediate=True)
        await world.world.advance(60.0)
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled"), "it may begin before long"
        await world.world.advance(3600.0)
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("False", "BackupWaiting")
        (first,) = await world.names()
        assert message(seen).startswith(f"NacosBackup {first} has not begun: there is no PersistentVolumeClaim")
        assert len(await world.world.events("BackupWaiting")) == 1
        await world.claim("later")
        await world.world.advance(120.0)
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled")
        assert len(await world.names()) == 2


async def test_a_nacos_that_hibernates_is_no_fault_of_a_schedule() -> None:
    async with a_backed_up_nacos() as backups:
        world = Scheduled(backups.world, backups.simulated)
        await world.world.change("nacos", hibernate=True)
        await world.world.until("nacos", "Hibernated")
        await world.schedule("0 * * * *", method="Configuration", immediate=True)
        await world.world.advance(3660.0)
        assert condition(await world.get("nightly", KIND)) == ("True", "Waiting")


async def test_suspended() -> None:
    async with scheduled() as world:
        await world.schedule(suspend=True, retention={"maxAge": "1h"})
        await world.world.advance(3 * DAY)
        assert await world.backups() == []
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("False", "Suspended")
        assert seen.status.next_schedule_time == ""
        await world.patch("nightly", KIND, suspend=False)
        await world.world.advance(1.0)
        assert len(await world.backups()) == 1, "the last start that was missed"


async def test_starts_that_are_too_late_are_left_out() -> None:
    async with scheduled() as world:
        await world.schedule(suspend=True, startingDeadlineSeconds=600)
        await world.world.advance(2 * DAY)
        now = clock.utc_now()
        await world.until_time(now.replace(hour=3, minute=11, second=0, microsecond=0) + timedelta(days=1))
        await world.patch("nightly", KIND, suspend=False)
        await world.world.advance(1.0)
        assert await world.backups() == []
        await world.days(1)
        assert len(await world.backups()) == 1
        await world.patch("nightly", KIND, suspend=True)
        await world.until_time(await_next(clock.utc_now(), minute=9))
        await world.patch("nightly", KIND, suspend=False)
        await world.world.advance(1.0)
        assert len(await world.backups()) == 2, "nine minutes late"


@pytest.mark.spec("N-87")
async def test_an_interval_that_is_longer_than_the_deadline() -> None:
    async with a_simulated_world() as (inner, simulated):
        world = Scheduled(inner, simulated)
        async with inner.operating(paused=["nacosbackup"]):
            made = await world.schedule("@every 6h", startingDeadlineSeconds=600)
            created = parse_time(made.metadata.creation_timestamp)
            hours = [created + timedelta(hours=6 * number) for number in (1, 2, 3)]
            await inner.advance(1.0)
            assert await world.next_start() == hours[0]
            await world.until_time(hours[0] + timedelta(seconds=5))
            await world.end()
            assert len(await world.backups()) == 1
            await world.until_time(hours[0] + timedelta(hours=5))
        async with inner.operating(paused=["nacosbackup"]):  # it begins again, and looks at everything
            await world.until_time(hours[1] + timedelta(seconds=5))
            await world.end()
            await world.until_time(hours[2] + timedelta(seconds=5))
        assert await world.names() == [f"nightly-{start:%Y%m%d%H%M%S}" for start in hours]


def await_next(now: datetime, *, minute: int) -> datetime:
    """03:`minute` of the day after."""
    return now.replace(hour=3, minute=minute, second=0, microsecond=0) + timedelta(days=1)


async def test_immediately() -> None:
    async with scheduled() as world:
        await world.schedule(immediate=True)
        await world.world.advance(2.0)
        assert len(await world.backups()) == 1
        await world.end()
        await world.world.advance(100.0)
        assert len(await world.backups()) == 1
        await world.days(1)
        assert len(await world.backups()) == 2


async def test_a_time_zone() -> None:
    async with scheduled() as world:
        await world.schedule(timeZone="Asia/Shanghai")
        await world.world.advance(1.0)
        assert (await world.next_start()).astimezone(UTC).hour == 19


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"schedule": "nonsense"}, "nonsense"),
        ({"schedule": "0 0 31 2 *"}, "never occurs"),
        ({"timeZone": "Middle/Earth"}, "there is no time zone Middle/Earth"),
    ],
)
async def test_a_schedule_that_cannot_be(spec: dict[str, Any], words: str) -> None:
    async with scheduled() as world:
        await world.schedule(**spec)
        await world.world.advance(100.0)
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("False", "InvalidSchedule")
        assert words in message(seen)
        assert len(await world.world.events("InvalidSchedule")) == 1
        await world.patch("nightly", KIND, schedule="@daily", timeZone="UTC")
        await world.world.advance(1.0)
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled")


async def test_a_backup_of_others_has_the_name() -> None:
    async with scheduled() as world:
        await world.schedule()
        await world.world.advance(1.0)
        start = await world.next_start()
        name = f"nightly-{start:%Y%m%d%H%M%S}"
        await world.back_up(name)
        await world.until_time(start + timedelta(seconds=2))
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("False", "NotOwned")
        assert name in message(seen)
        await world.delete(name)
        await world.world.advance(70.0)
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled")


async def test_a_backup_that_failed_is_reported() -> None:
    async with scheduled() as world:
        await world.schedule()
        await world.world.advance(1.0)
        await world.days(1, "Failed")
        seen = await world.get("nightly", KIND)
        assert condition(seen) == ("False", "BackupFailed")
        assert message(seen) == f"NacosBackup {seen.status.last_backup}: no space"
        await world.days(1)
        assert condition(await world.get("nightly", KIND)) == ("True", "Scheduled")


class TestRetention:
    pytestmark = pytest.mark.spec("N-59")

    async def test_weeks_of_a_daily_schedule(self) -> None:
        async with scheduled() as world:
            await world.schedule(retention={"keepLast": 3, "maxAge": "7d"})
            await world.world.advance(1.0)
            await world.days(8)
            names = await world.names()
            assert len(names) == 3
            newest = (await world.get("nightly", KIND)).status.last_backup
            assert names[-1] == newest
            assert await world.world.events("BackupExpired")
            await world.days(2, "Failed")
            assert len(await world.names()) == 5
            await world.days(8, "Failed")
            backups = await world.backups()
            phases = [backup.status.phase for backup in backups]
            assert phases == ["Completed", "Failed", "Failed", "Failed"], "never the last good one; three that failed"
            assert backups[0].metadata.name == newest

    async def test_by_age_between_two_starts(self) -> None:
        """A yearly schedule deletes in time as well."""
        async with scheduled() as world:
            await world.schedule("0 3 * * *", retention={"maxAge": "36h"})
            await world.world.advance(1.0)
            await world.days(2)
            first, second = await world.names()
            await world.patch("nightly", KIND, schedule="0 0 1 1 *")
            await world.world.advance(10 * 3600.0)
            assert await world.names() == [first, second]
            await world.world.advance(3 * 3600.0)
            assert await world.names() == [second]
            await world.world.advance(5 * DAY)
            assert await world.names() == [second]

    async def test_what_is_to_be_kept_and_what_is_of_others(self) -> None:
        async with scheduled() as world:
            schedule = await world.schedule(retention={"keepLast": 1})
            await world.back_up("by-hand")
            copied = {"nacos.io/scheduled-by": schedule.metadata.uid, "nacos.io/scheduled-at": "2020-01-01T03:00:00Z"}
            spec = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": CLAIM}}}
            await world.create("NacosBackup", "copied", spec, annotations=copied)
            await world.end()
            await world.days(1)
            kept = (await world.get("nightly", KIND)).status.last_backup
            patch = MergePatch({"metadata": {"annotations": {"nacos.io/keep": "true"}}})
            await world.client.patch(NacosBackup, kept, patch, SPACE)
            await world.days(4)
            newest = (await world.get("nightly", KIND)).status.last_backup
            assert await world.names() == ["by-hand", "copied", kept, newest]

    async def test_what_is_being_made_is_not_deleted(self) -> None:
        async with scheduled() as world:
            await world.schedule(retention={"keepLast": 1, "maxAge": "1h"})
            await world.world.advance(1.0)
            await world.days(1)
            await world.until_time(await world.next_start() + timedelta(hours=5))
            assert len(await world.names()) == 2

    async def test_the_data_goes_with_them(self) -> None:
        async with a_backed_up_nacos() as backups:
            world = Scheduled(backups.world, backups.simulated)
            await world.schedule("*/10 * * * *", retention={"keepLast": 1})
            await world.world.advance(1.0)
            for _ in range(2):
                await world.until_time(await world.next_start() + timedelta(seconds=60))
            (backup,) = await world.backups()
            assert set(world.files()) == {backup.status.path}
            assert world.simulated.jobs.done == ["nacos-backup", "nacos-backup", "nacos-delete"]


@pytest.mark.limit(120)
async def test_processes_of_one_write_each() -> None:
    """Each start makes one backup, however often it is tried."""
    async with a_simulated_world() as (world, simulated):
        backups = Scheduled(world, simulated)
        await backups.schedule("@every 6h")
        await world.advance(6 * 3600.0 + 5)

        def made(schedule: Any) -> bool:
            return schedule.status.observed_generation == 1 and bool(schedule.status.last_backup)

        await by_mortals(backups, made, name="nightly", kind=KIND)
        assert len(await backups.backups()) == 1


class TestTheDefinition:
    @pytest.mark.parametrize(
        ("spec", "words"),
        [
            ({"schedule": "TZ=UTC 0 3 * * *"}, "timeZone"),
            ({"schedule": ""}, "at least 1 char"),
            ({"retention": {"keepLast": 0}}, "greater than or equal to 1"),
            ({"retention": {"failedLimit": -1}}, "greater than or equal to 0"),
            ({"retention": {"maxAge": "soon"}}, "should match"),
            ({"startingDeadlineSeconds": 9}, "greater than or equal to 10"),
            ({"name": "a" * 201}, "at most 200 characters"),
        ],
    )
    async def test_refuses(self, spec: dict[str, Any], words: str) -> None:
        async with scheduled() as world:
            with pytest.raises(Invalid, match=words):
                await world.schedule(**spec)

    async def test_it_is_of_one_nacos(self) -> None:
        async with scheduled() as world:
            await world.schedule()
            with pytest.raises(Invalid, match="cannot change"):
                await world.patch("nightly", KIND, nacosRef={"name": "other"})
