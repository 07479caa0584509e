"""One member's part of the protocol, as arithmetic: what it may work on, what it may write, what it acknowledges.

A member works on its share: the slots that the newest assignment it has seen gives to this life of it (`Member`), while
its Lease is valid by its own clock. It writes for what is in its share, and for what it still finishes after its share
became smaller. It acknowledges an epoch only when nothing is in work that this epoch takes away: from then on it cannot
work on more, because what it has seen is never forgotten.

The proof that two members never write for one key is in docs/architecture/sharding.md.
"""

from __future__ import annotations

import math

import msgspec

from konverge.runtime.election import Timing
from konverge.runtime.sharding.assignment import Assignment, Member


class Written(msgspec.Struct, frozen=True):
    """Our Lease was written, by a request that began at `begun`."""

    member: Member
    begun: float


class Removed(msgspec.Struct, frozen=True):
    """Our Lease is gone: this life has ended."""


class Seen(msgspec.Struct, frozen=True):
    """The coordination object says this."""

    assignment: Assignment


class Began(msgspec.Struct, frozen=True):
    """Something for this slot is in work: a reconcile, or a write whose answer was lost."""

    slot: int


class Ended(msgspec.Struct, frozen=True):
    slot: int


class Passed(msgspec.Struct, frozen=True):
    """Time has passed."""


Event = Written | Removed | Seen | Began | Ended | Passed


class ShareChanged(msgspec.Struct, frozen=True):
    """What is outside of the share must end: soon, or at once when the Lease is not valid any more."""

    gained: frozenset[int]
    lost: frozenset[int]
    at_once: bool


class Acknowledge(msgspec.Struct, frozen=True):
    """The Lease is to say this epoch, the sooner the better."""

    epoch: int


Effect = ShareChanged | Acknowledge


class Membership(msgspec.Struct):
    """The state of one member. `step` is the only thing that changes it."""

    timing: Timing
    slots: int
    me: Member | None = None
    renewed_at: float = -math.inf
    """When the last successful write of our Lease began."""
    assignment: Assignment = Assignment()
    share: frozenset[int] = frozenset()
    finishing: frozenset[int] = frozenset()
    """Slots that left the share while something was in work for them."""
    working: dict[int, int] = {}
    """Slot -> how much is in work for it."""
    acknowledged: int = 0
    """The epoch that our Lease says, or will say with its next write."""

    def deadline(self) -> float:
        """When we stop unless the Lease is renewed before; long ago when we are no member."""
        return -math.inf if self.me is None else self.renewed_at + self.timing.renew_deadline

    def assigned(self) -> frozenset[int]:
        """What the assignment gives us, whether or not our Lease is valid."""
        return frozenset() if self.me is None else self.assignment.share(self.me, self.slots)

    def valid(self, now: float) -> bool:
        return now < self.deadline()

    def may_write(self, slot: int, now: float) -> bool:
        return self.valid(now) and (slot in self.share or slot in self.finishing)

    def step(self, event: Event, now: float) -> list[Effect]:
        match event:
            case Written(member, begun):
                ended = self.step(Removed(), now) if self.me not in (None, member) else []
                self.me, self.renewed_at = member, begun
                return ended + self._follow(now)
            case Removed():
                self.me = None
            case Seen(assignment):
                if assignment.epoch > self.assignment.epoch:
                    self.assignment = assignment
            case Began(slot):
                self.working[slot] = self.working.get(slot, 0) + 1
                return []
            case Ended(slot):
                self._ended(slot)
                if self.acknowledged >= self.assignment.epoch:
                    return []
        return self._follow(now)

    def _ended(self, slot: int) -> None:
        self.working[slot] -= 1
        if not self.working[slot]:
            del self.working[slot]
            self.finishing -= {slot}

    def _follow(self, now: float) -> list[Effect]:
        effects: list[Effect] = []
        valid = self.valid(now)
        allowed = self.assigned()
        share = allowed if valid else frozenset()
        if share != self.share:
            lost = self.share - share
            effects.append(ShareChanged(share - self.share, lost, at_once=not valid))
            self.finishing = (self.finishing | (lost & self.working.keys())) - share if valid else frozenset()
            self.share = share
        elif not valid and self.finishing:
            effects.append(ShareChanged(frozenset(), self.finishing, at_once=True))
            self.finishing = frozenset()
        if self.acknowledged < self.assignment.epoch and self.working.keys() <= allowed:
            self.acknowledged = self.assignment.epoch
            effects.append(Acknowledge(self.acknowledged))
        return effects
