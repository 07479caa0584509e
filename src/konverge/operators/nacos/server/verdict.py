"""The form of a judgement; `judge.py` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from konverge.operators.nacos.server.model import Leader

Role = Literal["leader", "follower", "standalone", ""]
"""In the group `naming_persistent_service_v2`; empty while unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One member, as all answers together show it."""

    address: str
    pod: str
    """The pod that was asked under this address; empty when none was."""
    state: str
    """Its own word where it answered, else the worst that its peers say; `UNREACHABLE` when it was asked in vain."""
    verified: bool
    """It answered, and says of itself that it is UP, with a version and (in a cluster) raft metadata."""
    version: str
    role: Role
    leads: tuple[str, ...]
    """The raft groups that it leads, sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a number of views amount to."""

    healthy: bool
    """As many members as wanted, all verified, of one mind, and every raft group has one leader among them."""
    quorum: bool
    """A majority is verified and its members see each other. Where False, raft writes fail or may fail."""
    split: bool
    """Several members hold themselves for the leader, or name different ones for the same term."""
    version: str
    """Of the verified members; the lowest while they differ (an upgrade)."""
    leader: str
    """The pod that leads (its member address where no pod is known), empty when nobody does."""
    leaders: Mapping[str, Leader]
    """By raft group: the claim with the highest term among verified members."""
    standings: tuple[Standing, ...]
    """By address."""
    surplus: tuple[str, ...]
    """Raft addresses that still count for a majority, though no verified member lists them any more: a server that left
    and has to be removed (`NacosServers.remove_peer`), or the majority of a shrunk cluster is that of the old one."""
    outside: tuple[str, ...]
    """The pods (member addresses where none is known) of verified members that the raft groups do not count: they were
    removed while they ran, and come back when they start anew."""
    problems: tuple[str, ...]
    """Readable sentences; empty exactly when healthy."""

    @property
    def verified(self) -> int:
        return sum(one.verified for one in self.standings)

    def of_pod(self, pod: str) -> Standing | None:
        return next((one for one in self.standings if one.pod == pod), None)
