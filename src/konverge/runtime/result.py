"""The request and the result of a reconcile, and the errors that say more than "try again"."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from konverge.cache.record import Key

Request = Key
"""Which object to reconcile: namespace and name."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What happens next. The default: nothing, until something changes; the key's failures are forgotten.

    >>> Result(requeue_after=30)
    Result(requeue=False, requeue_after=30, priority=None)
    """

    requeue: bool = False
    """Come back, with the back-off of a failure."""
    requeue_after: float = 0.0
    """Come back after so many seconds, whatever happens."""
    priority: int | None = None
    """The priority of coming back; by default the one it had."""


DONE = Result()


class ReconcileError(Exception):
    """The base of the errors that say how the runtime should continue."""


class TransientError(ReconcileError):
    """A temporary problem: retried with back-off however long it lasts, logged in one line without a traceback."""


class TerminalError(ReconcileError):
    """Trying again cannot help: logged, counted and recorded as a Warning event; not retried until something changes.

    Of an object that is being deleted it is retried at the slowest pace: no user would change its spec any more.
    """

    event_reason: ClassVar[str] = "ReconcileFailed"
    """The reason of the Warning event."""


class Quarantined(TerminalError):
    """The object of the request cannot be read. That was reported about the object; it waits for another version."""


class BlockedError(TerminalError):
    """Something outside of this object must change first: one Warning event, and another attempt every minute or so.

        raise BlockedError("Service web belongs to another owner: rename it, or allow its adoption")

    It heals by itself when the obstacle is gone, also where no event says so.
    """

    retry_after = 60.0
    """Seconds until the next attempt, ± 10 %."""
