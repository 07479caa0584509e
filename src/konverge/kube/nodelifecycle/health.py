"""Is a node alive? By its Lease and its status, as seen from here. Pure: it is told what is seen, and when.

A node's clock is not trusted at first: what counts is that something changed since the last look, so looks are
frequent. Once a Lease is seen to bear a time that lies between two looks in short succession, its clock agrees with
ours, and it is taken at its word: then it is enough to look when the next silence would be too long, and once shortly
before.
"""

from __future__ import annotations

from dataclasses import dataclass

POLL = 5.0
"""Seconds between looks at a node whose clock is not trusted; and by how much a trusted one may differ."""
RENEWAL = 10.0
"""Seconds between renewals. A node that was silent for so long before it is due is so by our own clock too."""

_TICK = 0.001
"""Seconds that do not count: sums of times are not exact, and a look must always be later than the last."""


@dataclass(slots=True)
class Health:
    """What is known of one node."""

    uid: str
    mark: tuple[str, str]
    """The renew time of the Lease and the heartbeat of the status, as they were last seen."""
    alive: float
    """When the node last showed a sign of life."""
    looked: float
    trusted: bool = False
    """Whether `alive` is the time that the sign bears, and not that of our seeing it."""


def look(known: Health | None, uid: str, mark: tuple[str, str], renewed: float | None, now: float) -> Health:
    """Take in what is seen now; `renewed` is the Lease's own time."""
    if known is None or known.uid != uid:
        return Health(uid, mark, now, now)
    if mark == known.mark:
        return Health(uid, mark, known.alive, now, known.trusted)
    agrees = renewed is not None and known.looked <= renewed <= now
    if renewed is not None and agrees and (known.trusted or now - known.looked <= POLL):
        return Health(uid, mark, renewed, now, trusted=True)
    return Health(uid, mark, now, now)


def is_silent(health: Health, grace: float) -> bool:
    return health.looked - health.alive >= grace - _TICK


def next_look(health: Health, grace: float) -> float:
    """Seconds until something can be new."""
    if is_silent(health, grace):
        return grace  # what it says when it is back is an event
    left = health.alive + grace - health.looked
    if health.trusted and left > RENEWAL + _TICK:
        return left - RENEWAL
    return left if health.trusted else min(POLL, left)
