"""The configurations of simulated servers, and the routes by which clients read and write them.

They are in the embedded database, which raft replicates, or in an external one. The answers are shaped as recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from typing import Any

from konverge.sim.databases import Content, Kept
from konverge.sim.nacos import bodies
from konverge.sim.nacos.disk import ConfigKey, Data
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import Member
from konverge.sim.nacos.users import External

PUBLIC = "public"
MISSING = "config data not exist"
NOT_FOUND = (20004, "resource not found")


class Configs:
    """The configurations and namespaces that one server reads and writes."""

    def __init__(self, ensemble: Ensemble, member: Member, external: External) -> None:
        self._ensemble = ensemble
        self._member = member
        self._external = external

    def _database(self) -> Data | Content | None:
        """None: it does not answer."""
        settings = self._member.settings
        if not settings.embedded:
            return self._external(settings)
        return self._member.data if self._ensemble.has_database(self._member) else None

    def read(self, key: ConfigKey) -> str | None:
        """None: there is no such configuration, or no database."""
        database = self._database()
        return database.configs.get(key) if database is not None else None

    @property
    def kept(self) -> Kept:
        database = self._database()
        return database.kept if database is not None else Kept()

    def stored(self) -> list[ConfigKey]:
        """Of all configurations, the oldest first."""
        database = self._database()
        return list(database.configs) if database is not None else []

    def count(self, space: str) -> int:
        """The configurations in a namespace."""
        database = self._database()
        return sum(key[0] == space for key in database.configs) if database is not None else 0

    def write(self, key: ConfigKey, content: str | None, type: str = "") -> bool:
        """Set it, or with None remove it. False: the database cannot be written."""

        def change(data: Data | Content) -> None:
            before = data.configs.get(key)
            if content is not None:
                data.configs[key] = content
                data.kept.types[key] = type or "text"
                data.kept.history.append((key, "I", content) if before is None else (key, "U", before))
            elif before is not None:
                del data.configs[key]
                data.kept.types.pop(key, None)
                data.kept.history.append((key, "D", before))

        return self.change(change)

    def change(self, change: Callable[[Data | Content], None]) -> bool:
        """Change the database. False: it cannot be written."""
        if self._member.settings.embedded:
            return self._ensemble.write(self._member, change)
        content = self._external(self._member.settings)
        if content is None:
            return False
        change(content)
        return True


def key_of(form: dict[str, str]) -> ConfigKey:
    """From a query or a form: the versions of the API have different names for the same."""
    space = form.get("tenant") or form.get("namespaceId") or PUBLIC
    return space, form.get("group") or form.get("groupName") or "DEFAULT_GROUP", form.get("dataId", "")


def admin_entry(key: ConfigKey, content: str, type: str = "text") -> dict[str, Any]:
    """As the administrators' API of 3.x shows it."""
    namespace, group, name = key
    entry = {"namespaceId": namespace, "groupName": group, "dataId": name, "content": content}
    return bodies.result(entry | {"md5": digest(content), "type": type})


def client_entry(content: str) -> dict[str, Any]:
    """As the clients' API of 3.x shows it."""
    entry = {"resultCode": 200, "errorCode": 0, "content": content, "contentType": "text", "md5": digest(content)}
    return bodies.result(entry | {"success": True})


def digest(content: str) -> str:
    return md5(content.encode(), usedforsecurity=False).hexdigest()
