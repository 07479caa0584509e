"""The retry policy: whether and when a key comes again. `schedule_next` is one switch over result and error.

Nothing is given up for good:

- *Transient errors* (no connection, no answer in time, 429, 5xx, a conflict, `TransientError`) say nothing about the
  object. They are retried for as long as they last and never count; the back-off ends at `TRANSIENT_DELAY`, so that
  work goes on soon after the API server is back.
- *Any other error* counts. After more than `max_retries` in a row the key comes at the slowest pace (`max_delay`), and
  one event says so.
- *A `TerminalError`* waits until something changes; a `BlockedError`, and any of an object that is being deleted, comes
  again at a slow pace.

An event of another object, such as a child, leads to an attempt at once, but not to a new back-off: a key that keeps
failing while its children change would be retried in a storm. Only success, or another spec, ends the row of failures.

Upstream: reconcileHandler (controller-runtime's pkg/internal/controller/controller.go), where `Forget` is called on
success alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from konverge import clock
from konverge.cache.record import Record
from konverge.cache.store import Change
from konverge.client import (
    ApiStatusError,
    ClientError,
    Conflict,
    ConnectionFailed,
    CredentialError,
    Expired,
    Forbidden,
    TooManyRequests,
    Unauthorized,
)
from konverge.observe.metrics import ControllerNumbers
from konverge.runtime.declare import Settings
from konverge.runtime.failures import Failures, message
from konverge.runtime.reasons import Reason, Retry, Timer
from konverge.runtime.result import BlockedError, Quarantined, Request, Result, TerminalError, TransientError
from konverge.workqueue import Item, WorkQueue

TRANSIENT_DELAY = 60.0
"""The longest back-off after a transient error. A server that was away for an hour is not waited for any longer."""

_log = logging.getLogger("konverge.controller")

# No answer, or none that is about the object. Errors of the wire are ConnectionErrors.
_NO_ANSWER = (TransientError, ConnectionFailed, CredentialError, ConnectionError, TimeoutError)
_NOT_NOW = (TooManyRequests, Unauthorized, Expired)


def is_transient(error: BaseException) -> bool:
    """Whether an error says nothing about the object that was reconciled, so that it will pass."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(part) for part in error.exceptions)
    if isinstance(error, Conflict):
        return not any(cause.reason == "FieldManagerConflict" for cause in error.causes)
    if isinstance(error, Forbidden):
        return error.namespace_terminating
    if isinstance(error, ApiStatusError):
        return error.code >= 500 or isinstance(error, _NOT_NOW)
    return isinstance(error, _NO_ANSWER)


class _Failing:
    """What is remembered of a key that failed."""

    __slots__ = ("counted", "reported")

    def __init__(self) -> None:
        self.counted = 0
        """Failures in a row that were not transient."""
        self.reported = ""
        """The message of the last event about it."""


class Retries:
    """The retry policy of one controller.

    `warn` records a Warning event about the object of a key; `is_deleting` says whether its deletion was requested;
    `module` is the module of the reconciler, whose line is named where it raised.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[Request],
        numbers: ControllerNumbers,
        settings: Settings,
        *,
        warn: Callable[[Request, str, str], None],
        is_deleting: Callable[[Request], bool],
        module: str = "",
    ) -> None:
        self.failing: dict[Request, _Failing] = {}
        self._name = name
        self._queue = queue
        self._numbers = numbers
        self._settings = settings
        self._warn = warn
        self._is_deleting = is_deleting
        self._failures = Failures(name, module)

    def schedule_next(self, item: Item[Request], result: Result, error: BaseException | None) -> None:
        """A reconcile has ended: whether and when its key comes again."""
        results, key = self._numbers.results, item.key
        priority = item.priority if result.priority is None else result.priority
        if error is not None:
            results["error"] += 1
            self._numbers.errors += 1
            self._failed(item, error)
            return
        if self.failing:
            self.failing.pop(key, None)  # the row of failures has ended
        if result.requeue_after > 0:
            results["requeue_after"] += 1
            self._queue.forget(key)
            self._queue.add_after(key, result.requeue_after, priority=priority, reason=Timer(result.requeue_after))
        elif result.requeue:
            results["requeue"] += 1
            self.failing[key] = _Failing()  # no failure, but its back-off ends like that of one
            self._queue.add_rate_limited(key, priority=priority, reason=Retry(self._queue.num_requeues(key) + 1))
        else:
            results["success"] += 1
            self._queue.forget(key)

    def changed(self, change: Change) -> None:
        """The object of a failing key changed: earlier failures say nothing about another spec."""
        if is_other_work(change.old, change.new):
            self.failing.pop(change.key, None)
            self._queue.forget(change.key)

    # -------------------------------------------------------------- failures

    def place_of(self, error: BaseException) -> str:
        """The author's line that an error comes from."""
        return self._failures.place(error)

    def _failed(self, item: Item[Request], error: BaseException) -> None:
        key, queue = item.key, self._queue
        if isinstance(error, Quarantined):
            queue.forget(key)  # its cache has reported it, once for this version
            return
        attempt = queue.num_requeues(key) + 1
        state = self.failing.setdefault(key, _Failing())
        reason = Retry(attempt, message(error))
        if isinstance(error, TerminalError):
            self._terminal(item, state, error, reason)
            return
        if is_transient(error):
            delay = queue.add_rate_limited(key, priority=item.priority, reason=reason, at_most=TRANSIENT_DELAY)
            self._failures.transient(item, error, attempt, delay)
            return
        state.counted += 1
        slow = 0 < self._settings.max_retries < state.counted
        delay = queue.add_rate_limited(key, priority=item.priority, reason=reason, slowest=slow)
        if not isinstance(error, ClientError):
            self._numbers.panics += 1
        self._failures.failed(item, error, attempt, delay)
        if slow and state.counted == self._settings.max_retries + 1:
            self._slow_down(key, state, error)

    def _slow_down(self, key: Request, state: _Failing, error: BaseException) -> None:
        self._numbers.given_up += 1
        pace = f"it is tried every {self._settings.max_delay:g} s now, and at once when it changes"
        text = f"failed {state.counted} times in a row: {message(error)}; {pace}"
        _log.error("%s %s: %s", self._name, key, text)
        self._report(key, state, "ReconcileGivenUp", text)

    def _terminal(self, item: Item[Request], state: _Failing, error: TerminalError, reason: Reason) -> None:
        key = item.key
        self._queue.forget(key)
        if isinstance(error, BlockedError):
            delay = error.retry_after * clock.rng().uniform(0.9, 1.1)
            text = f"{error} (tried again every {error.retry_after:g} s)"
        elif self._is_deleting(key):
            delay = self._settings.max_delay
            text = f"{error} (tried again every {delay:g} s: the object is being deleted)"
        else:
            self._numbers.terminal_errors += 1
            delay = 0.0
            text = f"{error} (not tried again until something changes)"
        _log.error("%s %s: %s", self._name, key, text)
        self._report(key, state, error.event_reason, text)
        if delay:
            self._queue.add_after(key, delay, priority=item.priority, reason=reason)

    def _report(self, key: Request, state: _Failing, reason: str, text: str) -> None:
        """An event, once for the same message in a row of failures."""
        if state.reported != text:
            state.reported = text
            self._warn(key, reason, text)


_decode = msgspec.json.Decoder().decode


def is_other_work(old: Record | None, new: Record | None) -> bool:
    """Whether a change of an object makes its reconcile another task: another object, another spec, a deletion.

    Kinds without a generation are compared by content; status, labels and annotations do not count.
    """
    if old is None or new is None or old.uid != new.uid or old.generation != new.generation:
        return True
    if bool(old.meta.deletion_timestamp) != bool(new.meta.deletion_timestamp):
        return True
    return not new.generation and _content(old) != _content(new)


def _content(record: Record) -> dict[str, object]:
    return {name: value for name, value in _decode(record.raw).items() if name not in ("metadata", "status")}
