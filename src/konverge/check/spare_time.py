"""Whether the processors of this machine have room for more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from konverge import clock

_NICE, _IDLE, _IOWAIT, _STEAL = 1, 3, 4, 7
"""Columns of the first line of /proc/stat behind its name; what comes after `steal` is contained in others."""


def used_and_spare(stat: Path = Path("/proc/stat")) -> tuple[float, float] | None:
    """Ticks of all processors, the host's share included, and those that were idle or went to programs that step back
    for others (nice). None where that cannot be known."""
    try:
        ticks = [int(column) for column in stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1 : _STEAL + 2]]
    except (OSError, ValueError):
        return None
    if len(ticks) <= _STEAL:
        return None
    spare = ticks[_NICE] + ticks[_IDLE] + ticks[_IOWAIT]
    return float(sum(ticks) - spare), float(spare)


class SpareTime:
    """Asked now and then, what part of the processors had nothing to do since the last answer."""

    EVERY = 3.0
    """Seconds: what a moment shows is chance."""

    def __init__(self, read: Callable[[], tuple[float, float] | None] = used_and_spare) -> None:
        self._read = read
        self.restart()

    def restart(self) -> None:
        self._since, self._before = clock.monotonic(), self._read()

    def share(self) -> float | None:
        """From 0 to 1; None if too little time has passed, or if it cannot be known."""
        if clock.monotonic() - self._since < self.EVERY:
            return None
        before = self._before
        self.restart()
        if before is None or self._before is None:
            return None
        used, spare = (now - then for now, then in zip(self._before, before, strict=True))
        return spare / (used + spare) if used + spare > 0 else None
