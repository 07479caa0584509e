"""Servers whose answers a test decides, and verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.operators.nacos.server import (
    LEADING_GROUP,
    PORT,
    HttpNacosServers,
    Identity,
    Leader,
    Member,
    NacosError,
    Verdict,
)
from konverge.operators.nacos.server.model import MemberStatus
from tests.operators.nacos.steps.bench import NAME


def host(number: int) -> str:
    return f"{NAME}-{number}.{NAME}-headless.default.svc.cluster.local"


class Servers(HttpNacosServers):
    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, tuple[Member, ...] | NacosError] = {}
        """By address."""
        self.asked: list[tuple[str, int, Identity | None, float]] = []
        self.removed: list[tuple[str, str]] = []
        """Who was asked to remove whom."""
        self.unremovable: NacosError | None = None
        self.identities: list[Identity | None] = []
        """Of the removals."""
        self.passwords: list[tuple[str, str, str]] = []
        """Question, address and password."""
        self.has_admin = False
        self.accepted = ""
        """The password of the administrator."""
        self.admin_error: NacosError | None = None

    async def nodes(
        self, address: str, *, port: int = PORT, identity: Identity | None = None, timeout: float = 0.0
    ) -> tuple[Member, ...]:
        self.asked.append((address, port, identity, timeout))
        answer = self.members.get(address, NacosError("Unreachable", "there is none"))
        if isinstance(answer, NacosError):
            raise answer
        return answer

    async def remove_peer(
        self, address: str, *, port: int = PORT, peer: str, identity: Identity | None = None, timeout: float = 0.0
    ) -> None:
        assert timeout == 5.0
        if self.unremovable is not None:
            raise self.unremovable
        self.removed.append((address, peer))
        self.identities.append(identity)

    async def bootstrap_admin(self, address: str, *, port: int = PORT, password: str, timeout: float = 0.0) -> bool:
        assert timeout == 5.0
        if self.admin_error is not None:
            raise self.admin_error
        self.passwords.append(("create", address, password))
        return not self.has_admin

    async def login(
        self, address: str, *, port: int = PORT, username: str, password: str, timeout: float = 0.0
    ) -> bool:
        assert timeout == 5.0
        self.passwords.append((username, address, password))
        return password == self.accepted


def list_of(count: int, **changes: Any) -> tuple[Member, ...]:
    """What each of so many servers answers while all is well; nacos-0 leads."""
    peers = frozenset(f"{host(number)}:7848" for number in range(count))
    values = {
        "version": "2.4.3",
        "leaders": {LEADING_GROUP: Leader(f"{host(0)}:7848", 3)},
        "groups": {LEADING_GROUP: peers},
    } | changes
    return tuple(Member(host=host(number), **values) for number in range(count))


def verdict(replicas: int, *, up: Sequence[int] | None = None, **changes: Any) -> Verdict:
    """All servers are up and nacos-0 leads, but for the changes."""
    verified = range(replicas) if up is None else up
    members = tuple(
        MemberStatus(
            address=f"{host(number)}:8848",
            pod=f"{NAME}-{number}",
            state="UP" if number in verified else "UNREACHABLE",
            verified=number in verified,
            version="2.4.3",
            role="leader" if number == 0 else "follower",
            leads=(),
        )
        for number in range(replicas)
    )
    values: dict[str, Any] = {
        "healthy": len(verified) == replicas,
        "quorum": len(verified) > replicas // 2,
        "split": False,
        "version": "2.4.3",
        "leader": f"{NAME}-0",
        "leaders": {LEADING_GROUP: Leader(f"{host(0)}:7848", 3)},
        "groups": (),
        "members": members,
        "surplus": (),
        "outside": (),
        "problems": (),
    }
    return Verdict(**(values | changes))
