"""The loop of a WukongSnapshotSchedule: a WukongSnapshot for each start, and the end of those that are too old.

The name of a snapshot contains its start, so that each start makes one snapshot however often it is tried. Starts that
were missed make one, for the last of them. A start waits while the snapshot before it is still being taken.

The snapshots have no owner: they stay when the schedule goes, and when the machine goes. What a schedule deletes is in
`retention.py`; while it is suspended, or has no machine, it deletes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from konverge import clock
from konverge.client import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound
from konverge.objects import Condition, ObjectMeta, cron
from konverge.objects.times import format_time, parse_time
from konverge.operators import timetable
from konverge.operators.wukong import names
from konverge.operators.wukong.kinds import VirtualMachineSnapshot
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.quotas import EXCEEDED
from konverge.operators.wukong.readiness import refuse, say
from konverge.operators.wukong.resource import AnyWukong, SnapshotSpec, WukongSnapshot, WukongSnapshotSchedule
from konverge.operators.wukong.retention import expired, is_made_by, next_expiry, own, start_of, succeeded_of
from konverge.operators.wukong.spec_schedule import ScheduleSpec
from konverge.operators.wukong.status import WITHIN_QUOTA
from konverge.runtime import Context, Reconciler, Request, Result, find_condition

SCHEDULES = "schedules"
"""The index of WukongSnapshots by the name of the schedule that made them."""


class ScheduleReconciler(Reconciler[WukongSnapshotSchedule]):
    """One reconcile."""

    def __init__(self, options: Options) -> None:
        self.options = options

    async def reconcile(self, ctx: Context[WukongSnapshotSchedule]) -> Result | None:
        if ctx.deleting:
            return None
        snapshots = own(ctx.obj, ctx.indexed(WukongSnapshot, SCHEDULES, ctx.request.name))
        again = await self._run(ctx, snapshots)
        ctx.obj.status.observed_generation = ctx.obj.metadata.generation
        await ctx.save_status()
        return None if again is None else Result(requeue_after=again)

    async def _run(self, ctx: Context[WukongSnapshotSchedule], snapshots: list[WukongSnapshot]) -> float | None:
        """Seconds until the next look; None when only a change can lead to anything."""
        spec = ctx.obj.spec
        _note(ctx, snapshots)
        try:
            schedule = parsed(spec)
        except ValueError as error:
            return refuse(ctx, "InvalidSchedule", str(error), None)
        if spec.suspend:
            ctx.obj.status.next_schedule_time = None
            say(ctx, False, "Suspended", "spec.suspend is true")
            return None
        if not ctx.serves(VirtualMachineSnapshot):
            message = "the cluster has no snapshots of KubeVirt (snapshot.kubevirt.io)"
            return refuse(ctx, "SnapshotsUnavailable", message, self.options.error)
        wukong = await ctx.get(AnyWukong, spec.wukong_name)
        if wukong is None or wukong.metadata.deletion_timestamp:
            return refuse(ctx, "WukongNotFound", f"there is no Wukong {spec.wukong_name}", self.options.error)
        return await self._keep(ctx, schedule, snapshots, wukong)

    async def _keep(
        self,
        ctx: Context[WukongSnapshotSchedule],
        schedule: cron.Schedule,
        snapshots: list[WukongSnapshot],
        wukong: AnyWukong,
    ) -> float | None:
        status, now = ctx.obj.status, clock.utc_now()
        since = last_start(ctx.obj, snapshots)
        looked = due(ctx.obj, schedule, since, now)
        start, following = looked.start, looked.following
        if following is None and start is None:
            return refuse(ctx, "InvalidSchedule", f"{ctx.obj.spec.schedule} never occurs", None)
        status.next_schedule_time = format_time(following) if following is not None else None
        wait = (following - now).total_seconds() + timetable.PADDING if following is not None else None
        named = wukong.spec.get("restoreFromSnapshot") or ""
        for snapshot, why in expired(snapshots, ctx.obj.spec.retention, now, named=str(named)):
            await _delete(ctx, snapshot, why)
        if (held := _held_up(snapshots)) is not None:
            refuse(ctx, held.reason, f"{snapshots[0].metadata.name}: {held.message}", None)
            return wait
        if start is not None and _is_busy(snapshots):
            say(ctx, True, "Waiting", f"{snapshots[0].metadata.name} is still being taken")
            return wait
        if start is not None and not await self._make(ctx, start):
            return self.options.error
        if start is None and snapshots and snapshots[0].status.phase == "Failed":
            message = f"{snapshots[0].metadata.name}: {snapshots[0].status.error}"
            refuse(ctx, "SnapshotFailed", message, None)
        else:
            say(ctx, True, "Scheduled", f"the next one is at {status.next_schedule_time or 'no time'}")
        return timetable.sooner(wait, next_expiry(snapshots, ctx.obj.spec.retention, now))

    async def _make(self, ctx: Context[WukongSnapshotSchedule], start: datetime) -> bool:
        """The snapshot of a start. One that this schedule has made before is as good; False when there is none."""
        snapshot = snapshot_at(ctx.obj, start)
        name = snapshot.metadata.name
        try:
            await ctx.client.create(snapshot)
            ctx.event("SnapshotScheduled", f"WukongSnapshot {name} made")
        except AlreadyExists:
            live = await ctx.client.get(WukongSnapshot, name, ctx.request.namespace)
            if not is_made_by(ctx.obj, live):
                refuse(ctx, "NotOurs", f"WukongSnapshot {name} is there already, and not by this schedule", None)
                return False
        except (Invalid, Forbidden, BadRequest) as error:
            if isinstance(error, Forbidden) and error.namespace_terminating:
                raise
            refuse(ctx, "Refused", f"the API server refuses: {error}", None)
            return False
        ctx.obj.status.last_schedule_time, ctx.obj.status.last_snapshot = format_time(start), name
        return True


# ------------------------------------------------------------------ when


def parsed(spec: ScheduleSpec) -> cron.Schedule:
    """Raises ValueError, with what is wrong."""
    return timetable.parsed(spec.schedule, spec.time_zone)


def last_start(schedule: WukongSnapshotSchedule, snapshots: Sequence[WukongSnapshot]) -> datetime | None:
    """The last start that has its snapshot: by the status, or by the snapshots where the status is behind."""
    noted = schedule.status.last_schedule_time
    starts = [start for snapshot in snapshots if (start := start_of(snapshot)) is not None]
    if noted:
        starts.append(parse_time(noted))
    return max(starts, default=None)


def due(schedule: WukongSnapshotSchedule, starts: cron.Schedule, last: datetime | None, now: datetime) -> timetable.Due:
    """The start to make a snapshot for, which is the last of those that were missed; and the next one."""
    spec = schedule.spec
    return timetable.due(
        starts,
        created=schedule.metadata.creation_timestamp,
        last=last,
        deadline=spec.starting_deadline_seconds,
        immediate=spec.immediate,
        now=now,
    )


# ------------------------------------------------------------------ its snapshots


def snapshot_at(schedule: WukongSnapshotSchedule, start: datetime) -> WukongSnapshot:
    """For one start. It has no owner, and says where it is from."""
    place, wukong = schedule.metadata, schedule.spec.wukong_name
    return WukongSnapshot(
        metadata=ObjectMeta(
            name=names.scheduled(place.name, start),
            namespace=place.namespace,
            labels=names.labels(wukong) | {names.SCHEDULE: place.name},
            annotations={names.SCHEDULED_BY: place.uid, names.SCHEDULED_AT: format_time(start)},
        ),
        spec=SnapshotSpec(wukong_name=wukong),
    )


def schedule_of(snapshot: WukongSnapshot) -> Iterable[Request]:
    """The schedule that a snapshot names."""
    name = snapshot.metadata.labels.get(names.SCHEDULE)
    return (Request(snapshot.metadata.namespace, name),) if name else ()


def _is_busy(snapshots: Sequence[WukongSnapshot]) -> bool:
    return bool(snapshots) and snapshots[0].status.phase not in ("Succeeded", "Failed")


def _held_up(snapshots: Sequence[WukongSnapshot]) -> Condition | None:
    """Why the last one waits for the quota of the namespace, if it does."""
    within = find_condition(snapshots[0].status.conditions, WITHIN_QUOTA) if snapshots else None
    return within if within is not None and within.reason == EXCEEDED and _is_busy(snapshots) else None


async def _delete(ctx: Context[WukongSnapshotSchedule], snapshot: WukongSnapshot, why: str) -> None:
    """As it was looked at: one that has its name by now is not meant, nor one that was lost and is whole by now."""
    place = snapshot.metadata
    try:
        await ctx.client.delete(
            WukongSnapshot,
            place.name,
            place.namespace,
            propagation="Background",
            uid=place.uid,
            if_version=place.resource_version,
        )
    except NotFound:
        return
    ctx.event("SnapshotExpired", f"WukongSnapshot {place.name} deleted: {why}")


def _note(ctx: Context[WukongSnapshotSchedule], snapshots: Sequence[WukongSnapshot]) -> None:
    status = ctx.obj.status
    succeeded = succeeded_of(snapshots)
    status.snapshots = len(succeeded)
    last = last_start(ctx.obj, snapshots)
    if last is not None:
        status.last_schedule_time = format_time(last)
    if snapshots:
        status.last_snapshot = snapshots[0].metadata.name
    if succeeded:
        status.last_successful_time = succeeded[0].metadata.annotations[names.SCHEDULED_AT]
