"""The users of simulated servers: those of an embedded database, or of an external one through a cache.

Real servers read users from the database every 15 s. Here a login notices a change, which counts from the server's next
reading on: so a rotated password is refused at first, and accepted within 15 s.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import TYPE_CHECKING

import msgspec

from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import ADMIN, Member
from konverge.sim.nacos.settings import Settings

if TYPE_CHECKING:
    from konverge.sim.databases import Content

External = Callable[[Settings], "Content | None"]
"""The content of a server's external database; None: the database does not answer."""


class _Cache(msgspec.Struct):
    known: dict[str, str]
    noticed: dict[str, str] | None = None
    due: float = 0.0


class Users:
    """The users of all servers."""

    def __init__(self, external: External, *, every: float) -> None:
        self._external = external
        self._every = every
        self._caches: dict[Member, _Cache] = {}

    def forget(self, member: Member) -> None:
        self._caches.pop(member, None)

    def current(self, member: Member) -> dict[str, str] | None:
        """The present content of the member's database; None: it does not answer."""
        if member.settings.embedded:
            return dict(member.data.users)
        content = self._external(member.settings)
        return None if content is None else {name: row[0] for name, row in content.users.items()}

    def has_admin(self, member: Member) -> bool:
        return any(self.is_admin(member, name) for name in self.current(member) or ())

    def is_admin(self, member: Member, name: str) -> bool:
        """By name, or by a row that SQL wrote."""
        content = None if member.settings.embedded else self._external(member.settings)
        return name == ADMIN or (content is not None and name in content.admins)

    def add(self, ensemble: Ensemble, member: Member, name: str, password: str) -> bool:
        """Add an administrator. False: the database cannot be written."""
        if member.settings.embedded:
            return ensemble.write(member, lambda data: data.users.update({name: password}))
        from konverge.sim.databases import simulated_hash

        content = self._external(member.settings)
        if content is None:
            return False
        content.users[name] = (simulated_hash(password), True)
        content.admins.add(name)
        return True

    def cached(self, member: Member, now: float) -> dict[str, str]:
        """The users that this server knows at this moment."""
        current = self.current(member)
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
