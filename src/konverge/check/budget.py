"""How long a check may take, and what is left of it."""

from __future__ import annotations

import re

from konverge import clock

GRACE = 60.0
"""Seconds that what is repeated has when the budget has ended."""

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
    UNDER_WAY, LEAST_UNDER_WAY = 0.1, 30.0
    """The part of the whole, and the seconds at least, that runs under way have when the search ends."""

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
    def left_to_search(self) -> float:
        """What the findings need in the end is kept."""
        return self.seconds * (1 - self.KEPT) - self.used

    @property
    def left_to_runs(self) -> float:
        """What runs under way still have. It is taken from what is kept: else long ones would leave nothing of that."""
        return self.left_to_search + max(self.seconds * self.UNDER_WAY, self.LEAST_UNDER_WAY)

    @property
    def searching(self) -> bool:
        """There is time for another plan."""
        return self.left_to_search > 0

    @property
    def over(self) -> bool:
        return self.left <= 0
