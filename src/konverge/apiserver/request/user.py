"""Who makes a request."""

from __future__ import annotations

from typing import Any

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who makes a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = msgspec.field(default_factory=dict)

    def info(self) -> dict[str, Any]:
        """The user as reviews and expressions show it (UserInfo of authentication.k8s.io)."""
        info = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": self.extra}
        return {key: value for key, value in info.items() if value}


ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
ADMIN = User("admin", groups=("system:masters", "system:authenticated"))
