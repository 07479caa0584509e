"""The routes for users, roles and permissions.

As on real servers: a password is changed by a signed-in administrator only, the identity of servers is not enough; a
role exists by the users that have it; deleting a user leaves its roles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from konverge.sim.databases import Content, simulated_hash
from konverge.sim.nacos import bodies
from konverge.sim.nacos.configs import Configs
from konverge.sim.nacos.content import UNAVAILABLE, Answer, Form
from konverge.sim.nacos.disk import Data
from konverge.sim.nacos.member import ADMIN

_ADMIN_ROLE = "ROLE_ADMIN"
Names = Callable[[], dict[str, str]]


class AccountRoutes:
    """Of one server."""

    def __init__(self, configs: Configs, users: Names, *, third: bool) -> None:
        """`users` reads the users of the database."""
        self._configs = configs
        self._users = users
        self._third = third

    def routes(self) -> dict[str, Callable[[Form], Answer]]:
        if self._third:
            user, role, permission = (f"/nacos/v3/auth/{name}" for name in ("user", "role", "permission"))
            lists = (f"GET {user}/list", f"GET {role}/list", f"GET {permission}/list")
        else:
            user, role, permission = (f"/nacos/v1/auth/{name}" for name in ("users", "roles", "permissions"))
            lists = (f"GET {user}", f"GET {role}", f"GET {permission}")
        users, roles, permissions = lists
        return {
            users: self._list_users,
            roles: self._list_roles,
            permissions: self._list_permissions,
            f"POST {user}": self._create_user,
            f"PUT {user}": self._set_password,
            f"DELETE {user}": self._delete_user,
            f"POST {role}": self._add_role,
            f"DELETE {role}": self._remove_role,
            f"POST {permission}": self._grant,
            f"DELETE {permission}": self._revoke,
        }

    def _page(self, items: list[dict[str, Any]]) -> Answer:
        page = {"totalCount": len(items), "pageNumber": 1, "pagesAvailable": 1, "pageItems": items}
        return 200, bodies.result(page) if self._third else page

    def _done(self, change: Callable[[Data | Content], None], text: str) -> Answer:
        if not self._configs.change(change):
            return UNAVAILABLE
        return 200, bodies.result(text) if self._third else bodies.result(text, code=200, message=None)

    # -------------------------------------------------------------- users

    def _list_users(self, form: Form) -> Answer:
        name = form.get("username", "")
        shown = [user for user in self._users() if not name or user == name]
        return self._page([{"username": user, "password": simulated_hash(user)} for user in shown])

    def _create_user(self, form: Form) -> Answer:
        name = form.get("username", "")
        if name == ADMIN and not self._third:
            return 200, bodies.result(f"User `{ADMIN}` is default admin user.", code=409, message=None)
        if name in self._users():
            return 400, f"caused: user '{name}' already exist!;"
        return self._done(_with_password(name, form.get("password", "")), "create user ok!")

    def _set_password(self, form: Form) -> Answer:
        name = form.get("username", "")
        if name not in self._users():
            return 400, f"caused: user {name} not exist!;"
        return self._done(_with_password(name, form.get("newPassword", "")), "update user ok!")

    def _delete_user(self, form: Form) -> Answer:
        def change(data: Data | Content) -> None:
            data.users.pop(form.get("username", ""), None)

        return self._done(change, "delete user ok!")

    # -------------------------------------------------------------- roles and permissions

    def _roles(self) -> list[tuple[str, str]]:
        admins = [(_ADMIN_ROLE, ADMIN)] if ADMIN in self._users() else []
        return admins + sorted(self._configs.kept.roles)

    def _list_roles(self, form: Form) -> Answer:
        role, name = form.get("role", ""), form.get("username", "")
        shown = [pair for pair in self._roles() if role in ("", pair[0]) and name in ("", pair[1])]
        return self._page([{"role": role, "username": name} for role, name in shown])

    def _add_role(self, form: Form) -> Answer:
        pair = (form.get("role", ""), form.get("username", ""))
        if pair[1] not in self._users():
            return 400, f"caused: user '{pair[1]}' not found!;"
        if pair[0] == _ADMIN_ROLE:
            return 400, f"caused: role '{_ADMIN_ROLE}' is not permitted to create!;"
        return self._done(lambda data: data.kept.roles.add(pair), "add role ok!")

    def _remove_role(self, form: Form) -> Answer:
        pair = (form.get("role", ""), form.get("username", ""))
        return self._done(lambda data: data.kept.roles.discard(pair), f"delete role of user {pair[1]} ok!")

    def _list_permissions(self, form: Form) -> Answer:
        shown = [row for row in sorted(self._configs.kept.permissions) if form.get("role", "") in ("", row[0])]
        return self._page([{"role": role, "resource": on, "action": action} for role, on, action in shown])

    def _grant(self, form: Form) -> Answer:
        row = _row(form)
        if row[0] not in {role for role, _ in self._roles()}:
            return 400, f"caused: role {row[0]} not found!;"
        return self._done(lambda data: data.kept.permissions.add(row), "add permission ok!")

    def _revoke(self, form: Form) -> Answer:
        row = _row(form)
        return self._done(lambda data: data.kept.permissions.discard(row), "delete permission ok!")


def _row(form: Form) -> tuple[str, str, str]:
    return form.get("role", ""), form.get("resource", ""), form.get("action", "")


def _with_password(name: str, password: str) -> Callable[[Data | Content], None]:
    def change(data: Data | Content) -> None:
        if isinstance(data, Data):
            data.users[name] = password
        else:
            data.users[name] = (simulated_hash(password), True)

    return change
