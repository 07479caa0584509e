"""The configurations of simulated servers, and the routes by which clients read and write them.

They are in the embedded database, which raft replicates, or in an external one. The answers are shaped as recorded.
"""

from __future__ import annotations

from hashlib import md5
from typing import Any

from konverge.sim.nacos import bodies
from konverge.sim.nacos.disk import ConfigKey
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import Member
from konverge.sim.nacos.users import External

PUBLIC = "public"
MISSING = "config data not exist"
NOT_FOUND = (20004, "resource not found")


class Configs:
    """The configurations that one server reads and writes."""

    def __init__(self, ensemble: Ensemble, member: Member, external: External) -> None:
        self._ensemble = ensemble
        self._member = member
        self._external = external

    def _all(self) -> dict[ConfigKey, str] | None:
        settings = self._member.settings
        if not settings.embedded:
            content = self._external(settings)
            return None if content is None else content.configs
        return self._member.data.configs if self._ensemble.has_database(self._member) else None

    def read(self, key: ConfigKey) -> str | None:
        """None: there is no such configuration, or no database."""
        return (self._all() or {}).get(key)

    def write(self, key: ConfigKey, content: str | None) -> bool:
        """Set it, or with None remove it. False: the database cannot be written."""

        def change(configs: dict[ConfigKey, str]) -> None:
            if content is None:
                configs.pop(key, None)
            else:
                configs[key] = content

        if self._member.settings.embedded:
            return self._ensemble.write(self._member, lambda data: change(data.configs))
        configs = self._all()
        if configs is None:
            return False
        change(configs)
        return True


def key_of(form: dict[str, str]) -> ConfigKey:
    """From a query or a form: the versions of the API have different names for the same."""
    space = form.get("tenant") or form.get("namespaceId") or PUBLIC
    return space, form.get("group") or form.get("groupName") or "DEFAULT_GROUP", form.get("dataId", "")


def admin_entry(key: ConfigKey, content: str) -> dict[str, Any]:
    """As the administrators' API of 3.x shows it."""
    namespace, group, name = key
    entry = {"namespaceId": namespace, "groupName": group, "dataId": name, "content": content}
    return bodies.result(entry | {"md5": _digest(content), "type": "text"})


def client_entry(content: str) -> dict[str, Any]:
    """As the clients' API of 3.x shows it."""
    entry = {"resultCode": 200, "errorCode": 0, "content": content, "contentType": "text", "md5": _digest(content)}
    return bodies.result(entry | {"success": True})


def _digest(content: str) -> str:
    return md5(content.encode(), usedforsecurity=False).hexdigest()
