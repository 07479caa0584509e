"""How far something is that takes more than two seconds, on standard error: what it prints as its result stays clean.

On a terminal it is one line that is drawn over itself and disappears at the end; elsewhere a line now and then.
"""

from __future__ import annotations

import math
import shutil
import sys
from types import TracebackType
from typing import Self, TextIO

from konverge import clock
from konverge.cli.terminal import has_room, is_terminal

QUIET_FOR = 2.0
REDRAW_EVERY = 0.1
LINE_EVERY = 10.0


class Progress:
    """
    with Progress() as progress:
        for number, seed in enumerate(seeds):
            progress.show(f"now {seed}", done=number, total=len(seeds), unit="seeds")
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._drawn = is_terminal(self._stream)
        self._began = clock.monotonic()
        self._next = self._began + (0 if self._drawn else QUIET_FOR)
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def show(self, text: str, *, done: int = 0, total: int = 0, unit: str = "", most: float = math.inf) -> None:
        """What is under way. With `total`, how much of it is done and how long the rest takes at this pace, but no
        longer than `most` seconds."""
        now = clock.monotonic()
        if now < self._next or not has_room(self._stream):
            return
        self._next = now + (REDRAW_EVERY if self._drawn else LINE_EVERY)
        self._shown = True
        if total:
            counted = f"{done} of {total} {unit}".rstrip()
            text = f"{counted}, {text}{remaining(now - self._began, done, total, most)}"
        if self._drawn:
            self._stream.write(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}")
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away, so that something else can be printed."""
        if self._shown and self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._shown = False


def remaining(elapsed: float, done: int, total: int, most: float = math.inf) -> str:
    """
    >>> remaining(30.0, 10, 30)
    ', about 1 min left'
    >>> remaining(30.0, 10, 30, 45.0)
    ', about 45 s left'
    >>> remaining(1.0, 0, 30)
    ''
    """
    if not done:
        return ""
    left = max(min(elapsed / done * (total - done), most), 0.0)
    return f", about {left / 60:.0f} min left" if left >= 60 else f", about {left:.0f} s left"
