"""A block of code beside a task that it needs: when the task fails, the block ends with the task's error.

Without this, the death of a manager is silent: its caller waits for a signal, or for a state that can never come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

_log = logging.getLogger("konverge.manager")


@asynccontextmanager
async def alongside(task: asyncio.Task[None], finish: Callable[[], object]) -> AsyncIterator[None]:
    """Run the block beside `task`; after it, call `finish` and wait for the task to end.

    When the task fails first, that is logged at once, the block is cancelled, and the task's error is raised.

        async with alongside(asyncio.create_task(manager.serve(stop)), stop.set):
            await signal_received.wait()
    """
    body = asyncio.current_task()
    assert body is not None
    before = body.cancelling()
    cause: BaseException | None = None
    cancelled = False

    def interrupt(_: object) -> None:
        nonlocal cause, cancelled
        cause = _failure(task)
        if cause is not None:
            _log.error("%s has ended: %s", task.get_name(), str(cause) or type(cause).__name__)
            cancelled = body.cancel(f"{task.get_name()} has ended")

    task.add_done_callback(interrupt)
    try:
        yield
    except BaseException as error:
        if not cancelled:
            raise
        ours = body.uncancel() <= before
        if not (ours and isinstance(error, asyncio.CancelledError)):  # it is cancelled for another reason as well
            error.add_note(f"before that, {task.get_name()} had ended: {cause}")
            raise
    else:
        if cancelled:
            body.uncancel()  # the block went on in spite of it
    finally:
        task.remove_done_callback(interrupt)
        if cause is None:
            finish()
            await task
    if cause is not None:
        raise cause from cause.__cause__  # and not from the cancellation


def _failure(task: asyncio.Task[None]) -> BaseException | None:
    return RuntimeError(f"{task.get_name()} was cancelled") if task.cancelled() else task.exception()


async def ungrouped(work: Awaitable[None]) -> None:
    """Await some work; where that raises a group, raise the first error alone: the group has nothing to add."""
    failure: BaseException | None = None
    try:
        await work
    except BaseExceptionGroup as group:
        failure = first_error(group)
    if failure is not None:
        raise failure  # outside of the handler, or the group would be its context


def first_error(error: BaseException) -> BaseException:
    """Of a group, the error that went wrong first: a task group cancels the other tasks because of it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
