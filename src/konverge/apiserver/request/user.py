"""Who makes a request."""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
