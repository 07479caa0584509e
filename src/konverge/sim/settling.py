"""When a cluster has come to rest: nothing has changed for a while, and nothing is about to.

Rest is about the store. Leases are renewed for ever and Events only inform, so they do not count; everything else that
is written does. On a virtual loop "a while" costs nothing: the loop says when its next timer is due, and if that is
after the while is over, the end is known at once and no time passes at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf

from konverge.apiserver.storage import Store
from konverge.sim.loop import VirtualLoop

RESTLESS = frozenset(("coordination.k8s.io/leases", "/events", "events.k8s.io/events"))
POLL = 0.01


class Unsettled(AssertionError):
    """The cluster did not come to rest in time."""


def last_change(store: Store) -> int:
    """The revision of the last change that counts."""
    return max((table.revision for name, table in store.tables.items() if name not in RESTLESS), default=0)


async def settle(store: Callable[[], Store], busy: Callable[[], str], *, quiet: float, limit: float) -> None:
    """Until nothing has changed for `quiet` seconds. Raises Unsettled after `limit` seconds."""
    loop = asyncio.get_running_loop()
    began = since = loop.time()
    seen = last_change(store())
    while True:
        due = await loop.idle() if isinstance(loop, VirtualLoop) else await _poll(loop, busy)
        now, revision = loop.time(), last_change(store())
        if revision != seen or due <= now:
            seen, since = revision, now
        if due > since + quiet:
            return
        if now - began > limit:
            raise Unsettled(f"something still changes after {limit:g} s: {busy() or 'the store does'}")
        await asyncio.sleep(max(min(due, since + quiet + POLL) - now, 0) if due < inf else POLL)


async def _poll(loop: asyncio.AbstractEventLoop, busy: Callable[[], str]) -> float:
    """On a real loop the next timer is not known: it may always be the next look. Work under way counts as change."""
    await asyncio.sleep(0)
    return loop.time() if busy() else loop.time() + POLL
