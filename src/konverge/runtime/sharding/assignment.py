"""The assignment: which members share the work, agreed through one object that is written by compare-and-swap.

It is either *settled* (`members` have the work) or a *hand-over* (`members` had it, `successors` will). During a
hand-over a member may work on what it has both before and after; what moves is in work nowhere. The epoch grows by one
with every write, so every process sees the same sequence of assignments, and may skip some of it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge.runtime.sharding.rendezvous import owners

ANNOTATION = "sharding.konverge.dev/assignment"


class Member(msgspec.Struct, frozen=True, order=True):
    """One life of a replica: the name of its Lease, and its uid. A Lease that was deleted never comes back."""

    name: str
    uid: str

    def __str__(self) -> str:
        return self.name


class Assignment(msgspec.Struct, frozen=True):
    """What the coordination object says."""

    epoch: int = 0
    members: tuple[Member, ...] = ()
    successors: tuple[Member, ...] | None = None
    """The members after the hand-over; None when there is none."""

    @property
    def settled(self) -> bool:
        return self.successors is None

    @property
    def everyone(self) -> tuple[Member, ...]:
        return tuple(sorted({*self.members, *(self.successors or ())}))

    def share(self, member: Member, slots: int) -> frozenset[int]:
        """The slots that this member may work on."""
        share = _share(self.members, member, slots)
        return share if self.successors is None else share & _share(self.successors, member, slots)

    def begin(self, successors: tuple[Member, ...]) -> Assignment:
        """The hand-over from the present members."""
        return Assignment(self.epoch + 1, self.members, tuple(sorted(successors)))

    def settle(self) -> Assignment:
        """The end of the hand-over."""
        assert self.successors is not None
        return Assignment(self.epoch + 1, self.successors)

    def annotation(self) -> dict[str, str]:
        return {ANNOTATION: msgspec.json.encode(self).decode()}

    @classmethod
    def read(cls, annotations: dict[str, Any]) -> Assignment | None:
        """The assignment that an object carries; None when it is absent or unreadable."""
        try:
            return msgspec.json.decode(annotations.get(ANNOTATION) or "", type=Assignment)
        except msgspec.DecodeError:
            return None


def _share(members: tuple[Member, ...], member: Member, slots: int) -> frozenset[int]:
    if member not in members:
        return frozenset()
    owned_by = owners([m.name for m in members], slots)
    return frozenset(slot for slot in range(slots) if owned_by[slot] == member.name)
