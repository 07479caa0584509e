"""How often a problem that lasts is logged: at once, and then ever more seldom.

A reader learns of it at the moment it begins and is reminded while it lasts, and a log is not filled by it.
"""

from __future__ import annotations

from konverge import clock

FIRST_PAUSE = 10.0
LAST_PAUSE = 600.0


class Repeated:
    """One problem's lines.

    >>> reports = Repeated()
    >>> reports.due(), reports.due()
    (True, False)
    """

    __slots__ = ("_next", "_pause", "reported")

    def __init__(self) -> None:
        self._next = float("-inf")
        self._pause = FIRST_PAUSE
        self.reported = False
        """Whether the reader knows of it: then its end is worth a line, too."""

    def due(self) -> bool:
        """Whether to log it now."""
        now = clock.monotonic()
        if now < self._next:
            return False
        self._next = now + self._pause
        self._pause = min(2 * self._pause, LAST_PAUSE)
        self.reported = True
        return True
