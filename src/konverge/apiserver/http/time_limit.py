"""A time limit that costs nothing until somebody waits.

Nearly every request is answered without waiting for anything, and for those a timer of the loop would be a good part of
the work. So the work begins without one; only what has to wait gets it, from the moment it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


async def within(seconds: float, work: Awaitable[T]) -> T:
    """Do some work; TimeoutError when it waits for longer than so many seconds."""
    steps = work.__await__()
    try:
        waiting = next(steps)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(seconds):
        return await _Begun(steps, waiting)


class _Begun(Generic[T]):
    """The rest of a coroutine that waits for something already."""

    def __init__(self, steps: Generator[Any, Any, T], waiting: Any) -> None:
        self._steps = steps
        self._waiting = waiting

    def __await__(self) -> Generator[Any, Any, T]:
        steps, waiting = self._steps, self._waiting
        try:
            while True:
                try:
                    sent = yield waiting
                except GeneratorExit:
                    steps.close()
                    raise
                except BaseException as error:  # whatever the task throws is for the work
                    waiting = steps.throw(error)
                else:
                    waiting = steps.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result
