"""Several replicas of an operator at work at once, each on its share of the keys (docs/architecture/sharding.md)."""

from konverge.runtime.sharding.declare import NotOurs, Sharding

__all__ = ["NotOurs", "Sharding"]
