"""The spec of a `WukongSnapshotSchedule`: of which machine, when, and how long the snapshots are kept."""

from __future__ import annotations

from typing import Annotated

from konverge.objects import Description, MaxLength, Minimum, MinLength, Model, Pattern, Rule
from konverge.operators.timetable import NO_ZONE, Age
from konverge.operators.wukong.texts import ObjectName


class Retention(Model):
    """Which of its own snapshots a schedule deletes. The newest that succeeded is never among them."""

    keep_last: Annotated[
        Annotated[int, Minimum(1)] | None, Description("How many that succeeded are kept; without: all.")
    ] = None
    max_age: Annotated[Age | None, Description("How old they get: 36h, 30d, 8w; without: any age.")] = None


class ScheduleSpec(
    Model, rules=[Rule("self.wukongName == oldSelf.wukongName", message="a schedule is of one machine for ever")]
):
    """When to take snapshots of a machine."""

    wukong_name: Annotated[ObjectName, Description("The machine, in the same namespace.")]
    schedule: Annotated[
        str,
        MinLength(1),
        MaxLength(256),
        Rule("!self.contains('TZ=')", message=NO_ZONE),
        Description("As that of a CronJob: five fields, @daily, @every 6h."),
    ]
    time_zone: Annotated[
        Annotated[str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9._+/-]*$"), MaxLength(64)] | None,
        Description("A name of the IANA database, such as Asia/Shanghai; without: UTC."),
    ] = None
    suspend: Annotated[bool, Description("Neither take snapshots nor delete any.")] = False
    immediate: Annotated[bool, Description("Take one as soon as the schedule is created, too.")] = False
    starting_deadline_seconds: Annotated[
        Annotated[int, Minimum(10)] | None,
        Description("How late a snapshot may be taken that was missed; without: at any time."),
    ] = None
    retention: Annotated[Retention | None, Description("What is deleted again; without: nothing.")] = None
