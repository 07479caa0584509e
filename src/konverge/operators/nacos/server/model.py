"""What Nacos servers say, in one form for every version: members as one server lists them, and the server's state.

A `Member` is one entry of one answer, so it is hearsay unless the server that was asked speaks of itself. `View` keeps
together who was asked and what came back; `konverge.operators.nacos.server.judge` makes a verdict of several views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

PORT = 8848
CONSOLE_PORT = 8080
"""Where the console of 3.x listens; 2.x serves it on the main port."""
RAFT_OFFSET = -1000
"""From the main port to the port of the raft groups."""
UP = "UP"
SUSPICIOUS = "SUSPICIOUS"
DOWN = "DOWN"
"""The other states are STARTING and ISOLATION."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The header by which servers know one another; it opens the admin API on the main port."""

    key: str
    value: str = field(repr=False)


class Leader(NamedTuple):
    """Who leads a raft group, by its raft address (`host:7848`), and since which term. An empty address: nobody."""

    address: str
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry of a list of members."""

    host: str
    """An address, or the pod's DNS name where servers go by host names; in lower case, without a final dot."""
    port: int = PORT
    state: str = UP
    version: str | None = None
    """None until the member has reported once: then `UP` is only the first guess."""
    leaders: Mapping[str, Leader] | None = None
    """By raft group, each with a leader of its own; None where no raft metadata is known."""
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """By raft group: the raft addresses that it consists of. Whoever leaves stays there until it is removed."""
    raft_port: int | None = None
    failures: int = 0

    @property
    def address(self) -> str:
        return join(self.host, self.port)

    @property
    def raft_address(self) -> str:
        return join(self.host, self.raft_port or self.port + RAFT_OFFSET)

    @property
    def peers(self) -> frozenset[str]:
        """Of all of its groups together."""
        return frozenset().union(*self.groups.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What came of asking one pod."""

    asked: str
    """The pod's name."""
    address: str = ""
    """The pod's IP, by which its own entry is found when servers do not go by host names."""
    port: int = PORT
    members: tuple[Member, ...] = ()
    error: str = ""
    """Why there are no members: a NacosError's text, or that the pod is not ready."""
    forbidden: bool = False
    """The server is there, but does not know our identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerState:
    """What a server says of itself to everybody."""

    version: str = ""
    mode: str = ""
    """`standalone` or `cluster`."""
    auth_enabled: bool = False
    needs_admin: bool = False
    """There is no administrator yet (2.4 and later): see `NacosServers.bootstrap_admin`."""
    platform: str = ""
    """`mysql`, `postgresql`, or empty with embedded storage."""


def join(host: str, port: int) -> str:
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
