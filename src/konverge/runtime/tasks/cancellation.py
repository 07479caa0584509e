"""CancelledError of the author's code: the end of our task when it was cancelled, and a failure like any other if not.

Whoever awaits a task or a future that something else cancels gets a CancelledError of their own. It is no Exception, so
it would end a timer or a task for ever, without a line in the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class AwaitedCancelled(Exception):
    """Something that the author's code awaited was cancelled."""


@contextmanager
def authors_code() -> Iterator[None]:
    """Around calls of the author's code: a CancelledError passes only while the present task is being cancelled."""
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise AwaitedCancelled("it raised CancelledError: something that it awaited was cancelled") from error
