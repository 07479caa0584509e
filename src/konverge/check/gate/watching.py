"""Perturbers of views: stale starts, watches that lag, states that pass unseen, own writes seen late."""

from __future__ import annotations

import asyncio
from collections import Counter

from konverge.check.gate.core import Gate, Perturber
from konverge.check.gate.views import Hold, at_revision, may_be_old
from konverge.check.model import Change, Exchange, Gap, Lag, LateOwnWrites, Stale
from konverge.wire.message import Request, Response

LONGEST = 20.0
"""Seconds that a view is held, at most."""
LONGEST_GAP = 120.0
MOST_ALIKE = 15
"""Or so many changes that are alike: an operator that does not see a deletion fights the garbage collector as long as
it does not, and that is no mistake. On virtual time, none may pass."""


class _Viewing(Perturber):
    """Holds a view of a resource, sooner or later."""

    longest, most_alike = LONGEST, MOST_ALIKE

    def __init__(self) -> None:
        self._alike: Counter[tuple[str, ...]] = Counter()
        self._gate: Gate | None = None
        self._hold: Hold | None = None
        self._timer: asyncio.TimerHandle | None = None

    def attach(self, gate: Gate) -> None:
        self._gate = gate

    @property
    def gate(self) -> Gate:
        assert self._gate is not None
        return self._gate

    @property
    def holds(self) -> bool:
        return self._hold is not None

    def changed(self, change: Change) -> None:
        if self._hold is None:
            return
        moment = change.moment
        key = (moment.type, moment.resource, moment.namespace, moment.name, moment.change)
        self._alike[key] += 1
        if self._alike[key] > self.most_alike:
            self._release()

    def _begin(self, resource: str, revision: int) -> None:
        self._hold = self.gate.views.hold(resource, revision)
        self._timer = asyncio.get_running_loop().call_later(self.longest, self._release)

    def _release(self) -> bool:
        if self._timer is not None:
            self._timer.cancel()
        hold, self._hold = self._hold, None
        if hold is not None:
            self.gate.views.release(hold)
        return hold is not None

    async def rested(self, step: int) -> bool:
        return self._release()


class Showing(_Viewing):
    """Stale: starts the operator again and shows a resource as it was, until rest."""

    def __init__(self, stale: Stale) -> None:
        super().__init__()
        self._stale = stale
        self._revision = 0
        self._restarted = 0
        """The revision of `until`."""

    def changed(self, change: Change) -> None:
        super().changed(change)
        stale = self._stale
        if not self._revision and change.moment == stale.since:
            self._revision = change.revision - stale.before
        if self._revision and not self._restarted and change.moment == stale.until:
            self._restarted = change.revision
            self._begin(stale.resource, self._revision)
            when = "before" if stale.before else "after"
            self.gate.crash(f"restart after {stale.until}, shown {stale.resource} as {when} {stale.since}")

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        if self._hold is None or exchange.verb != "list" or exchange.resource != self._stale.resource:
            return None
        if not may_be_old(request) or self.gate.views.seen(exchange.resource) > self._revision:
            return None
        answer = await self.gate.inner(at_revision(request, self._revision))
        if answer.status >= 400:
            return None
        self.done = True
        self.gate.views.listed(exchange, self._revision, any_version=True)
        return answer

    async def after(self, exchange: Exchange, request: Request, response: Response) -> Response:
        if self._restarted and self._restarted in exchange.revisions:
            await asyncio.get_running_loop().create_future()  # never: the operator ends before it hears of it
        return response


class Lagging(_Viewing):
    """Lag: the watches of a resource stand still from a moment to another, or to the next rest."""

    def __init__(self, lag: Lag) -> None:
        super().__init__()
        self._lag = lag

    def changed(self, change: Change) -> None:
        super().changed(change)
        lag = self._lag
        if not self.done and change.moment == lag.since:
            self.done = True
            self._begin(lag.resource, change.revision - 1)
            self.gate.note(f"watches of {lag.resource} stand still from {lag.since}")
        elif lag.until is not None and change.moment == lag.until:
            self._release()


class Skipping(_Viewing):
    """Gap: states pass while the watches of a resource stand still, and their history expires."""

    longest, most_alike = LONGEST_GAP, 4 * MOST_ALIKE

    def __init__(self, gap: Gap) -> None:
        super().__init__()
        self._gap = gap
        self._since = 0

    def changed(self, change: Change) -> None:
        super().changed(change)
        gap, views = self._gap, self.gate.views
        if not self._since and change.moment == gap.since:
            self._since = change.revision
            self._begin(gap.resource, change.revision - 1)
        elif self._hold is not None and change.moment == gap.until:
            unseen = views.seen(gap.resource) < self._since  # it may have listed again by itself
            if unseen:
                self.done = True
                self.gate.note(f"unseen: {gap.since} to {gap.until}")
                views.expire(gap.resource, change.revision)
            self._release()

    @property
    def hurries(self) -> bool:
        return self._hold is not None

    async def rested(self, step: int) -> bool:
        return False  # it ends at its moment, in a later step


class Delaying(_Viewing):
    """Late own writes: each write of the operator holds the watches of its resource for some seconds."""

    def __init__(self, late: LateOwnWrites) -> None:
        super().__init__()
        self._late = late
        self._pending: dict[int, asyncio.TimerHandle] = {}
        """By the revision of a write: what will show it."""

    @property
    def holds(self) -> bool:
        return bool(self._pending)

    def changed(self, change: Change) -> None:
        if change.writer != "operator" or change.moment.resource != self._late.resource:
            return
        if not self.done:
            self.done = True
            self.gate.note(f"own writes of {self._late.resource} are seen {self._late.seconds:g} s late")
        loop = asyncio.get_running_loop()
        self._pending[change.revision] = loop.call_later(self._late.seconds, self._show, change.revision)
        if self._hold is None:
            self._hold = self.gate.views.hold(self._late.resource, change.revision - 1)

    def _show(self, revision: int) -> None:
        self._pending.pop(revision, None)
        before, self._hold = self._hold, None
        if self._pending:
            self._hold = self.gate.views.hold(self._late.resource, min(self._pending) - 1)
        if before is not None:
            self.gate.views.release(before)

    async def rested(self, step: int) -> bool:
        waiting = list(self._pending)
        for revision in waiting:
            self._pending[revision].cancel()
            self._show(revision)
        return bool(waiting)
