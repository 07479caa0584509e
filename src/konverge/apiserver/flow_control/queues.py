"""The fair queues of one priority level: which requests begin, which wait, which are refused. The time is given.

A level has seats. A request that finds none free waits in one of several queues. Each flow (the requests of a user, or
those for a namespace) uses few of these, its hand: a flow that fills its queues leaves most others with a free one.

Of the requests at the heads of the queues, that one begins which would end first if all queues were served at once,
with equal shares. How far each has come is measured in seat-seconds: `_progress` is what each queue in use has been
granted since the start, `_Queue.next` where the queue stands itself. A request is taken to last `GUESS` when it begins,
which is corrected when it ends.

Upstream: apiserver/pkg/util/flowcontrol/fairqueuing/queueset.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

GUESS = 0.003
"""Seconds that a request is taken to last. Upstream: estimatedServiceDuration."""


class Rejected(Exception):
    """There is no place for a request, and why: as metrics name the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _Queue:
    __slots__ = ("executing", "index", "next", "seats_waiting", "waiting")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: dict[Ticket, None] = {}
        """Oldest first."""
        self.seats_waiting = 0
        self.executing = 0
        self.next = 0.0
        """The progress at which the next request would begin."""

    def head(self) -> Ticket:
        return next(iter(self.waiting))

    def keep_up(self) -> None:
        """A queue that could not use its share does not save it: nothing begins before it has come."""
        if self.waiting:
            self.next = max(self.next, self.head().arrived)


class Ticket(msgspec.Struct, eq=False):
    """A request in a level."""

    seats: int
    begin: Callable[[], None]
    """Called when a request that waited gets its seats."""
    arrived: float
    """The level's progress then."""
    queue: _Queue | None = None
    started: float | None = None
    """The time; None while it waits."""


class Limits(msgspec.Struct, frozen=True):
    """What a PriorityLevelConfiguration says. Without queues, who finds no seat is refused."""

    seats: int
    queues: int = 0
    hand: int = 0
    length: int = 0
    """Requests that may wait in each queue."""


def dealt(value: int, deck: int, hand: int) -> list[int]:  # upstream: shufflesharding.Dealer
    """A hand: so many different numbers below `deck`, chosen by a large one.

    >>> dealt(0, 8, 3), dealt(8 * 7 * 6 - 1, 8, 3)
    ([0, 1, 2], [7, 6, 5])
    """
    cards: list[int] = []
    for number in range(hand):
        value, card = divmod(value, deck - number)
        for other in sorted(cards):
            if card >= other:
                card += 1
        cards.append(card)
    return cards


class Queues:
    """The requests of one level."""

    def __init__(self, limits: Limits, now: Callable[[], float], changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is called when the demand for seats has changed."""
        self._now = now
        self._changed = changed
        self._queues: list[_Queue] = []
        self._used: dict[int, _Queue] = {}
        """The queues of which requests wait."""
        self._active = 0
        """Queues of which requests wait or execute."""
        self._progress = 0.0
        self._time = now()
        self._last = 0
        """The queue that was served last: others go first where all else is equal."""
        self._dealt = 0
        self.executing = 0
        self.in_use = 0
        """Seats."""
        self.waiting = 0
        self.seats_waiting = 0
        self.limits = limits
        self.configure(limits)

    @property
    def demand(self) -> int:
        """Seats that are used, or would be."""
        return self.in_use + self.seats_waiting

    @property
    def free(self) -> int:
        """Seats that a request can have at once."""
        return 0 if self.waiting else max(0, self.limits.seats - self.in_use)

    def configure(self, limits: Limits) -> None:
        """Queues that are too many stay, without new requests; those that wait are not sent away."""
        self._tick()
        self.limits = limits
        self._queues += [_Queue(index) for index in range(len(self._queues), limits.queues)]
        self._serve()

    def enter(self, flow: int, seats: int, begin: Callable[[], None]) -> Ticket:
        """A request of a flow arrives: it has begun, or waits until `begin` is called. Raises Rejected."""
        self._tick()
        ticket = Ticket(seats, begin, self._progress)
        if not self.limits.queues:
            if not self._fits(seats):
                raise Rejected("concurrency-limit")
            self._start(ticket)
            return ticket
        queue = ticket.queue = self._shortest(flow)
        if self.in_use >= self.limits.seats and len(queue.waiting) >= self.limits.length:
            raise Rejected("queue-full")
        self._wake(queue)
        queue.waiting[ticket] = None
        queue.seats_waiting += seats
        self._used[queue.index] = queue
        self.waiting += 1
        self.seats_waiting += seats
        queue.keep_up()
        self._serve()
        self._changed()
        return ticket

    def occupy(self, flow: int, seats: int) -> Ticket:
        """A request of a flow has begun, as there were free seats."""
        self._tick()
        ticket = Ticket(seats, lambda: None, self._progress)
        if self.limits.queues:
            ticket.queue = self._shortest(flow)
            self._wake(ticket.queue)
        self._start(ticket)
        self._changed()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """A request has ended, or waits no longer for its turn."""
        self._tick()
        queue = ticket.queue
        if ticket.started is None:
            self._forget(ticket)
        else:
            self.executing -= 1
            self.in_use -= ticket.seats
            if queue is not None:
                queue.executing -= 1
                queue.next += ticket.seats * (self._time - ticket.started - GUESS)
        if queue is not None:
            queue.keep_up()
            self._active -= not queue.waiting and not queue.executing
        self._serve()
        self._changed()

    # --- the parts

    def _tick(self) -> None:
        now = self._now()
        if self._active:
            rate = min(self.demand, self.limits.seats) / self._active
            self._progress += rate * (now - self._time)
        self._time = now

    def _shortest(self, flow: int) -> _Queue:
        """Of a flow's hand, the queue in which the least work waits; not always the first one of several."""
        hand = dealt(flow, self.limits.queues, self.limits.hand)
        start = self._dealt % len(hand)
        self._dealt += 1
        queues = [self._queues[index] for index in (*hand[start:], *hand[:start])]
        return min(queues, key=lambda queue: queue.seats_waiting)

    def _wake(self, queue: _Queue) -> None:
        if not queue.waiting and not queue.executing:
            self._active += 1
            queue.next = self._progress

    def _fits(self, seats: int) -> bool:
        """What is wider than the level begins when nothing else executes."""
        return self.in_use + seats <= self.limits.seats or (seats > self.limits.seats and not self.executing)

    def _start(self, ticket: Ticket) -> None:
        ticket.started = self._time
        self.executing += 1
        self.in_use += ticket.seats
        queue = ticket.queue
        if queue is not None:
            queue.executing += 1
            queue.next += ticket.seats * GUESS

    def _forget(self, ticket: Ticket) -> None:
        queue = ticket.queue
        assert queue is not None, "without queues nothing waits"
        del queue.waiting[ticket]
        queue.seats_waiting -= ticket.seats
        if not queue.waiting:
            del self._used[queue.index]
        self.waiting -= 1
        self.seats_waiting -= ticket.seats

    def _serve(self) -> None:
        """Begin what can begin. A wide request that is next is waited for: narrow ones would never let it in."""
        while self.waiting and self.in_use < self.limits.seats:
            queue = min(self._used.values(), key=self._turn)
            ticket = queue.head()
            if not self._fits(ticket.seats):
                return
            self._forget(ticket)
            self._start(ticket)
            queue.keep_up()
            self._last = queue.index
            ticket.begin()

    def _turn(self, queue: _Queue) -> tuple[float, int]:
        return queue.next + queue.head().seats * GUESS, (queue.index - self._last - 1) % len(self._queues)
