"""What a child process wrote to its standard output and error: the last lines, and all of the first panic."""

from __future__ import annotations

import re
from collections import deque

KEPT = 200
LONGEST = 1000
"""Characters of a line."""
TRACE = 40
"""Lines of a panic that are kept whatever comes after it."""
_SAID = 3
"""Lines that say why a process ended, where none of them is a panic."""

PANIC = re.compile(
    r"^panic: |^fatal error: |^goroutine \d+ .*:$|Observed a panic|^Traceback \(most recent call last\):"
    r"|^thread '.*' panicked at|^Exception in thread|^Unhandled exception|UnhandledPromiseRejection|^SIGSEGV"
)
"""The first line of a panic in Go, Python, Rust, Java, .NET, JavaScript; controller-runtime logs those it survives."""


class ChildLog:
    """Bounded, whatever the program writes."""

    def __init__(self) -> None:
        self._last: deque[str] = deque(maxlen=KEPT)
        self._panic: list[str] = []
        self._rest = {1: b"", 2: b""}

    def receive(self, descriptor: int, data: bytes) -> None:
        *lines, rest = (self._rest[descriptor] + data).split(b"\n")
        self._rest[descriptor] = rest[: 4 * LONGEST]
        for line in lines:
            self._add(line)

    def finish(self) -> None:
        """Its output is complete."""
        for descriptor, rest in self._rest.items():
            if rest:
                self._add(rest)
                self._rest[descriptor] = b""

    def _add(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()[:LONGEST]
        if not text:
            return
        goes_on = len(self._panic) < TRACE if self._panic else PANIC.search(text)
        if goes_on:
            self._panic.append(text)
        self._last.append(text)

    def lines(self) -> list[str]:
        """The last lines, after the panic if that is no longer among them."""
        last = list(self._last)
        return last if not self._panic or self._panic[0] in self._last else [*self._panic, "…", *last]

    def reason(self) -> str:
        """Why it ended, in a line."""
        if self._panic:
            messages = [line for line in self._panic if not line.startswith(("\t", "goroutine ", "  "))]
            is_python = self._panic[0].startswith("Traceback")
            return messages[-1] if is_python and len(messages) > 1 else self._panic[0]
        return " / ".join(map(_plain, list(self._last)[-_SAID:])) or "it said nothing"


def _plain(line: str) -> str:
    """The message and the error of a line of JSON, as loggers of Go write it."""
    message, error = (re.search(rf'"{name}":"((?:[^"\\]|\\.)*)"', line) for name in ("msg", "error"))
    said = [match[1] for match in (message, error) if match]
    return ": ".join(said) if line.startswith("{") and said else line
