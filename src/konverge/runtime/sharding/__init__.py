"""Several replicas of an operator at work at once, each on its share of the keys (docs/architecture/sharding.md)."""

from konverge.runtime.sharding.declare import Sharding

__all__ = ["Sharding"]
