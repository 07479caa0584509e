"""Ending a task of the author's: it is asked first, then cancelled, and a line says when neither helps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

SILENCE = 30.0
"""Seconds after which a line says that a cancelled task still runs."""


async def end(
    task: asyncio.Future[Any], ask: Callable[[], object], grace: float, log: logging.Logger, limit: float | None = None
) -> bool:
    """Ask a task to end, cancel it after `grace` seconds, and wait for its end; at most for `limit` seconds.

    False when it still runs: it ignores the cancellation. Its outcome is not raised.
    """
    ask()
    if grace > 0:
        await asyncio.wait([task], timeout=grace)
    silence = SILENCE if limit is None else limit
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=silence)
        if not task.done():
            name = task.get_name() if isinstance(task, asyncio.Task) else "a task"
            log.warning("%s has not ended %g s after it was cancelled: it must not catch CancelledError", name, silence)
            if limit is not None:
                return False
    if not task.cancelled():
        task.exception()
    return True
