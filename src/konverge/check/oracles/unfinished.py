"""What the reference was in the midst of when it was taken to be at rest, and a run has done.

Operators that replace one pod in each pass, and look at their objects every half minute, pause for longer than any rest
that was learned. What a run has beyond the reference then is no mistake of it: it had more time.
"""

from __future__ import annotations

from konverge.check.folding import folded
from konverge.check.model import Alarm, Checkpoint, Obj, Run
from konverge.check.oracles.history import owned_by
from konverge.check.under_way import ROLLING, is_busy

_DONE = ("updatedReplicas", "readyReplicas", "replicas")


class Unfinished:
    """Workloads that say of themselves that they are not done in the reference, and are as far or further in a run."""

    def __init__(self, expected: Checkpoint, actual: Checkpoint) -> None:
        self._workloads: set[str] = set()
        self._pods: set[str] = set()
        for name, ours in expected.state.items():
            theirs = actual.state.get(name)
            if theirs is not None and name.partition(" ")[0] in ROLLING and _is_ahead(name, ours, theirs):
                self._workloads.add(folded(name))
                for owner, state in ((ours, expected.state), (theirs, actual.state)):
                    self._pods.update(folded(key) for key, _ in owned_by(owner, state))

    def explains(self, key: str, field: str) -> bool:
        """Whether a difference of an object follows from it."""
        return key in self._pods or (key in self._workloads and field.startswith("status."))


def _is_ahead(name: str, ours: Obj, theirs: Obj) -> bool:
    """Whether the same is asked for, the reference is busy with it, and the run has got as far at least."""
    if not is_busy(name.partition(" ")[0], ours) or not _is_same(ours, theirs):
        return False
    return all(_count(theirs, field) >= _count(ours, field) for field in _DONE)


def _is_same(ours: Obj, theirs: Obj) -> bool:
    return all(ours["spec"].get(field) == theirs["spec"].get(field) for field in ("replicas", "template"))


def _count(obj: Obj, field: str) -> int:
    return int((obj.get("status") or {}).get(field) or 0)


def is_unfinished(run: Run, alarm: Alarm) -> bool:
    """Whether an alarm is about the pods or the status of a workload that says at that rest that it is not done.

    On real time alone: on virtual time a rest is the end.
    """
    checkpoint = next((item for item in run.checkpoints if item.step == alarm.step), None)
    if checkpoint is None or not checkpoint.under_way:
        return False
    for name, obj in checkpoint.state.items():
        if name.partition(" ")[0] in ROLLING and is_busy(name.partition(" ")[0], obj):
            if folded(name) == alarm.object and alarm.field.startswith("status."):
                return True
            if any(folded(key) == alarm.object for key, _ in owned_by(obj, checkpoint.state)):
                return True
    return False
