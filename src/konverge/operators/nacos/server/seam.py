"""What the operator asks of Nacos servers. `HttpNacosServers` does it over HTTP, to real and to simulated ones."""

from __future__ import annotations

from typing import Protocol

from konverge.operators.nacos.server.model import PORT, Identity, Member, ServerState


class NacosServers(Protocol):
    """Each call is about one server. All raise NacosError, and none takes longer than its timeout (seconds)."""

    async def nodes(
        self, address: str, *, port: int = PORT, identity: Identity | None = None, timeout: float = 5.0
    ) -> tuple[Member, ...]:
        """The members as this server lists them."""

    async def state(self, address: str, *, port: int = PORT, timeout: float = 5.0) -> ServerState:
        """What the server says of itself; needs no identity."""

    async def ready(self, address: str, *, port: int = PORT, timeout: float = 5.0) -> bool:
        """Whether the server calls itself ready."""

    async def login(
        self, address: str, *, port: int = PORT, username: str, password: str, timeout: float = 5.0
    ) -> bool:
        """Whether this password is accepted. Servers reread their users every 15 s: ask again after a change."""

    async def bootstrap_admin(self, address: str, *, port: int = PORT, password: str, timeout: float = 5.0) -> bool:
        """Make the first administrator, `nacos` (2.4 and later). False: there is one already."""

    async def remove_peer(
        self, address: str, *, port: int = PORT, peer: str, identity: Identity | None = None, timeout: float = 5.0
    ) -> None:
        """Take a server that left out of all raft groups: by its raft address, as in `Verdict.surplus`.

        Needed after a cluster shrank: its groups keep counting the server, whatever the servers' lists say (seen on a
        real 2.1.1). It takes a leader in every group: ask again when it fails, which does no harm.
        """

    async def aclose(self) -> None:
        """Close what is open."""
