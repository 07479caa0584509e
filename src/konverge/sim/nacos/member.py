"""One running server: how far its start has come, its raft metadata, what it knows of its peers; and how long it takes.

The timings were measured on real servers, on a machine with two busy cores.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

import msgspec

from konverge.operators.nacos.server import Leader
from konverge.sim.nacos.disk import Data, Disk
from konverge.sim.nacos.settings import Settings

ADMIN = "nacos"
"""The administrator; servers before 2.4 have one with this password."""

Span = tuple[float, float]
"""From, to: a random time between them."""


class Timings(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    boot: Span = (40.0, 60.0)
    """To the opening of the HTTP port; 75 to 150 when three start on one machine."""
    ports_open: float = 0.6
    """The fraction of it after which the ports for peers are open, and raft runs."""
    early_exit: float = 4.0
    """How long a 3.x server with embedded storage waits for the leader of its database before it gives up."""
    election: Span = (5.5, 8.0)
    """From the loss of a leader to the next one: election_timeout_ms is 5000."""
    news: Span = (0.2, 1.0)
    """From an election until another member knows the new leader."""
    routes: float = 10.0
    """How long a server's routing table may be behind its raft peers: it is refreshed every 5 to 10 seconds."""
    report: Span = (2.0, 4.0)
    """How far the entry about a peer is behind that peer's own."""
    refused: tuple[float, float] = (2.2, 2.4)
    """A peer that refuses connections: the first failed probe, and the time between those after it."""
    silent: tuple[float, float] = (8.0, 2.3)
    """The same for one that is frozen."""
    silent_before_2_2: tuple[float, float] = (6.0, 4.0)
    """Older servers report over HTTP, and call a peer that refuses DOWN at once."""
    failures_allowed: int = 3
    """nacos.core.member.fail-access-cnt."""
    user_cache: float = 15.0
    """How often users are read from the database."""
    mounts: Span = (30.0, 90.0)
    """Between two updates of a mounted ConfigMap by the kubelet: it looks at its pods every minute or so."""


QUICK = Timings(
    boot=(2.0, 3.0), election=(0.5, 0.8), news=(0.1, 0.2), report=(0.2, 0.4), early_exit=1.5, mounts=(1.0, 3.0)
)
"""For tests on real time, and for demonstrations."""


_KEPT = 16
"""Past states of its own raft groups that a server keeps, because peers see old ones."""


class Phase(Enum):
    BOOTING = "booting"
    WAITING = "waiting"
    """Everything is loaded except the embedded database, which needs a leader."""
    SERVING = "serving"
    ENDED = "ended"


class Contact(msgspec.Struct):
    """What one server knows of another."""

    since: float
    """When it began or ceased to answer."""
    answers: bool
    silent: bool = False
    """It does not answer because it hangs, not because no process listens."""
    version: str | None = None
    leaders: dict[str, Leader] | None = None
    """The last report."""
    lag: float = 0.0


@dataclass(eq=False, slots=True)
class Member:
    """A process. A restart is a new member."""

    settings: Settings
    began: float
    disk: Disk
    phase: Phase = Phase.BOOTING
    frozen: bool = False
    connected: bool = False
    """The ports for peers are open."""
    serving_since: float = 0.0
    exit_code: int | None = None
    named: dict[str, frozenset[str]] = field(default_factory=dict)
    """By group: the peers that it reports, which may be out of date."""
    routes: tuple[float, frozenset[str]] = (-inf, frozenset())
    """Its routing table: until when it lags behind the last change of the peers, and its content until then."""
    beliefs: dict[str, Leader] = field(default_factory=dict)
    """Its own raft metadata by group; never cleared."""
    history: list[tuple[float, dict[str, Leader]]] = field(default_factory=list)
    contacts: dict[str, Contact] = field(default_factory=dict)
    listed: tuple[str, ...] = ()
    """Its list of members: that of its settings, until its file has another one."""

    def __post_init__(self) -> None:
        """What a server writes when it starts on an empty disk."""
        self.listed = self.settings.members
        if self.disk.peers is None:
            self.disk.peers = set(self.settings.members)
        if self.disk.data is None:
            self.disk.data = Data(users={ADMIN: ADMIN} if self.settings.line < (2, 4) else {})

    @property
    def peers(self) -> set[str]:
        """The addresses of the peers of its raft groups."""
        assert self.disk.peers is not None
        return self.disk.peers

    @property
    def data(self) -> Data:
        """Its embedded database."""
        assert self.disk.data is not None
        return self.disk.data

    def term(self, group: str) -> int:
        return self.disk.terms.get(group, 0)

    @property
    def address(self) -> str:
        return self.settings.address

    @property
    def alive(self) -> bool:
        """It takes part in raft."""
        return self.connected and not self.frozen and self.phase is not Phase.ENDED

    @property
    def open(self) -> bool:
        """The HTTP port accepts connections; the kernel does so for a frozen process too."""
        return self.phase is Phase.SERVING

    def believe(self, group: str, leader: Leader, now: float) -> None:
        self.beliefs[group] = leader
        self.history.append((now, dict(self.beliefs)))
        del self.history[:-_KEPT]

    def name_peers(self, group: str, now: float) -> None:
        """A leader knows its peers. A new follower reports those in its routing table, and keeps reporting them."""
        until, behind = self.routes
        leads = self.beliefs[group].address == self.settings.raft_address
        self.named[group] = frozenset(self.peers) if leads or now >= until else behind

    def reported(self, before: float) -> dict[str, Leader] | None:
        """Its raft metadata as it was at that time."""
        past = [leaders for at, leaders in self.history if at <= before]
        return past[-1] if past else None
