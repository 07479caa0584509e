"""A client that writes for a key only while it is ours.

The question is asked before every write, and again directly before each sending, below the waits of the client: a
process that was suspended wakes up in the middle of its reconciles, and the first write of any of them fails. Writes
that are on their way when the Lease runs out are given up. The key of each counts as in work, whoever makes it: a
reconcile may have started a task that outlives it. One whose answer was lost may still take effect, so its key counts
as in work for as long as a write at the very end of a Lease may be on its way: the Lease's duration less the renew
deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from konverge import clock
from konverge.client import Client
from konverge.client.call import Call, Caller
from konverge.runtime.sharding.declare import NotOurs
from konverge.runtime.sharding.membership import Began, Ended, Event, Membership
from konverge.runtime.sharding.rendezvous import SlotOf
from konverge.runtime.writes import current_request, may_have_taken_effect
from konverge.wire.message import Response, Stream


class Fence:
    """What stands between a replica's reconciles and the API server."""

    def __init__(self, membership: Membership, slot_of: SlotOf, step: Callable[[Event], None]) -> None:
        self._membership = membership
        self._slot_of = slot_of
        self._step = step
        self._on_their_way: set[asyncio.Timeout] = set()

    def client(self, inner: Client) -> Client:
        return FencedClient(inner, self)

    def slot(self) -> int | None:
        """The slot of the key that the present task works for; None when it works for none."""
        request = current_request()
        return None if request is None else self._slot_of(request)

    def check(self, slot: int | None) -> None:
        """Raises NotOurs when this slot must not be written for."""
        now = clock.elapsed()
        if self._membership.valid(now) if slot is None else self._membership.may_write(slot, now):
            return
        if self._membership.valid(now):
            raise NotOurs(f"{current_request()} belongs to another replica: nothing is written")
        raise NotOurs("the Lease of this replica is not valid: nothing is written")

    async def send(self, inner: Caller, call: Call) -> Response:
        """Make a write, if it may be made."""
        slot = self.slot()
        self.check(slot)
        call.ask_before_send(partial(self.check, slot))
        if slot is None:
            return await self._bounded(inner, call, slot)
        self._step(Began(slot))
        try:
            return await self._bounded(inner, call, slot)
        finally:
            self._step(Ended(slot))

    async def _bounded(self, inner: Caller, call: Call, slot: int | None) -> Response:
        """Make a write that is given up when the Lease runs out."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._on_their_way.add(limit)
                return await inner.call(call)
        except BaseException as error:
            if not isinstance(error, TimeoutError) and not may_have_taken_effect(error):
                raise
            self._hold(slot)
            if limit.expired():
                raise NotOurs("the Lease of this replica ran out during a write: it may have taken effect") from error
            raise
        finally:
            self._on_their_way.discard(limit)

    def _hold(self, slot: int | None) -> None:
        if slot is not None:
            timing = self._membership.timing
            self._step(Began(slot))
            delay = timing.lease_duration - timing.renew_deadline
            asyncio.get_running_loop().call_later(delay, self._step, Ended(slot))

    def give_up(self) -> None:
        """The Lease is not valid any more: end every write that is on its way."""
        now = asyncio.get_running_loop().time()
        for limit in self._on_their_way:
            with suppress(RuntimeError):  # it has just ended
                limit.reschedule(now)


class FencedClient(Client):
    """A client whose writes pass the fence."""

    def __init__(self, inner: Client, fence: Fence) -> None:
        self._use_caller(_FencedCalls(inner.caller, fence), inner.mapper)


class _FencedCalls:
    def __init__(self, inner: Caller, fence: Fence) -> None:
        self._inner = inner
        self._fence = fence

    @property
    def near(self) -> bool:
        return self._inner.near

    async def call(self, call: Call) -> Response:
        if call.writes:
            return await self._fence.send(self._inner, call)
        return await self._inner.call(call)

    async def stream(self, call: Call) -> Stream:
        return await self._inner.stream(call)
