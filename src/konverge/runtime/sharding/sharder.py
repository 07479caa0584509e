"""The sharder's part of the protocol: who is alive, and which assignment comes next.

Every member could do this work; one of them, the leader of an election, does. Nothing here hangs on that: an assignment
is written only over the one that was read, and each step follows from facts that stay true (an epoch that was
acknowledged, a Lease that is gone), so a sharder that was suspended for an hour cannot do harm with what it decided.

A member is *free* in an epoch when it cannot work on anything that this epoch takes from it: it has acknowledged the
epoch, or released its Lease, or the Lease is gone and the time is over for which the member could believe in it. A
Lease that was not renewed for its duration, measured from when we saw its last change, is deleted on the condition
that it has still not changed. Only then its member counts as dead: a sharder whose watch shows nothing any more would
else take the whole group for dead, and everybody's work away.
"""

from __future__ import annotations

import math

import msgspec

from konverge.runtime.sharding.assignment import Assignment, Member

FIRST_EPOCH = 1000
"""The first epoch of a coordination object is so much above all that members have acknowledged: if an earlier object
was deleted by hand, no acknowledgement of one of its last epochs counts for the new one."""


class MemberLease(msgspec.Struct, frozen=True):
    """What the Lease of a member says."""

    member: Member
    version: str
    holder: str
    """Empty: it was released, and this life of the member does nothing any more."""
    duration: float
    renewed: str
    epoch: int = 0
    """The newest epoch that the member has acknowledged."""
    leaving: bool = False
    """The member asks for an assignment without it."""


class Publish(msgspec.Struct, frozen=True):
    """Write an assignment, over the version of the object that was read; empty: create it."""

    assignment: Assignment
    version: str


class Delete(msgspec.Struct, frozen=True):
    """Delete the Lease of a member, if it is still at this version."""

    member: Member
    version: str


Action = Publish | Delete


class _Observed(msgspec.Struct):
    lease: MemberLease
    changed_at: float
    """On our clock, when we saw its last change."""

    def expires_at(self) -> float:
        return self.changed_at + self.lease.duration


class Sharder(msgspec.Struct):
    """One process's view of the group."""

    duration: float
    """Of a Lease that was never seen."""
    assignment: Assignment | None = None
    version: str = ""
    """Of the coordination object; empty: there is none."""
    leases: dict[str, _Observed] = {}
    gone: dict[Member, float] = {}
    """Member without a Lease -> from when on it cannot believe in it any more."""

    # -------------------------------------------------------------- seeing

    def saw_lease(self, lease: MemberLease, now: float) -> None:
        name = lease.member.name
        known = self.leases.get(name)
        if known is not None and known.lease.member != lease.member:
            self.lost_lease(name)
            known = None
        if known is None or known.lease != lease:
            self.leases[name] = _Observed(lease, now)

    def lost_lease(self, name: str, missed: float | None = None) -> None:
        """There is no Lease of this name any more. `missed`: this is the time, and there may have been renewals that we
        have not seen (a watch shows them all, a list does not)."""
        known = self.leases.pop(name, None)
        if known is not None:
            expires_at = known.expires_at() if missed is None else missed + known.lease.duration
            self.gone[known.lease.member] = expires_at if known.lease.holder else -math.inf

    def lost_member(self, member: Member, missed: float | None = None) -> None:
        """There is no Lease of this life of a member any more."""
        known = self.leases.get(member.name)
        if known is not None and known.lease.member == member:
            self.lost_lease(member.name, missed)

    def saw_assignment(self, assignment: Assignment | None, version: str) -> None:
        """What the coordination object says; None when it cannot be read, or is not there."""
        if not version or int(version) >= int(self.version or 0):
            self.assignment, self.version = assignment, version

    # -------------------------------------------------------------- deciding

    def live(self, now: float) -> tuple[Member, ...]:
        """The members that were seen alive of late, and want work."""
        return tuple(member for member in self._willing() if now < self.leases[member.name].expires_at())

    def _willing(self) -> tuple[Member, ...]:
        """The members that have a Lease and want work."""
        leases = [observed.lease for observed in self.leases.values()]
        return tuple(sorted(lease.member for lease in leases if lease.holder and not lease.leaving))

    def waits_for(self, now: float) -> list[Member]:
        """The members that hold up the hand-over."""
        assignment = self.assignment
        if assignment is None or assignment.settled:
            return []
        # Before the first members, or after the object was lost, nothing says who has work: everybody is asked.
        asked = assignment.members or tuple(o.lease.member for o in self.leases.values())
        return [member for member in asked if not self._free(member, assignment.epoch, now)]

    def plan(self, now: float) -> list[Action]:
        """What is to be done now."""
        actions: list[Action] = [
            Delete(o.lease.member, o.lease.version)
            for o in self.leases.values()
            if (now >= o.expires_at() if o.lease.holder else self._is_rest(o.lease.member))
        ]
        successor = self._successor(now)
        if successor is not None:
            actions.append(Publish(successor, self.version))
        return actions

    def due(self, now: float) -> float:
        """When to look again although nothing has changed."""
        times = [o.expires_at() for o in self.leases.values() if o.lease.holder]
        times += self.gone.values()
        return min((time for time in times if time > now), default=math.inf)

    def _successor(self, now: float) -> Assignment | None:
        present, live = self.assignment, self._willing()
        newest = max((o.lease.epoch for o in self.leases.values()), default=0)
        if present is None:
            return Assignment(newest + FIRST_EPOCH, (), live) if live else None
        if newest > present.epoch:  # the object was lost and made again by one who did not know how far it was
            return Assignment(newest + FIRST_EPOCH, (), live)
        if not present.settled:
            return None if self.waits_for(now) else present.settle()
        self._forget_gone(present)
        return present.begin(live) if live != present.members else None

    def _free(self, member: Member, epoch: int, now: float) -> bool:
        known = self.leases.get(member.name)
        if known is not None and known.lease.member == member:
            return not known.lease.holder or known.lease.epoch >= epoch
        return now >= self.gone.setdefault(member, now + self.duration)

    def _is_rest(self, member: Member) -> bool:
        """Whether a released Lease has nothing to say any more."""
        return self.assignment is not None and member not in self.assignment.everyone

    def _forget_gone(self, present: Assignment) -> None:
        for member in [member for member in self.gone if member not in present.members]:
            del self.gone[member]
