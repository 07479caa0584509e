"""The retry policy alone: a queue, numbers, and what a reconcile returned or raised."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import pytest

from konverge.cache.store import Change, ChangeType
from konverge.client import ClientError
from konverge.client.errors import error_from_answer
from konverge.observe.metrics import ControllerNumbers
from konverge.runtime import BlockedError, Request, Result, Retry, Settings, TerminalError, Timer, TransientError
from konverge.runtime.result import DONE, Quarantined
from konverge.runtime.retries import Retries, is_transient, message
from konverge.workqueue import Backoff, Item, RateLimiter, WorkQueue
from tests.runtime.test_retries import PASSING, STAYING, _of

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-18", "R-20")]


def answer(code: int, reason: str, message: str = "no", cause: str = "") -> ClientError:
    details = {"causes": [{"reason": cause, "message": message}]} if cause else {}
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return error_from_answer(code, json.dumps(body).encode())


A, B = Request("ns", "a"), Request("ns", "b")


class World:
    """A policy with a queue of its own. `after` says when a key comes again, and as what."""

    def __init__(self, *, max_retries: int = 3, deleting: bool = False) -> None:
        self.numbers = ControllerNumbers("c")
        self.events: list[tuple[Request, str, str]] = []
        backoff = Backoff(1.0, 1000.0)
        self.queue: WorkQueue[Request] = WorkQueue(limiter=RateLimiter(backoff, None), metrics=self.numbers.queue)
        self.retries = Retries(
            "c",
            self.queue,
            self.numbers,
            Settings(max_retries=max_retries, max_delay=1000.0),
            warn=lambda *event: self.events.append(event),
            is_deleting=lambda key: deleting,
        )

    def end(self, outcome: Any, *, key: Request = A, priority: int = 0) -> None:
        item = Item(key, priority, (), 0.0)
        error = outcome if isinstance(outcome, BaseException) else None
        self.retries.schedule_next(item, DONE if error else outcome, error)

    async def after(self, *, limit: float = 5000.0) -> tuple[float, Item[Request]] | None:
        """How long it takes until a key comes, and its item; None when none comes."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(limit):
                item = await self.queue.get()
        except TimeoutError:
            return None
        self.queue.done(item.key)
        return round(asyncio.get_running_loop().time() - began, 3), item


async def test_success_ends_it() -> None:
    world = World()
    world.end(RuntimeError("no"))
    await world.after()
    world.end(DONE)
    assert await world.after() is None
    assert (world.queue.num_requeues(A), world.retries.failing) == (0, {})
    assert world.numbers.results == {"success": 1, "error": 1, "requeue": 0, "requeue_after": 0}
    assert (world.numbers.errors, world.numbers.panics, world.numbers.queue.retries) == (1, 1, 1)


async def test_a_timer_comes_in_time_and_ends_the_row() -> None:
    world = World()
    world.end(RuntimeError("no"), priority=7)
    await world.after()
    world.end(Result(requeue_after=0.5), priority=7)
    after = await world.after()
    assert after == (0.5, Item(A, 7, (Timer(0.5),), 0.0))
    assert (world.queue.num_requeues(A), world.retries.failing) == (0, {})
    world.end(Result(requeue_after=30, priority=-5), priority=7)
    after = await world.after()
    assert after == (30, Item(A, -5, (Timer(30),), 0.0))
    assert world.numbers.results["requeue_after"] == 2


async def test_a_requeue_backs_off_and_is_no_failure() -> None:
    world = World(max_retries=1)
    for attempt, delay in ((1, 1), (2, 2), (3, 4)):
        world.end(Result(requeue=True, priority=attempt), priority=9)
        assert await world.after() == (delay, Item(A, attempt, (Retry(attempt),), 0.0))
    assert world.numbers.results["requeue"] == 3
    assert (world.numbers.errors, world.events) == (0, [])
    world.retries.changed(Change(ChangeType.UPDATED, A, _of(1), _of(2)))
    assert world.queue.num_requeues(A) == 0


async def test_a_failure_backs_off_with_its_priority_and_its_message() -> None:
    world = World()
    for attempt, delay in ((1, 1), (2, 2), (3, 4)):
        world.end(RuntimeError("no"), priority=-3)
        assert await world.after() == (delay, Item(A, -3, (Retry(attempt, "no"),), 0.0))
    assert world.events == []
    world.end(RuntimeError("no"))
    assert await world.after() == (1000, Item(A, 0, (Retry(4, "no"),), 0.0))
    assert [(key, reason) for key, reason, _ in world.events] == [(A, "ReconcileGivenUp")]
    world.end(RuntimeError("no"), key=B)
    assert await world.after() == (1, Item(B, 0, (Retry(1, "no"),), 0.0))  # each key for itself
    assert world.numbers.given_up == 1


async def test_a_transient_failure_backs_off_to_a_minute() -> None:
    world = World(max_retries=1)
    delays = []
    for _ in range(9):
        world.end(TransientError("later"), priority=4)
        after = await world.after()
        assert after is not None
        assert (after[1].priority, after[1].reasons) == (4, (Retry(len(delays) + 1, "later"),))
        delays.append(after[0])
    assert delays == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert (world.events, world.numbers.panics, world.numbers.given_up) == ([], 0, 0)


@pytest.mark.parametrize(("max_retries", "delays"), [(1, [1, 1000, 1000]), (2, [1, 2, 1000]), (0, [1, 2, 4])])
async def test_past_the_limit_a_key_comes_at_the_slowest_pace(max_retries: int, delays: list[float]) -> None:
    world = World(max_retries=max_retries)
    waited = []
    for _ in delays:
        world.end(RuntimeError("no"))
        after = await world.after()
        assert after is not None
        waited.append(after[0])
    assert waited == delays
    assert len(world.events) == world.numbers.given_up == int(max_retries > 0)


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (answer(409, "Conflict"), logging.INFO),
        (answer(403, "Forbidden", "namespace x because it is being terminated", "NamespaceTerminating"), logging.DEBUG),
        (answer(403, "Forbidden"), logging.WARNING),
        (answer(422, "Invalid"), logging.WARNING),
        (TransientError("later"), logging.WARNING),
        (RuntimeError("a defect"), logging.ERROR),
    ],
)
async def test_what_passes_is_logged_quietly_and_a_defect_with_its_traceback(
    error: Exception, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    world = World()
    with caplog.at_level(min(level, logging.INFO), "konverge.controller"):
        world.end(error)
    (logged,) = caplog.records
    assert logged.levelno == level
    assert bool(logged.exc_info) is (level in (logging.ERROR, logging.DEBUG))
    assert world.numbers.panics == int(level == logging.ERROR)


async def test_a_requeue_with_another_spec_starts_from_the_base_delay() -> None:
    world = World()
    for delay in (1, 2):
        world.end(Result(requeue=True))
        after = await world.after()
        assert after is not None
        assert after[0] == delay
    assert A in world.retries.failing
    world.retries.changed(Change(ChangeType.UPDATED, A, _of(1), _of(2)))
    assert A not in world.retries.failing
    assert world.queue.num_requeues(A) == 0


async def test_a_terminal_error_does_not_come_again() -> None:
    world = World()
    world.end(RuntimeError("no"))
    await world.after()
    world.end(TerminalError("never"))
    assert await world.after() is None
    assert world.queue.num_requeues(A) == 0
    assert world.numbers.terminal_errors == 1
    world.end(TerminalError("never"))
    world.end(TerminalError("never"), key=B)
    assert [key for key, _, _ in world.events] == [A, B]


async def test_a_terminal_error_of_a_deletion_comes_at_the_slowest_pace() -> None:
    world = World(deleting=True)
    world.end(TerminalError("never"), priority=2)
    assert await world.after() == (1000, Item(A, 2, (Retry(1, "never"),), 0.0))
    assert world.numbers.terminal_errors == 0


async def test_a_blocked_key_comes_about_every_minute() -> None:
    world = World(deleting=True)
    waits = set()
    for _ in range(5):
        world.end(BlockedError("taken"), priority=2)
        after = await world.after()
        assert after is not None
        assert (after[1].priority, after[1].reasons) == (2, (Retry(1, "taken"),))
        waits.add(after[0])
    assert all(54 <= wait <= 66 for wait in waits)
    assert len(waits) == 5  # with jitter
    assert max(waits) - min(waits) > 1
    assert len(world.events) == 1
    assert world.numbers.terminal_errors == 0


async def test_a_quarantined_object_waits_for_another_version_without_a_word() -> None:
    world = World()
    world.end(RuntimeError("no"))
    await world.after()
    world.end(Quarantined("unreadable"))
    assert await world.after() is None
    assert (world.queue.num_requeues(A), world.events, world.numbers.results["error"]) == (0, [], 2)


@pytest.mark.parametrize(
    "change", [Change(ChangeType.UPDATED, A, _of(1), _of(2)), Change(ChangeType.ADDED, A, None, _of())]
)
async def test_another_spec_starts_a_new_row(change: Change) -> None:
    world = World(max_retries=1)
    for key in (A, A, B):
        world.end(RuntimeError("no"), key=key)
    world.retries.changed(change)
    assert (world.queue.num_requeues(A), world.queue.num_requeues(B)) == (0, 1)
    assert list(world.retries.failing) == [B]


async def test_another_status_does_not() -> None:
    world = World()
    world.end(RuntimeError("no"))
    world.retries.changed(Change(ChangeType.UPDATED, A, _of(1, status={"a": 1}), _of(1, status={"a": 2})))
    assert world.queue.num_requeues(A) == 1
    assert list(world.retries.failing) == [A]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_passes(error: Exception) -> None:
    assert is_transient(error) is True


@pytest.mark.parametrize("error", STAYING, ids=repr)
def test_what_stays(error: BaseException) -> None:
    assert is_transient(error) is False


def test_what_an_error_says() -> None:
    assert message(ValueError("no")) == "no"
    assert message(TimeoutError()) == "TimeoutError"
    assert message(ExceptionGroup("g", [ExceptionGroup("h", [ValueError("no")]), KeyError("x")])) == "no"
