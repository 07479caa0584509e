"""The users of simulated servers: those of an embedded database, or of an external one through a cache.

Real servers read users from the database every 15 s. Here a login notices a change, which counts from the server's next
reading on: so a rotated password is refused at first, and accepted within 15 s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor

from konverge.sim.nacos.member import Member
from konverge.sim.nacos.settings import Settings

ADMIN = "nacos"
UserTable = Callable[[Settings], Mapping[str, str] | None]
"""The users of a server's external database with their bcrypt hashes; None: the database does not answer."""


@dataclass(slots=True)
class _Cache:
    known: dict[str, str]
    noticed: dict[str, str] | None = None
    due: float = 0.0


class Users:
    """The users of all servers."""

    def __init__(self, table: UserTable, *, every: float) -> None:
        self._table = table
        self._every = every
        self._embedded: dict[str, dict[str, str]] = {}
        """By cluster: plain passwords, which never leave the simulation."""
        self._caches: dict[Member, _Cache] = {}

    def forget(self, member: Member) -> None:
        self._caches.pop(member, None)

    def current(self, settings: Settings) -> dict[str, str] | None:
        """The present content of the database; None: it does not answer."""
        if not settings.embedded:
            users = self._table(settings)
            return None if users is None else dict(users)
        seeded = {ADMIN: ADMIN} if settings.line < (2, 4) else {}
        return dict(self._embedded.setdefault(settings.cluster, seeded))

    def add(self, settings: Settings, username: str, password: str) -> None:
        """Add a user to an embedded database."""
        self.current(settings)
        self._embedded[settings.cluster][username] = password

    def cached(self, member: Member, now: float) -> dict[str, str]:
        """The users that this server knows at this moment."""
        current = self.current(member.settings)
        cache = self._caches.get(member)
        if cache is None:
            cache = self._caches[member] = _Cache(current or {})
        if cache.noticed is not None and now >= cache.due:
            cache.known, cache.noticed = cache.noticed, None
        if current is not None and current != (cache.noticed or cache.known):
            cache.noticed = current
            age = now - member.serving_since
            cache.due = member.serving_since + (floor(age / self._every) + 1) * self._every
        return cache.known
