"""How long things take in a simulated Nacos: measured on real servers, on a machine with two busy cores."""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[float, float]
"""From, to: a time is drawn from between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Seconds."""

    boot: Span = (40.0, 60.0)
    """To the opening of the HTTP port; 75 to 150 when three start on one machine."""
    ports_open: float = 0.6
    """The part of it after which the ports for peers are open, and raft is at work."""
    early_exit: float = 4.0
    """How long a 3.x server with embedded storage waits for the leader of its database before it gives up."""
    election: Span = (5.5, 8.0)
    """From the loss of a leader to the next one: election_timeout_ms is 5000."""
    news: Span = (0.2, 1.0)
    """From an election to the moment when another member has heard of the new leader."""
    routes: float = 10.0
    """How long a server's routing table may be behind its raft peers: it is refreshed every 5 to 10 seconds."""
    report: Span = (2.0, 4.0)
    """How far the entry about a peer is behind what that peer knows."""
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


QUICK = Timings(boot=(2.0, 3.0), election=(0.5, 0.8), news=(0.1, 0.2), report=(0.2, 0.4), early_exit=1.5)
"""For tests on real time, and whoever does not want to wait."""
