"""Which snapshots of a schedule have had their time."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from konverge.objects import from_dict
from konverge.objects.times import format_time, parse_time
from konverge.operators.wukong import names
from konverge.operators.wukong.resource import WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.retention import expired, is_made_by, next_expiry, own
from konverge.operators.wukong.spec_schedule import Retention
from tests.operators.wukong.stage import condition, made

pytestmark = pytest.mark.spec("W-20")

SCHEDULE = made(WukongSnapshotSchedule, "nightly", owners=(), spec={"wukongName": "web", "schedule": "@daily"})
NOW = parse_time("2026-11-10T12:00:00Z")


def day(
    number: int,
    phase: str = "Succeeded",
    *,
    name: str = "",
    volumes: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    lost: bool = False,
    **annotations: str,
) -> WukongSnapshot:
    """The snapshot of a night in November."""
    start = datetime.fromisoformat(f"2026-11-{number:02}T00:00:00Z")
    marks = {names.SCHEDULED_BY: "uid-of-nightly", names.SCHEDULED_AT: format_time(start)}
    meta = {
        "annotations": marks | {f"vm.novasphere.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    }
    spec = {"wukongName": "web"}
    name = name or names.scheduled("nightly", start)
    status: dict[str, Any] = {"phase": phase, "volumes": [*volumes], "excludedVolumes": [*excluded]}
    if lost:
        status |= {"phase": "Failed", "conditions": [condition("Ready", "False", "SnapshotLost")]}
    return made(WukongSnapshot, name, owners=(), spec=spec, status=status, meta=meta)


def gone(snapshots: list[WukongSnapshot], named: str = "", **retention: Any) -> list[str]:
    """The nights whose snapshots are deleted, in that order."""
    kept = own(SCHEDULE, snapshots)
    return [item.metadata.name[14:16] for item, _ in expired(kept, from_dict(Retention, retention), NOW, named=named)]


def test_without_retention_everything_stays() -> None:
    snapshots = [day(number) for number in range(1, 10)]
    assert expired(own(SCHEDULE, snapshots), None, NOW) == []
    assert gone(snapshots) == []


def test_the_last_of_them_are_kept_and_the_oldest_goes_first() -> None:
    snapshots = [day(number) for number in (5, 1, 9, 3, 7)]
    assert gone(snapshots, keepLast=2) == ["01", "03", "05"]
    assert gone(snapshots, keepLast=5) == []
    assert gone(snapshots, maxAge="5d") == ["01", "03", "05"], "five days and twelve hours are more than five days"
    assert gone(snapshots, maxAge="6d") == ["01", "03"]
    assert gone(snapshots, keepLast=4, maxAge="4w") == ["01"]


def test_the_newest_that_succeeded_is_never_deleted() -> None:
    assert gone([day(1)], maxAge="1h", keepLast=1) == []
    assert gone([day(1), day(2), day(9, "Failed")], maxAge="1h", keepLast=1) == ["01"]


def test_failed_ones_stay_until_a_later_one_succeeds() -> None:
    assert gone([day(1, "Failed"), day(2, "Failed")], keepLast=1) == []
    assert gone([day(1, "Failed"), day(2), day(3, "Failed")], keepLast=1) == ["01"]
    assert gone([day(1, "Creating"), day(2, ""), day(3)], keepLast=1, maxAge="1h") == [], "they are not over"


def test_what_is_to_be_kept_is_kept_and_does_not_count() -> None:
    snapshots = [day(1), day(2, keep="true"), day(3), day(4)]
    assert gone(snapshots, keepLast=2) == ["01"]
    assert gone([day(1, keep="false"), day(2)], keepLast=1) == ["01"]
    assert gone(snapshots, keepLast=1, named="nightly-20261101000000") == ["03"], "a machine goes back to the first"


SYSTEM, DATA, BOTH = ("system",), ("data",), ("data", "system")


@pytest.mark.spec("W-43")
def test_the_newest_copy_of_a_disk_that_the_newest_one_lacks_stays() -> None:
    first, second = day(1, volumes=BOTH), day(2, volumes=BOTH)
    assert gone([day(1, volumes=SYSTEM), day(2, excluded=SYSTEM)], keepLast=1, maxAge="1h") == []
    assert gone([first, second, day(3, excluded=SYSTEM)], keepLast=1, maxAge="1h") == ["01"]
    assert gone([first, second, day(3, volumes=BOTH)], keepLast=1) == ["01", "02"]
    split = [first, day(2, volumes=SYSTEM, excluded=DATA), day(3, volumes=DATA, excluded=SYSTEM), day(4, excluded=BOTH)]
    assert gone(split, keepLast=1) == ["01"], "each disk has its newest copy"
    assert gone([first, day(2, volumes=SYSTEM), day(4, excluded=BOTH)], keepLast=1) == []
    kept = day(2, volumes=BOTH, keep="true")
    assert gone([first, kept, day(3, excluded=SYSTEM)], keepLast=1) == ["01"], "a copy that the user keeps is one"


@pytest.mark.spec("W-43")
def test_a_disk_that_no_snapshot_has_keeps_none() -> None:
    scratch = ("scratch",)
    assert gone([day(1, excluded=scratch), day(2, excluded=scratch)], keepLast=1) == ["01"]
    assert gone([day(1, volumes=SYSTEM, excluded=scratch), day(2, volumes=SYSTEM, excluded=scratch)], keepLast=1) == [
        "01"
    ]


@pytest.mark.spec("W-43")
def test_one_that_is_lost_goes_when_it_would_go_if_it_were_whole() -> None:
    """It may be whole again, after a moment in which its storage did not answer."""
    assert gone([day(1), day(2, lost=True), day(3)], keepLast=2) == [], "it counts as none"
    assert gone([day(1, lost=True), day(2), day(3)], keepLast=2) == ["01"]
    assert gone([day(1, lost=True), day(2)], keepLast=2) == [], "that a later one succeeded is no reason"
    assert gone([day(1, lost=True), day(9)], keepLast=2, maxAge="5d") == ["01"]
    assert gone([day(1), day(2, lost=True)], maxAge="1h", keepLast=1) == [], "it would be the newest"
    assert gone([day(1, lost=True)], maxAge="1h") == []


@pytest.mark.spec("W-43")
def test_one_that_is_lost_is_no_copy_of_a_disk_but_may_be_one_again() -> None:
    lacking = day(3, excluded=SYSTEM)
    assert gone([day(1, volumes=SYSTEM), day(2, volumes=SYSTEM, lost=True), lacking], keepLast=1) == []
    assert gone([day(1, volumes=SYSTEM, lost=True), day(2, volumes=SYSTEM), lacking], keepLast=1) == ["01"]


@pytest.mark.spec("W-16")
def test_only_snapshots_of_this_very_schedule_are_its_own() -> None:
    assert is_made_by(SCHEDULE, day(1))
    for other in (
        day(1, name="my-copy"),
        day(1, scheduled_by="uid-of-another"),
        day(1, scheduled_at="2026-11-02T00:00:00Z"),
        day(1, scheduled_at="yesterday"),
        made(WukongSnapshot, "nightly-20261101000000", owners=(), spec={"wukongName": "web"}),
    ):
        assert not is_made_by(SCHEDULE, other)
        assert gone([other, day(8), day(9)], keepLast=2) == []
    assert is_made_by(SCHEDULE, day(1, scheduled_at="2026-11-01T08:00:00+08:00")), "the same moment"
    leaving = day(9)
    leaving.metadata.deletion_timestamp = "2026-11-10T00:00:00Z"
    assert gone([leaving, day(1), day(2)], keepLast=2) == [], "one that goes does not count"


def test_the_next_look_is_when_another_one_is_too_old() -> None:
    retention = from_dict(Retention, {"maxAge": "5d"})
    kept = own(SCHEDULE, [day(7), day(6), day(9)])
    assert next_expiry(kept, retention, NOW) == 12 * 3600
    assert next_expiry(kept, from_dict(Retention, {"keepLast": 3}), NOW) is None
    assert next_expiry([], retention, NOW) is None
    assert next_expiry(own(SCHEDULE, [day(7), day(6, lost=True)]), retention, NOW) == 12 * 3600
    assert next_expiry(own(SCHEDULE, [day(7, "Failed"), day(8)]), retention, NOW) == 60 * 3600
    assert next_expiry(kept, None, NOW) is None
