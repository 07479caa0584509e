"""Which backups of a schedule have had their time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from konverge.objects import ObjectMeta, from_dict
from konverge.objects.times import format_time
from konverge.operators.nacos.backup.kinds import NacosBackup, NacosBackupSchedule, NacosBackupSpec, Retention
from konverge.operators.nacos.backup.kinds import NacosBackupScheduleSpec as Spec
from konverge.operators.nacos.backup.retention import (
    KEEP,
    SCHEDULED_AT,
    SCHEDULED_BY,
    expired,
    is_made_by,
    next_expiry,
    own,
    scheduled_name,
)

pytestmark = pytest.mark.spec("N-59")
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SETTINGS = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": "c"}}}
SCHEDULE = NacosBackupSchedule(
    metadata=ObjectMeta(name="nightly", namespace="default", uid="u"),
    spec=from_dict(Spec, {**SETTINGS, "schedule": "@daily"}),
)


def backup(days: float, phase: str = "Completed", **annotations: str) -> NacosBackup:
    """Made so many days ago."""
    start = NOW - timedelta(days=days)
    notes = {SCHEDULED_BY: "u", SCHEDULED_AT: format_time(start), **annotations}
    meta = ObjectMeta(name=scheduled_name("nightly", start), namespace="default", annotations=notes)
    made = NacosBackup(metadata=meta, spec=from_dict(NacosBackupSpec, SETTINGS))
    made.status.phase = phase  # type: ignore[assignment]
    return made


def days_of(chosen: list[tuple[NacosBackup, str]]) -> list[int]:
    """The ages in days, in the order of deletion."""
    starts = [item.metadata.annotations[SCHEDULED_AT] for item, _ in chosen]
    return [round((NOW - datetime.fromisoformat(start)).total_seconds() / 86400) for start in starts]


def test_nothing_without_limits() -> None:
    assert expired([backup(day) for day in range(1, 900)], Retention(), NOW) == []


def test_by_number() -> None:
    made = [backup(day) for day in range(1, 6)]
    chosen = expired(made, Retention(keep_last=2), NOW)
    assert days_of(chosen) == [5, 4, 3]
    assert {why for _, why in chosen} == {"keepLast is 2"}
    assert expired(made, Retention(keep_last=5), NOW) == []


def test_by_age() -> None:
    made = [backup(day) for day in (1, 2, 3)]
    chosen = expired(made, Retention(max_age="2d"), NOW)
    assert days_of(chosen) == [3], "two days old is not older than that"
    assert chosen[0][1] == "maxAge is 2d"


def test_never_the_newest_that_is_complete() -> None:
    made = [backup(1, "Failed"), backup(100), backup(101)]
    assert days_of(expired(made, Retention(max_age="1d", keep_last=1), NOW)) == [101]


def test_one_that_is_kept_counts_for_nothing() -> None:
    made = [backup(1), backup(2, **{KEEP: "true"}), backup(3), backup(4, **{KEEP: "false"})]
    assert days_of(expired(made, Retention(keep_last=1), NOW)) == [4, 3]


def test_what_a_restore_reads_stays() -> None:
    made = [backup(1), backup(2), backup(3)]
    assert days_of(expired(made, Retention(keep_last=1), NOW, read={made[1].metadata.name})) == [3]


def test_failed_ones() -> None:
    made = [backup(0.5, "Running"), backup(1, "Failed"), backup(2), backup(3, "Failed"), backup(4, "Failed")]
    chosen = expired(made, Retention(failed_limit=1), NOW)
    assert days_of(chosen) == [4, 3]
    assert {why for _, why in chosen} == {"it failed, and failedLimit is 1"}
    assert days_of(expired(made, Retention(failed_limit=0), NOW)) == [4, 3, 1]
    assert expired(made, Retention(failed_limit=3), NOW) == []


@pytest.mark.parametrize("phase", ["", "Pending", "Running"])
def test_what_is_being_made_stays(phase: str) -> None:
    made = [backup(1), backup(90, phase)]
    assert expired(made, Retention(keep_last=1, max_age="1d", failed_limit=0), NOW) == []


def test_its_own() -> None:
    mine, other = backup(1), backup(2, **{SCHEDULED_BY: "another"})
    renamed, wordless, elsewhere, going = backup(3), backup(4, **{SCHEDULED_AT: "soon"}), backup(5), backup(6)
    renamed.metadata.name = "renamed"
    elsewhere.metadata.namespace = "elsewhere"
    going.metadata.deletion_timestamp = format_time(NOW)
    assert own(SCHEDULE, [other, renamed, wordless, elsewhere, going, mine]) == [mine]
    assert is_made_by(SCHEDULE, going)
    newest = backup(0.5)
    assert own(SCHEDULE, [mine, newest]) == [newest, mine]


def test_the_next_expiry() -> None:
    made = [backup(1), backup(2)]
    assert next_expiry(made, Retention(), NOW) is None
    assert next_expiry(made, Retention(max_age="3d"), NOW) == 86400.0
    assert next_expiry(made, Retention(max_age="2d"), NOW) == 0.0
    assert next_expiry(made, Retention(max_age="1h"), NOW) is None
    assert next_expiry([backup(1, **{KEEP: "true"}), backup(1, "Failed")], Retention(max_age="3d"), NOW) is None


def test_a_year_of_a_daily_schedule_in_which_every_third_one_fails() -> None:
    retention, kept, now = Retention(keep_last=7, max_age="14d", failed_limit=2), [], NOW
    for day in range(365):
        now = NOW + timedelta(days=day)
        kept.insert(0, backup(-day, "Failed" if day % 3 == 0 or day > 300 else "Completed"))
        for gone, _ in expired(kept, retention, now):
            kept.remove(gone)
        good = [item for item in kept if item.status.phase == "Completed"]
        assert len(good) == min(7, day - day // 3) if day <= 300 else len(good) >= 1
        assert len(kept) - len(good) <= 2
    assert [item.status.phase for item in kept] == ["Failed", "Failed", "Completed"]
