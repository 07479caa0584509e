"""Leader election as arithmetic: who holds the Lease, until when, and what may be written next.

The rules are client-go's (tools/leaderelection/leaderelection.go), so that electors of both kinds share one Lease
safely:

- *Others* may take the Lease when its record has not changed for the record's own duration, measured on **their** clock
  from the moment **they** saw it. No clock is compared with another machine's.
- *The leader* may act until `renew_deadline` after the **start** of its last successful write. Since that is shorter
  than the lease duration, and others cannot have seen the write before it started, there is never a moment with two
  leaders, however long an answer took and whether or not the leader noticed that it failed.

Times are seconds of `clock.elapsed`; only the texts in the Lease are wall time, for people to read.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The defaults of upstream (component-base/config: RecommendedDefaultLeaderElectionConfiguration)."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_duration > self.renew_deadline > self.retry_period * 1.2 > 0:
            raise ValueError(
                "leader election needs lease_duration > renew_deadline > 1.2 × retry_period > 0, got "
                f"{self.lease_duration:g}, {self.renew_deadline:g}, {self.retry_period:g}"
            )


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The spec of a Lease, as electors use it."""

    holder: str = ""
    duration: int = 0
    acquired: str = ""
    renewed: str = ""
    transitions: int = 0

    @classmethod
    def read(cls, spec: dict[str, Any]) -> LeaseRecord:
        return cls(
            holder=spec.get("holderIdentity") or "",
            duration=spec.get("leaseDurationSeconds") or 0,
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
        )

    def spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }


class Election(msgspec.Struct):
    """One candidate's view of one Lease."""

    identity: str
    timing: Timing
    observed: LeaseRecord | None = None
    observed_at: float = 0.0
    """When the record last changed, as far as we have seen."""
    renewed_at: float | None = None
    """When our last successful write started; None when we do not lead."""

    def observe(self, record: LeaseRecord, now: float) -> None:
        """Take in what the Lease says. Its time starts again only when the record differs from the last one."""
        if record != self.observed:
            self.observed, self.observed_at = record, now
        if record.holder != self.identity:
            self.renewed_at = None

    def may_take(self, now: float) -> bool:
        """Whether we may write ourselves as the holder. Upstream: isLeaseValid, tryAcquireOrRenew."""
        return now >= self.expires_at()

    def expires_at(self) -> float:
        """When the Lease is free unless it is renewed before; long ago when it is free, or ours."""
        record = self.observed
        if record is None or not record.holder or record.holder == self.identity:
            return -math.inf
        return self.observed_at + record.duration

    def next_record(self, wall: str) -> LeaseRecord:
        """What to write to take or to keep the Lease."""
        record = self.observed or LeaseRecord()
        keeps = record.holder == self.identity
        return LeaseRecord(
            holder=self.identity,
            duration=math.ceil(self.timing.lease_duration),  # rounded down it could be shorter than we act
            acquired=record.acquired if keeps and record.acquired else wall,
            renewed=wall,
            transitions=record.transitions if keeps or self.observed is None else record.transitions + 1,
        )

    def written(self, record: LeaseRecord, begun: float, now: float) -> None:
        """Our write, which started at `begun`, has succeeded."""
        self.observed, self.observed_at = record, now
        self.renewed_at = begun

    def released_record(self, wall: str) -> LeaseRecord | None:
        """What to write to release the Lease at once, or None when we do not hold it. Upstream: tryRelease."""
        record = self.observed
        if record is None or record.holder != self.identity:
            return None
        return LeaseRecord(duration=1, acquired=wall, renewed=wall, transitions=record.transitions)

    def released(self) -> None:
        self.observed = None
        self.renewed_at = None

    def leads(self, now: float) -> bool:
        """Whether we may act at this moment."""
        return now < self.deadline()

    def deadline(self) -> float:
        """When leadership ends unless it is renewed before; long ago when we do not lead."""
        return -math.inf if self.renewed_at is None else self.renewed_at + self.timing.renew_deadline
