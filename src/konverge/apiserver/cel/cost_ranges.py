"""Ranges of sizes and costs, in 64 bits without overflow.

Upstream: SizeEstimate and CostEstimate (cel-go checker/cost.go); the numbers are those of cel-go common/cost.go.
"""

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
    scaled = float(value) * factor
    return MAX if scaled >= 2.0**64 else math.ceil(scaled)


def exactly(value: int) -> Estimate:
    return Estimate(value, value)


ZERO, ONE = exactly(0), exactly(1)
AUTHORIZER_CHECK = 350_000
"""Of authorizer…check(). Upstream: apiserver/pkg/cel/library/cost.go."""
UNKNOWN = Estimate(0, MAX)
LIST_COST, MAP_COST, STRUCT_COST = 10, 30, 40
"""Of creating one. Upstream: ListCreateBaseCost, MapCreateBaseCost, StructCreateBaseCost."""
STRING_FACTOR = 0.1
"""Per character. Upstream: StringTraversalCostFactor."""
REGEX_FACTOR = 0.25
"""Per character of a pattern. Upstream: RegexStringLengthCostFactor."""
