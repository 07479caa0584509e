"""Rest on real time: nothing that counts has happened for a while, and the while is learned, not guessed.

What counts: a change of the store by whomever (but Leases, Events and election locks), a write of the operator that it
had not tried before in this step, and its first list and watch of each resource after a start. What does not: writes
that change nothing again and again, and changes that only lead back to states that were there before. These go on at
rest as "noise" and are counted in the checkpoint.

`Activity` is the pure part: it is told what happens and when, and says since when it has been quiet.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from statistics import median_high

from konverge.check.differences import Masks
from konverge.check.gate.recorder import RESTLESS, Recorder
from konverge.check.host_time import longest, stolen
from konverge.check.model import Change, Exchange, Run
from konverge.check.under_way import is_under_way
from konverge.sim.cluster import Cluster, Unsettled
from konverge.sim.restless import busy_queues

FIRST = 0.75
"""Seconds, before the first step: nothing is there yet that the operator could be at work on."""
GENEROUS = 12.0
"""Seconds, for a first reference run: operators sleep up to ten seconds between two writes of one step."""
LEAST = 1.5
FACTOR = 1.5
LIMIT, LEAST_LIMIT = 120.0, 40.0
"""Seconds after which a step that has not come to rest is given up: undisturbed, and at least."""
LONGER = 4
"""So many times what the longest step of the reference took is the limit of a step of any other run."""
BUSY = 3
"""So many limits on the clock at the wall are the end even of a step in which the operator never stopped working."""
TICK = 0.1
STARTED = 30.0
"""Seconds until a program that has asked for nothing is taken to be one that asks for nothing, and one that has not
begun a watch again to be one that never will."""
CYCLE = 5
"""A change that is made so often to an object in one step goes round in a circle."""
SHOWN = 5


def quiet_after(references: Iterable[Run]) -> float:
    """The seconds without a change that mean rest, from the longest pause inside a step of the reference runs."""
    gaps = [checkpoint.gap for run in references for checkpoint in run.checkpoints]
    return max(LEAST, FACTOR * max(gaps, default=0.0))


def pauses_after(references: Iterable[Run]) -> dict[str, float]:
    """The same for each step of its own: an operator sleeps in some of them, and not in others."""
    gaps: dict[str, float] = {}
    for run in references:
        for checkpoint in run.checkpoints:
            gaps[checkpoint.step] = max(gaps.get(checkpoint.step, 0.0), checkpoint.gap)
    return {name: max(LEAST, FACTOR * gap) for name, gap in gaps.items()}


def limit_after(references: Iterable[Run]) -> float:
    """The seconds after which a step is given up, from the longest step of the reference runs."""
    longest = 0.0
    for run in references:
        times = [0.0, *(checkpoint.time for checkpoint in run.checkpoints)]
        longest = max([longest, *(after - before for before, after in pairwise(times))])
    return min(LIMIT, max(LEAST_LIMIT, LONGER * longest))


def is_given_up(elapsed: float, lost: float, limit: float) -> bool:
    """Whether a step has had its time: `lost` of it is not counted, but an operator that never stops working ends too.

    >>> is_given_up(50.0, 0.0, 40.0), is_given_up(50.0, 20.0, 40.0), is_given_up(130.0, 130.0, 40.0)
    (True, False, True)
    """
    return elapsed - lost > limit or elapsed > BUSY * limit


def always_busy_in(references: Iterable[Run]) -> tuple[str, ...]:
    """Steps at whose rest objects say that something is under way, although nothing went wrong."""
    return tuple(sorted({item.step for run in references for item in run.checkpoints if item.under_way}))


class Activity:
    """What happened in one step, and since when nothing has."""

    def __init__(self, now: float) -> None:
        self.last = now
        self._tried: set[tuple[str, ...]] = set()
        self._made: Counter[tuple[str, str]] = Counter()
        self._noise: list[tuple[float, str]] = []

    def happened(self, time: float) -> None:
        self.last = max(self.last, time)

    def changed(self, change: Change) -> None:
        key = (f"{change.moment.type} {change.ref}", _made(change))
        self._made[key] += 1
        if self._made[key] > CYCLE:
            self._noise.append((change.time, f"{change.ref} ({change.moment.change or change.moment.type.lower()})"))
        else:
            self.happened(change.time)

    def requested(self, exchange: Exchange, time: float) -> None:
        """A write that changed nothing, a refused one, or a list or watch."""
        key = (
            exchange.verb,
            exchange.resource,
            exchange.namespace,
            exchange.name,
            str(exchange.status),
            str(exchange.incarnation),
        )
        if key not in self._tried:
            self._tried.add(key)
            self.happened(time)
        elif exchange.verb not in ("list", "watch"):
            where = f"{exchange.namespace}/{exchange.name}" if exchange.namespace else exchange.name
            self._noise.append((time, f"{exchange.verb} {exchange.resource.removeprefix('/')} {where}"))

    def noise(self, since: float) -> dict[str, int]:
        return dict(Counter(text for time, text in self._noise if time >= since))


class RealRest:
    """Waits for rest on a real loop.

    Time in which the operator's process ran or waited for a processor, or in which this process did, is no rest: so
    a loaded machine makes a wait longer, and not its result another one.
    """

    patience = 0.0

    def __init__(
        self,
        quiet: float = GENEROUS,
        limit: float = LIMIT,
        pauses: Mapping[str, float] | None = None,
        always_busy: Collection[str] = (),
    ) -> None:
        """`pauses` are shorter ones, by the name of a step, for when no object says that something is under way; in
        the steps of `always_busy` they always do.
        """
        self.quiet, self._limit = quiet, limit
        self._pauses = dict(pauses or {})
        self._always_busy = frozenset(always_busy)
        self.under_way = False
        self.gap = 0.0
        """The longest pause of the last wait between two things that counted. Controllers that look at something, and
        change nothing, end none."""
        self.noise: dict[str, int] = {}
        self.began = False
        """There is something that the operator could be at work on."""

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        quiet = self.quiet if self.began else min(self.quiet, FIRST)
        self.began = True
        short, says_nothing = (LEAST, True) if recorder.away else self._short(recorder.step_name)
        began = recorder.now()
        activity = Activity(began)
        watch = _Watch(cluster, recorder, activity)
        ticks = _Ticks(recorder)
        lost = self.gap = idle = 0.0
        with watch:
            while True:
                await asyncio.sleep(TICK)
                now, elapsed, lost_now = ticks.next()
                busy = watch.busy(now)
                idle += 0.0 if busy else elapsed - lost_now
                lost += lost_now
                if activity.last > watch.seen:
                    self.gap, idle = max(self.gap, idle), 0.0
                if busy:
                    activity.happened(now)
                if activity.last > watch.seen:
                    watch.seen, lost = activity.last, 0.0
                pause = now - activity.last - lost
                if pause >= quiet or (pause >= short and (says_nothing or not watch.is_under_way())):
                    self.under_way = watch.is_under_way()
                    self.noise = activity.noise(activity.last)
                    return
                if is_given_up(now - began, lost, self._limit):
                    self.noise = activity.noise(began)
                    raise Unsettled(f"something still changes after {self._limit:g} s: {watch.latest()}")

    def _short(self, step: str) -> tuple[float, bool]:
        """The pause that is usually enough, and whether objects say the same then as always.

        Of a step that the reference did not have: what most of its steps need, if objects say when that is not enough,
        and otherwise what any of them needs.
        """
        if not self._pauses:
            return self.quiet, True
        if step in self._pauses:
            return self._pauses[step], step in self._always_busy
        return (self.quiet, True) if self._always_busy else (median_high(self._pauses.values()), False)


def lost_in(elapsed: float, work: float, taken: float) -> float:
    """Seconds of a tick that are no rest: the program had something to do, or its machine stood still, or ours did."""
    return max(elapsed - 2 * TICK, min(work + taken, elapsed), 0.0)


class _Ticks:
    """The time from one look to the next, and how much of it is no rest."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before, self._worked, self._taken = recorder.now(), recorder.at_work(), stolen()

    def next(self) -> tuple[float, float, float]:
        """Now, the seconds since the last look, and those of them that are lost."""
        before, worked, taken = self._before, self._worked, self._taken
        self._before, self._worked, self._taken = self._recorder.now(), self._recorder.at_work(), stolen()
        elapsed = self._before - before
        return self._before, elapsed, lost_in(elapsed, self._worked - worked, longest(taken, self._taken))


class _Watch:
    """Feeds an Activity from a recorder."""

    def __init__(self, cluster: Cluster, recorder: Recorder, activity: Activity) -> None:
        self._cluster, self._recorder, self._activity = cluster, recorder, activity
        self.seen = activity.last
        self._latest: list[str] = []
        self._asked, self._under_way = -1.0, False

    def __enter__(self) -> None:
        self._recorder.on_change.append(self._changed)
        self._recorder.on_request.append(self._requested)

    def __exit__(self, *_: object) -> None:
        self._recorder.on_change.remove(self._changed)
        self._recorder.on_request.remove(self._requested)

    def busy(self, now: float) -> bool:
        """Controllers of the cluster have work, or the operator is not up, or it has not begun again to watch what the
        check has cut it off from: clients wait for a second or two before they do, and for longer each time."""
        recorder = self._recorder
        if recorder.down:
            return not recorder.away
        if not recorder.asked and now - recorder.started < STARTED:
            return True
        if recorder.unwatched and now - recorder.cut_off < STARTED:
            return True
        scheduler = self._cluster.scheduler
        return bool(busy_queues({} if scheduler is None else {scheduler.name: scheduler.queue}))

    def is_under_way(self) -> bool:
        """Asked again only when something has happened: it looks at everything."""
        if self._asked != self._activity.last:
            self._asked = self._activity.last
            self._under_way = is_under_way(self._cluster.server.store, self._recorder.first)
        return self._under_way

    def _changed(self, change: Change) -> None:
        self._activity.changed(change)
        self._latest.append(str(change.moment))

    def _requested(self, exchange: Exchange) -> None:
        if exchange.perturbed:  # a client that repeats it by itself, as Retry-After asks for, is at work
            self._activity.happened(self._recorder.now())
        elif exchange.place is None and exchange.verb != "get" and exchange.resource not in RESTLESS:
            self._activity.requested(exchange, self._recorder.now())

    def latest(self) -> str:
        return "; ".join(self._latest[-SHOWN:]) or "controllers are at work"


_MASKS = Masks()


def _made(change: Change) -> str:
    """What a change made of an object: the new values, but for times, versions and addresses."""
    return repr([(path, new) for path, _, new in change.differences if not _MASKS.hides("", path)])
