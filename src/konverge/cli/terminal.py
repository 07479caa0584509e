"""Colours and redrawing, only where a person looks: on a terminal, unless NO_COLOR is set or it is a dumb one."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

_CODES = {"ok": 32, "warn": 33, "fail": 31, "dim": 2, "bold": 1}


def is_terminal(stream: TextIO) -> bool:
    return stream.isatty()


def has_room(stream: TextIO) -> bool:
    """A short text can be written without waiting. Not so in a paused terminal, or a pipe that is not being read."""
    try:
        file = stream.fileno()
    except (OSError, ValueError):  # it is in memory
        return True
    poll = select.poll()
    poll.register(file, select.POLLOUT)
    # Neither with a hint that the reader has gone; where terminals cannot be asked, the answer is POLLNVAL.
    return any(happened in (select.POLLOUT, select.POLLNVAL) for _, happened in poll.poll(0))


class Paint:
    """Colours text by what it means.

    >>> Paint(colours=False)("fine", "ok")
    'fine'
    >>> Paint(colours=True)("fine", "ok")
    '\\x1b[32mfine\\x1b[0m'
    """

    def __init__(self, *, colours: bool) -> None:
        self._colours = colours

    @classmethod
    def on(cls, stream: TextIO | None = None, environment: Mapping[str, str] | None = None) -> Paint:
        """For a stream (standard output), as the environment asks for."""
        env = os.environ if environment is None else environment
        wanted = not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        return cls(colours=wanted and is_terminal(stream or sys.stdout))

    def __call__(self, text: str, meaning: str) -> str:
        return f"\x1b[{_CODES[meaning]}m{text}\x1b[0m" if self._colours else text


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as their widest cell.

    >>> table([("NAME", "PHASE"), ("hello", "Running")])
    ['NAME   PHASE', 'hello  Running']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


class Redrawn:
    """A block of lines at the end of the terminal that is drawn over itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._height = 0

    def draw(self, lines: Sequence[str], above: Sequence[str] = ()) -> None:
        """Redraw the block; what is `above` stays on the terminal for good."""
        up = f"\x1b[{self._height}F" if self._height else ""
        self._stream.write(up + "\x1b[J" + "".join(f"{line}\n" for line in (*above, *lines)))
        self._stream.flush()
        self._height = len(lines)
