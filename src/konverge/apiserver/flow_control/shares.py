"""How many seats each priority level has: its share of the server's, and what others lend it.

Upstream: apf_controller.go (updateBorrowingLocked, getOrUpdate…), conc_alloc.go, fairqueuing/integrator.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

SMOOTHING = 0.977
"""How much of the demand of before counts, once it has fallen. Upstream: seatDemandSmoothingCoefficient."""
_LEAST = 0.001
"""Of a demand; no level has none. Upstream: MinTarget."""


class Share(msgspec.Struct, frozen=True):
    """The seats of a level: what it has by its shares, what it keeps, and the most that it may have."""

    nominal: int
    least: int
    most: int


def share(total: int, shares: int, sum_of_shares: int, lendable: int, borrowing: int | None) -> Share:
    """`lendable` and `borrowing` are percentages; without the latter there is no limit.

    >>> share(600, 30, 245, 33, None)
    Share(nominal=74, least=50, most=674)
    """
    nominal = math.ceil(total * shares / sum_of_shares) if shares else 0
    least = nominal - _rounded(nominal * lendable / 100)
    most = nominal + (total if borrowing is None else _rounded(nominal * borrowing / 100))
    return Share(nominal, least, most)


def _rounded(value: float) -> int:
    """As Go rounds: away from zero."""
    return math.floor(value + 0.5)


class Demand:
    """For how many seats there was a demand, since it was last asked for: over the time that it lasted."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._value = 0
        self._since = now()
        self._time = self._sum = self._squares = 0.0
        self._highest = 0
        self._smooth = 0.0

    def set(self, value: int) -> None:
        self._count()
        self._value = value
        self._highest = max(self._highest, value)

    def _count(self) -> None:
        now = self._now()
        span = now - self._since
        self._since = now
        self._time += span
        self._sum += self._value * span
        self._squares += self._value**2 * span

    def read(self) -> tuple[int, float]:
        """The highest, and a smooth one, which rises at once and falls slowly. Both begin again."""
        self._count()
        mean = self._sum / self._time if self._time > 0 else float(self._value)
        variance = self._squares / self._time - mean**2 if self._time > 0 else 0.0
        highest = self._highest
        envelope = min(float(highest), mean + math.sqrt(max(0.0, variance)))
        self._smooth = max(envelope, SMOOTHING * self._smooth + (1 - SMOOTHING) * envelope)
        self._time = self._sum = self._squares = 0.0
        self._highest = self._value
        return highest, self._smooth


def lent(shares: Sequence[Share], demands: Sequence[tuple[int, float]]) -> list[int]:
    """The seats of each level when those who need less than their share lend to those who need more."""
    total = sum(one.nominal for one in shares)
    bounds = []
    for one, (highest, smooth) in zip(shares, demands, strict=True):
        least = max(one.least, min(one.nominal, highest))
        bounds.append((least, max(least, smooth, _LEAST), max(least, one.most)))
    return [_rounded(seats) for seats in divided(total, bounds)]


def divided(total: float, wanted: Sequence[tuple[float, float, float]]) -> list[float]:
    """Divide a number in proportion to what is wanted, within bounds: each is (least, wanted, most).

    If the least of all are more than there is, each gets its least; if the most of all are less, its most.
    """

    def given(factor: float) -> list[float]:
        return [min(most, max(least, factor * want)) for least, want, most in wanted]

    low, high = 0.0, 1.0
    while sum(given(high)) < total and high < 1e12:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(given(middle)) >= total else (middle, high)
    return given(high)
