"""A run that is looked at again waits beyond its last rest, and for longer while something is under way."""

from __future__ import annotations

import pytest

from konverge.check.gate.recorder import Recorder
from konverge.check.run import PASSES, VirtualRest
from konverge.sim import Cluster
from tests.check.gate.test_errors import STEPS, small
from tests.check.small import run


class Replacing(VirtualRest):
    """As on real time: objects say that something is under way, and so many rests end with another step of it."""

    def __init__(self, passes: int, *, says: bool = True) -> None:
        super().__init__()
        self._left, self._says = passes, says

    async def wait(self, cluster: Cluster, recorder: Recorder) -> None:
        await super().wait(cluster, recorder)
        self.under_way = self._says
        if recorder.step == len(STEPS) - 1 and self._left:
            self._left -= 1
            metadata = {"name": f"pass-{self._left}", "namespace": "default"}
            await cluster.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


@pytest.mark.spec("K-98")
@pytest.mark.parametrize(
    ("rest", "times"),
    [(Replacing(0), 1), (Replacing(2), 2), (Replacing(3), 3), (Replacing(99), PASSES), (Replacing(99, says=False), 1)],
    ids=["nothing happens", "one more", "two more", "without end", "nothing says so"],
)
def test_patience_goes_on_while_something_is_under_way(rest: Replacing, times: int) -> None:
    plain, patient = (run(small, STEPS, patience=0.0), run(small, STEPS, patience=5000.0, rest=rest))
    passed = patient.checkpoints[1].time - plain.checkpoints[1].time
    assert passed // 5000.0 == times
