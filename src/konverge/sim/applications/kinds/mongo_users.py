"""Users and roles of a simulated MongoDB: what the commands about them do."""

from __future__ import annotations

from konverge.sim.applications.application import Application, Obj
from konverge.sim.applications.kinds.bson import Document

_OK = {"ok": 1.0}


class UserCommands:
    """Commands that read and write the users and roles in an application's state."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def answer(self, name: str, document: Document) -> Document | None:
        """The answer to a command; None when it is about something else."""
        known = getattr(self, f"_on_{name}", None)
        return None if known is None else dict(known(document))

    def _table(self, name: str) -> dict[str, Obj]:
        table: dict[str, Obj] = self._application.state.setdefault(name, {})
        return table

    def _on_usersinfo(self, document: Document) -> Document:
        asked = document["usersInfo"]
        name = asked.get("user", "") if isinstance(asked, dict) else asked
        entry = self._table("users").get(str(name))
        shown = [{"_id": f"admin.{name}", "user": name, "db": "admin", "roles": entry["roles"]}] if entry else []
        return {"users": shown, **_OK}

    def _on_createuser(self, document: Document) -> Document:
        return self._create("users", document["createUser"], {"pwd": document["pwd"], "roles": _roles(document)})

    def _on_updateuser(self, document: Document) -> Document:
        changes = {"pwd": document["pwd"]} if "pwd" in document else {}
        return self._update("users", document["updateUser"], changes | _changed_roles(document))

    def _on_dropuser(self, document: Document) -> Document:
        if self._table("users").pop(document["dropUser"], None) is None:
            return _absent("users", document["dropUser"])
        self._application.changed()
        return _OK

    def _on_rolesinfo(self, document: Document) -> Document:
        name = document["rolesInfo"]
        entry = self._table("roles").get(str(name))
        shown = {"role": name, "db": "admin", "isBuiltin": False, **entry} if entry else None
        return {"roles": [shown] if shown else [], **_OK}

    def _on_createrole(self, document: Document) -> Document:
        made = {"privileges": document.get("privileges") or [], "roles": _roles(document)}
        return self._create("roles", document["createRole"], made)

    def _on_updaterole(self, document: Document) -> Document:
        changes = {"privileges": document["privileges"]} if "privileges" in document else {}
        return self._update("roles", document["updateRole"], changes | _changed_roles(document))

    def _create(self, table: str, name: str, entry: Obj) -> Document:
        if name in self._table(table):
            kind = table.removesuffix("s").capitalize()
            return {"ok": 0.0, "errmsg": f'{kind} "{name}@admin" already exists', "code": 51003}
        self._table(table)[name] = entry
        self._application.changed()
        return _OK

    def _update(self, table: str, name: str, changes: Obj) -> Document:
        if name not in self._table(table):
            return _absent(table, name)
        self._table(table)[name] |= changes
        self._application.changed()
        return _OK


def _roles(document: Document) -> list[Obj]:
    """Roles by name alone are of the database in which they are used."""
    given = document.get("roles") or []
    return [role if isinstance(role, dict) else {"role": role, "db": "admin"} for role in given]


def _changed_roles(document: Document) -> Obj:
    return {"roles": _roles(document)} if "roles" in document else {}


def _absent(table: str, name: str) -> Document:
    return {"ok": 0.0, "errmsg": f"{table.removesuffix('s').capitalize()} '{name}@admin' not found", "code": 11}
