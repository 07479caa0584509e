"""Colours and redrawing, only where a person looks: on a terminal, unless NO_COLOR is set or it is a dumb one."""

from __future__ import annotations

import os
import select
import shutil
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import NamedTuple, Self, TextIO
from unicodedata import east_asian_width

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
        return self.numbered(text, _CODES[meaning])

    def numbered(self, text: str, code: int) -> str:
        """In a colour by its number, for what is told apart by colour alone."""
        return f"\x1b[{code}m{text}\x1b[0m" if self._colours else text


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns as wide as their widest cell.

    >>> table([("NAME", "PHASE"), ("hello", "Running")])
    ['NAME   PHASE', 'hello  Running']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def columns_of(rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lines with columns as wide as their widest cell, cut to a width; columns without any content are left out.

    >>> columns_of([("NAME", "READY", "WHY"), ("web", "", "no image")], 12)
    ['NAME  WHY', 'web   no ima']
    """
    columns = [column for column in zip(*rows, strict=True) if any(column[1:]) or len(rows) == 1]
    return [cut(line, width) for line in table([*zip(*columns, strict=True)] or [()])]


def printable(text: str) -> str:
    """A text of others, for a terminal: in one line, and without what a terminal would obey.

    >>> printable("a\\x1b[2Jb\\nc")
    'a?[2Jb c'
    """
    joined = " ".join(text.split())
    return joined if joined.isprintable() else "".join(char if char.isprintable() else "?" for char in joined)


def cut(text: str, columns: int) -> str:
    """The beginning of a text that fits into so many columns; wide characters take two."""
    text = printable_line(text)
    if text.isascii():
        return text[:columns]
    used = 0
    for index, char in enumerate(text):
        used += 2 if east_asian_width(char) in "WF" else 1
        if used > columns:
            return text[:index]
    return text


def printable_line(text: str) -> str:
    """Like `printable`, with its spaces as they are: they are what aligns columns."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def screen_size() -> tuple[int, int]:
    """Columns and lines, of which one each is left free: a full last column or line would scroll."""
    size = shutil.get_terminal_size()
    return max(size.columns - 1, 1), max(size.lines - 1, 1)


class Line(NamedTuple):
    """A line of a screen, and what it means (see `Paint`); nothing for plain text."""

    text: str
    meaning: str


class Screen:
    """The alternate screen of a terminal: drawn as a whole, and gone at the end without a trace in the scrollback."""

    def __init__(self, stream: TextIO, paint: Paint) -> None:
        self._stream = stream
        self._paint = paint

    def __enter__(self) -> Self:
        self._write("\x1b[?1049h\x1b[?25l")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write("\x1b[?25h\x1b[?1049l")

    def has_room(self) -> bool:
        return has_room(self._stream)

    def draw(self, lines: Sequence[Line]) -> None:
        """Each line over what was there, from the top; the rest is cleared."""
        width, height = screen_size()
        texts = [(cut(line.text, width), line.meaning) for line in lines[:height]]
        painted = [self._paint(text, meaning) if meaning else text for text, meaning in texts]
        self._write("\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in painted) + "\x1b[J")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
