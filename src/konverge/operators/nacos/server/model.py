"""Nacos servers as the operator sees them, in one form for every version.

A `Member` is one entry of one answer: it is hearsay unless the server that was asked speaks of itself. A `View` holds
together which pod was asked and what it answered; `judge` makes a `Verdict` from several views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

PORT = 8848
RAFT_OFFSET = -1000
"""From the main port to the port of the raft groups, as Nacos computes it."""
UP = "UP"
SUSPICIOUS = "SUSPICIOUS"
DOWN = "DOWN"
"""The other states are STARTING and ISOLATION."""

Reason = Literal["Unreachable", "Timeout", "Forbidden", "BadAnswer", "ServerError", "Gone"]
"""CamelCase, so that it can stand in a condition. `Gone`: the server has none of the paths that we know."""
Role = Literal["leader", "follower", "standalone", ""]
"""In the group `naming_persistent_service_v2`; empty while unknown."""


class NacosError(Exception):
    """A server gave no usable answer. The message says what to do, and never holds a password or an identity."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


# --- what servers say ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identity:
    """The header by which servers recognise each other; it opens the admin API on the main port."""

    key: str
    value: str = field(repr=False)


class Leader(NamedTuple):
    """The leader of a raft group, by its raft address (`host:7848`), and its term. An empty address: no leader."""

    address: str
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of a list of members."""

    host: str
    """An address, or the pod's DNS name where servers use host names; in lower case, without a final dot."""
    port: int = PORT
    state: str = UP
    version: str | None = None
    """None until the member has reported once: until then `UP` is only the first guess."""
    leaders: Mapping[str, Leader] | None = None
    """By raft group, each with a leader of its own; None where no raft metadata is known."""
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By raft group: the raft addresses of its peers. A server that leaves stays listed until it is removed."""
    raft_port: int | None = None
    address: str = field(init=False, repr=False, compare=False)
    raft_address: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Once: a verdict asks for them some hundred times.
        object.__setattr__(self, "address", join(self.host, self.port))
        object.__setattr__(self, "raft_address", join(self.host, self.raft_port or self.port + RAFT_OFFSET))

    @property
    def peers(self) -> frozenset[str]:
        """Of all of its groups together."""
        return frozenset().union(*self.groups.values())


class View(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of one pod."""

    pod: str
    """The name of the pod that was asked."""
    address: str = ""
    """The pod's IP, by which its own entry is found when servers do not use host names."""
    port: int = PORT
    members: tuple[Member, ...] = ()
    error: str = ""
    """Why there are no members: the text of a NacosError, or that the pod is not ready."""
    forbidden: bool = False
    """The server runs, but does not accept our identity."""


# --- what the answers amount to -----------------------------------------------------------------------------------


class MemberStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One member, as all answers together show it."""

    address: str
    pod: str
    """The pod that was asked under this address; empty when none was."""
    state: str
    """Its own answer, or the worst state that its peers report; `UNREACHABLE` when its pod gave no answer."""
    verified: bool
    """It answered, and reports itself UP, with a version and (in a cluster) raft metadata."""
    version: str
    role: Role
    leads: tuple[str, ...]
    """The raft groups that it leads, sorted."""


class RaftGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One raft group, as all answers together show it."""

    name: str
    leader: str
    """The pod that leads it; empty when no verified member does, or when there is no majority that could follow it."""
    term: int
    """The highest one among verified members."""
    peers: int
    """How many servers it counts; 0 where the servers do not say."""
    problem: str
    """Why writes to it fail, or who names another leader; empty when all members that answered agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a number of views amount to."""

    healthy: bool
    """The desired number of members, all verified and in agreement, and every raft group has one leader among them."""
    quorum: bool
    """A majority is verified and its members see each other. Where False, raft writes fail or may fail."""
    split: bool
    """Several members claim to be the leader, or name different leaders for the same term."""
    version: str
    """Of the verified members; the lowest while they differ (an upgrade)."""
    leader: str
    """The pod that leads (its member address where no pod is known), empty when there is no leader."""
    leaders: Mapping[str, Leader]
    """By raft group: the claim with the highest term among verified members."""
    groups: tuple[RaftGroup, ...]
    """The same groups, by name."""
    members: tuple[MemberStatus, ...]
    """By address."""
    surplus: tuple[str, ...]
    """Raft addresses that still count for a majority, though no verified member lists them any more: a server that left
    and has to be removed (`remove_peer`), or the majority of a shrunk cluster is that of the old one."""
    outside: tuple[str, ...]
    """The pods (member addresses where none is known) of verified members that the raft groups do not count: they were
    removed while they ran, and come back when they restart."""
    problems: tuple[str, ...]
    """Readable sentences; empty exactly when healthy."""

    @property
    def verified(self) -> int:
        return sum(member.verified for member in self.members)

    def of_pod(self, pod: str) -> MemberStatus | None:
        return next((member for member in self.members if member.pod == pod), None)


def join(host: str, port: int | str) -> str:
    """
    >>> join("::1", 8848)
    '[::1]:8848'
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def clean_host(host: str) -> str:
    """As hosts are compared: Kubernetes' names may come with a final dot, IPv6 addresses with brackets.

    >>> clean_host("Nacos-0.nacos-headless.default.svc.cluster.local.")
    'nacos-0.nacos-headless.default.svc.cluster.local'
    """
    return host.strip().strip("[]").rstrip(".").lower()
