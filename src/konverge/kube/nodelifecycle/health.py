"""Whether a node is alive, by its Lease and its status. Pure: it is given what was observed, and when.

A node's clock is not trusted at first: what counts is that something changed since the last check, so checks are
frequent. Once a Lease has a time between two checks in short succession, the node's clock agrees with ours, and its
times are trusted: then it is enough to check when the next silence would be too long, and once shortly before.

Upstream (which polls every node): tryUpdateNodeHealth (pkg/controller/nodelifecycle/node_lifecycle_controller.go).
"""

from __future__ import annotations

from dataclasses import dataclass

POLL = 5.0
"""Seconds between checks of a node whose clock is not trusted, and by how much a trusted clock may differ. Upstream:
the
default of NodeMonitorPeriod."""
RENEWAL = 10.0
"""Seconds between renewals of a Lease (the kubelet's default). A node that was silent for that long before its grace
period ends is silent by our own clock too."""

_TICK = 0.001
"""Seconds that do not count: sums of times are not exact, and a check must always be later than the last one."""


@dataclass(slots=True)
class Health:
    """What is known of one node."""

    uid: str
    mark: tuple[str, str]
    """The renew time of the Lease and the heartbeat of the status, as they were last seen."""
    alive: float
    """When the node last reported."""
    checked: float
    trusted: bool = False
    """Whether `alive` is the time in the report, and not the time at which we saw it."""


def observe(known: Health | None, uid: str, mark: tuple[str, str], renewed: float | None, now: float) -> Health:
    """Take in what is observed now; `renewed` is the time in the Lease."""
    if known is None or known.uid != uid:
        return Health(uid, mark, now, now)
    if mark == known.mark:
        return Health(uid, mark, known.alive, now, known.trusted)
    agrees = renewed is not None and known.checked <= renewed <= now
    if renewed is not None and agrees and (known.trusted or now - known.checked <= POLL):
        return Health(uid, mark, renewed, now, trusted=True)
    return Health(uid, mark, now, now)


def is_silent(health: Health, grace: float) -> bool:
    return health.checked - health.alive >= grace - _TICK


def next_check(health: Health, grace: float) -> float:
    """Seconds until the next check can find something new."""
    if is_silent(health, grace):
        return grace  # its report when it is back is an event
    left = health.alive + grace - health.checked
    if health.trusted and left > RENEWAL + _TICK:
        return left - RENEWAL
    return left if health.trusted else min(POLL, left)
