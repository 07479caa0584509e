"""What a test has around it: its loop, its cluster, its operators. The report of a failed test is made from it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from konverge.runtime.story.story import Story
from konverge.sim import Cluster
from konverge.testing.loops import TestLoop
from konverge.testing.real import RealCluster


@dataclass
class Scene:
    """One test."""

    item: pytest.Item
    seed: int
    loop: TestLoop
    cluster: Cluster | RealCluster | None = None
    stories: list[Story] = field(default_factory=list)
    """Of the managers that ran in it."""

    def now(self) -> float:
        """The cluster's time, in seconds since the epoch."""
        return self.loop.wall_time()


SCENE = pytest.StashKey[Scene]()
