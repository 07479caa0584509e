"""Ranges of sizes and costs: from at least to at most, in 64 bits without overflow."""

from __future__ import annotations

import math
from typing import NamedTuple

MAX = 2**64 - 1


def _cut(value: int) -> int:
    return min(value, MAX)


class Estimate(NamedTuple):
    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        return Estimate(_cut(self.low + other.low), _cut(self.high + other.high))

    def times(self, other: Estimate) -> Estimate:
        return Estimate(_cut(self.low * other.low), _cut(self.high * other.high))

    def scaled(self, factor: float) -> Estimate:
        return Estimate(_scale(self.low, factor), _scale(self.high, factor))

    def union(self, other: Estimate) -> Estimate:
        return Estimate(min(self.low, other.low), max(self.high, other.high))


def _scale(value: int, factor: float) -> int:
    found = float(value) * factor
    return MAX if found >= 2.0**64 else math.ceil(found)


def exactly(value: int) -> Estimate:
    return Estimate(value, value)


ZERO, ONE = exactly(0), exactly(1)
UNKNOWN = Estimate(0, MAX)
STRING_FACTOR = 0.1
REGEX_FACTOR = 0.25
