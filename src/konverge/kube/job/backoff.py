"""How long a Job waits before it replaces failed pods: 10 s, doubled up to 10 min.

The count of failures in a row is kept in memory, as upstream: after a restart of the controller it starts from zero.

Upstream: pkg/controller/job/backoff_utils.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from konverge import clock
from konverge.kube.job.job_pods import finished_at
from konverge.objects.kinds.core_v1 import Pod

FIRST, LONGEST = 10.0, 600.0  # upstream: DefaultJobPodFailureBackOff, MaxJobPodFailureBackOff
_MOST_JOBS = 10_000  # a bound on memory


def remaining(failures: int, last: datetime | None) -> float:
    """Seconds until the next attempt. Upstream: getRemainingTimeForFailuresCount."""
    if not failures or last is None:
        return 0.0
    delay = min(FIRST * 2.0 ** min(failures - 1, 30), LONGEST)
    return max(0.0, delay - (clock.utc_now() - last).total_seconds())


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures since the last success, and when the last of them was."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: list[Pod], failed: list[Pod]) -> Streak:
        times = sorted(finished_at(pod) for pod in failed)
        if succeeded:
            success = max(finished_at(pod) for pod in succeeded)
            later = [time for time in times if time > success]
            return Streak(len(later), later[-1] if later else None)
        return Streak(self.failures + len(times), times[-1]) if times else self


class Streaks:
    """By the uid of the Job. Entries of Jobs that were deleted before they finished remain; the oldest are dropped."""

    def __init__(self) -> None:
        self._known: dict[str, Streak] = {}

    def get(self, uid: str) -> Streak:
        return self._known.get(uid, Streak())

    def put(self, uid: str, streak: Streak) -> None:
        self._known[uid] = streak
        while len(self._known) > _MOST_JOBS:
            del self._known[next(iter(self._known))]

    def forget(self, uid: str) -> None:
        self._known.pop(uid, None)
