"""One running server: how far its start has come, what its raft groups say, and what it knows of its peers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from math import inf

from konverge.operators.nacos.server import Leader
from konverge.sim.nacos.settings import Settings

_KEPT = 16
"""States of its own raft groups that a server remembers, so that peers can be told old ones."""


class Phase(Enum):
    BOOTING = "booting"
    WAITING = "waiting"
    """All is loaded but the embedded database, which needs a leader."""
    SERVING = "serving"
    ENDED = "ended"


@dataclass(slots=True)
class Contact:
    """How one server gets on with another."""

    since: float
    """When it began to answer, or not to."""
    answers: bool
    silent: bool = False
    """It does not answer because it hangs, not because nobody is there."""
    version: str | None = None
    leaders: dict[str, Leader] | None = None
    """What was last reported."""
    lag: float = 0.0


@dataclass(eq=False, slots=True)
class Member:
    """A process. A restart makes another one."""

    settings: Settings
    began: float
    phase: Phase = Phase.BOOTING
    frozen: bool = False
    connected: bool = False
    """The ports for peers are open."""
    serving_since: float = 0.0
    exit_code: int | None = None
    peers: set[str] = field(default_factory=set)
    """The addresses of those that its raft groups consist of; they are kept on disk."""
    named: dict[str, frozenset[str]] = field(default_factory=dict)
    """By group: whom it names as its peers, which is not always what they are."""
    routes: tuple[float, frozenset[str]] = (-inf, frozenset())
    """Its routing table: until when it is behind the last change of the peers, and who is in it until then."""
    beliefs: dict[str, Leader] = field(default_factory=dict)
    """Its own raft metadata: by group, and never cleared."""
    history: list[tuple[float, dict[str, Leader]]] = field(default_factory=list)
    contacts: dict[str, Contact] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return self.settings.address

    @property
    def alive(self) -> bool:
        """It takes part in raft."""
        return self.connected and not self.frozen and self.phase is not Phase.ENDED

    @property
    def open(self) -> bool:
        """The HTTP port takes connections; a frozen process still does, by its kernel."""
        return self.phase is Phase.SERVING

    def believe(self, group: str, leader: Leader, now: float) -> None:
        self.beliefs[group] = leader
        self.history.append((now, dict(self.beliefs)))
        del self.history[:-_KEPT]

    def name_peers(self, group: str, now: float) -> None:
        """A leader knows its peers. Who begins to follow one names those in its routing table, and goes on to."""
        until, behind = self.routes
        leads = self.beliefs[group].address == self.settings.raft_address
        self.named[group] = frozenset(self.peers) if leads or now >= until else behind

    def reported(self, before: float) -> dict[str, Leader] | None:
        """Its raft metadata as it was at some moment."""
        found = [leaders for at, leaders in self.history if at <= before]
        return found[-1] if found else None
