"""What a search still has to run, the most telling first."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from konverge.check.model import Plan, Task


class Waiting:
    """Plans, and tasks that are looked at again.

    >>> waiting = Waiting([Plan("crash")])
    >>> waiting.put([Plan("gap")])
    >>> waiting.next().pattern, waiting.left_out()
    ('gap', {'crash': 1})
    """

    def __init__(self, plans: Iterable[Plan], no_plans: Callable[[], bool] = lambda: False) -> None:
        """`no_plans` says whether plans have to wait just now."""
        self._items: deque[Plan | Task] = deque(plans)
        self._no_plans = no_plans

    def __len__(self) -> int:
        return len(self._items)

    def put(self, items: Iterable[Plan | Task], *, behind: int = 0) -> None:
        """What comes before everything else, in this order; or after so many others."""
        for item in reversed(list(items)):
            self._items.insert(behind, item)

    def next(self) -> Plan | Task | None:
        """None if there is nothing that may be run now."""
        if not self._no_plans():
            return self._items.popleft() if self._items else None
        task = next((item for item in self._items if isinstance(item, Task)), None)
        if task is not None:
            self._items.remove(task)
        return task

    def left_out(self) -> dict[str, int]:
        """How many plans, by their pattern."""
        return dict(Counter(item.pattern for item in self._items if isinstance(item, Plan)))
