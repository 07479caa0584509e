"""The order in which waiting keys are handed out: a pure data structure, no clock, no waiting.

Three guarantees, each with a bound that tests can check:

- **Priority**: a key of a higher priority goes first.
- **Ageing**: whenever `PATIENCE` keys of higher priorities were handed out before lower ones, the lowest waiting one
gets a
  turn. So strict priority never starves the initial list or a resync behind a busy stream of changes
  (controller-runtime#3496 is what happens without this).
- **Tenants**: within one priority, tenants (namespaces) take turns, and within a tenant keys go in the order of
  arrival. A namespace with ten thousand waiting keys delays another's key by one turn, not by ten thousand.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

PATIENCE = 8
"""How many keys of higher priority may pass before a lower one gets a turn: 1 of 9 keys, 11 %, is for the rest."""


class _Band(Generic[K]):
    """The waiting keys of one priority: tenants in rotation, each with its keys in order."""

    __slots__ = ("tenants", "turns")

    def __init__(self) -> None:
        self.tenants: dict[Hashable, OrderedDict[K, None]] = {}
        self.turns: deque[Hashable] = deque()

    def push(self, tenant: Hashable, key: K) -> None:
        keys = self.tenants.get(tenant)
        if keys is None:
            keys = self.tenants[tenant] = OrderedDict()
            self.turns.append(tenant)
        keys[key] = None

    def pop(self) -> K:
        tenant = self.turns.popleft()
        keys = self.tenants[tenant]
        key, _ = keys.popitem(last=False)
        if keys:
            self.turns.append(tenant)
        else:
            del self.tenants[tenant]
        return key

    def remove(self, tenant: Hashable, key: K) -> None:
        keys = self.tenants[tenant]
        del keys[key]
        if not keys:
            del self.tenants[tenant]
            self.turns.remove(tenant)


class FairQueue(Generic[K]):
    """Waiting keys with their priorities. Each key waits at most once.

    >>> queue = FairQueue(tenant=lambda key: key[0])
    >>> for key in [("a", 1), ("a", 2), ("b", 1)]:
    ...     _ = queue.push(key)
    >>> [queue.pop()[0] for _ in range(3)]
    [('a', 1), ('b', 1), ('a', 2)]
    """

    def __init__(self, tenant: Callable[[K], Hashable] = lambda key: None) -> None:
        self._tenant = tenant
        self._bands: dict[int, _Band[K]] = {}
        self._priorities: list[int] = []  # of the non-empty bands, highest first; seldom more than three
        self._waiting: dict[K, int] = {}
        self._passed = 0  # keys handed out while one of a lower priority was waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, key: K) -> bool:
        return key in self._waiting

    def push(self, key: K, priority: int = 0) -> bool:
        """Add a key. One that waits already can only rise in priority. True when it is new."""
        present = self._waiting.get(key)
        if present is None:
            self._insert(key, priority)
            return True
        if priority > present:
            self._take_out(key, present)
            self._insert(key, priority)
        return False

    def pop(self) -> tuple[K, int]:
        """The next key and its priority. The queue must not be empty."""
        index = self._next_band()
        priority = self._priorities[index]
        band = self._bands[priority]
        key = band.pop()
        if not band.tenants:
            del self._bands[priority], self._priorities[index]
        del self._waiting[key]
        return key, priority

    def remove(self, key: K) -> None:
        """Take out a key that waits."""
        self._take_out(key, self._waiting.pop(key))

    def _next_band(self) -> int:
        last = len(self._priorities) - 1
        if last == 0:
            self._passed = 0
            return 0
        if self._passed >= PATIENCE:
            self._passed = 0
            return last
        self._passed += 1
        return 0

    def _insert(self, key: K, priority: int) -> None:
        band = self._bands.get(priority)
        if band is None:
            band = self._bands[priority] = _Band()
            self._priorities.append(priority)
            self._priorities.sort(reverse=True)
        band.push(self._tenant(key), key)
        self._waiting[key] = priority

    def _take_out(self, key: K, priority: int) -> None:
        band = self._bands[priority]
        band.remove(self._tenant(key), key)
        if not band.tenants:
            del self._bands[priority]
            self._priorities.remove(priority)
