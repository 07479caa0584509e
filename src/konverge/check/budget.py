"""How long a check may take, and what is left of it."""

from __future__ import annotations

import re

from konverge import clock

GRACE = 60.0
"""Seconds that runs under way have when the budget has ended."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)([smh]?)")


def seconds_of(text: str) -> float:
    """A duration as people write it. Raises ValueError.

    >>> seconds_of("90"), seconds_of("5m"), seconds_of("1h30m")
    (90.0, 300.0, 5400.0)
    """
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is not a duration: write 90s, 5m or 1h30m")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise ValueError(f"{text!r} leaves no time: write 90s, 5m or 1h30m")
    return seconds


def shown(seconds: float) -> str:
    """
    >>> shown(4.2), shown(300.0), shown(5400.0)
    ('4 s', '5 min', '90 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


class Budget:
    """Wall time, from now on. A part of it is kept for what comes after the search: confirming and shrinking."""

    KEPT = 0.25

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began = clock.monotonic()

    @property
    def used(self) -> float:
        return clock.monotonic() - self._began

    @property
    def left(self) -> float:
        return self.seconds - self.used

    @property
    def searching(self) -> bool:
        """There is time for another plan. What the findings so far need is kept."""
        return self.used < self.seconds * (1 - self.KEPT)

    @property
    def over(self) -> bool:
        return self.left <= 0
