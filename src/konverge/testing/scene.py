"""What a test has around it: its loop, its cluster, its operators. The report of a failed test is made from it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import pytest

from konverge.runtime.reconciled import Reconciled
from konverge.sim import Cluster
from konverge.testing.loops import TestLoop
from konverge.testing.real import RealCluster

REMEMBERED = 200
"""Reconciles of a test's operators, the latest ones."""


@dataclass
class Scene:
    """One test."""

    item: pytest.Item
    seed: int
    loop: TestLoop
    cluster: Cluster | RealCluster | None = None
    reconciles: deque[Reconciled] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def now(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self.loop.wall_time()


SCENE = pytest.StashKey[Scene]()
