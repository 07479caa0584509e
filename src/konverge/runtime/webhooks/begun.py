"""A coroutine whose first step is done at once.

Most admission functions wait for nothing: their answer is there after the first step, without a time limit, a place
among those at work, or anything else that only waiting needs. One that does wait after all can be awaited from there.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """What became of the first step: `done` with a `result`, or something to await."""

    __slots__ = ("_coroutine", "_waits_for", "done", "result")

    result: T

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._waits_for: Any = None
        self.done = False
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as end:
            self.done, self.result = True, end.value

    def __await__(self) -> Generator[Any, Any, T]:
        waits_for = self._waits_for
        while not self.done:
            try:
                try:
                    sent = yield waits_for
                except BaseException as error:  # the task was cancelled, or ends
                    waits_for = self._coroutine.throw(error)
                else:
                    waits_for = self._coroutine.send(sent)
            except StopIteration as end:
                self.done, self.result = True, end.value
        return self.result
