"""The HTTP side of one simulated server: its answers on the main port and, from 3.0 on, on the console's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from konverge.operators.nacos.server import RAFT_OFFSET
from konverge.sim.nacos import bodies
from konverge.sim.nacos.accounts import AccountRoutes
from konverge.sim.nacos.configs import MISSING, NOT_FOUND, Configs, admin_entry, client_entry, key_of
from konverge.sim.nacos.content import Answer, ContentRoutes, Form
from konverge.sim.nacos.disk import ConfigKey
from konverge.sim.nacos.ensemble import Ensemble
from konverge.sim.nacos.member import ADMIN, Member
from konverge.sim.nacos.users import Users
from konverge.wire.message import Headers, Request, Response

MAX_FORM = 1 << 20
_JSON = "application/json"
_TEXT = "text/plain;charset=UTF-8"
_NEW = (3,)
Route = Callable[[Request, dict[str, str]], Response]
Check = Callable[[str, str], bool]
"""Whether a password matches a hash."""


class _Operation(msgspec.Struct):
    command: str = ""
    value: str = ""


class NacosHandler:
    """Answers for one member. The caller has advanced the ensemble to the present time."""

    def __init__(self, ensemble: Ensemble, member: Member, users: Users, configs: Configs, check: Check) -> None:
        self.ensemble = ensemble
        self.member = member
        self.users = users
        self.configs = configs
        self.settings = member.settings
        self._check = check
        self._tokens: set[str] = set()
        third = self.settings.line >= _NEW
        self._content = ContentRoutes(configs, third=third)
        accounts = AccountRoutes(configs, lambda: users.current(member) or {}, third=third)
        self._declared = self._content.routes() | accounts.routes()

    @property
    def ports(self) -> tuple[int, ...]:
        """Its ports, once it is open: since 3.0 the console has a port of its own."""
        own = (self.settings.port,)
        return (*own, self.settings.console_port) if self.settings.line >= _NEW else own

    def answer(self, port: int, request: Request) -> Response:
        path, query = _split(request)
        console = port != self.settings.port
        content = None if console else self._declared.get(f"{request.method} {path}")
        if content is not None:
            return self._answer_content(content, request, query)
        if console and path.startswith("/nacos/"):
            return _text(500, f"caused: No static resource {path[1:]}.;")
        route = (self._console_routes() if console else self._main_routes()).get(f"{request.method} {path}")
        return _error(404, "Not Found", "No message available", path) if route is None else route(request, query)

    def _answer_content(self, route: Callable[[Form], Answer], request: Request, query: Form) -> Response:
        form = query | _form(request)
        if not self._may(request, form):
            return self._forbidden(request)
        if "newPassword" in form and not self._open and not self._has_token(request, form):
            return _error(401, "Unauthorized", "session expired!", urlsplit(request.target).path)
        status, body = route(form)
        for member in self.ensemble.members.values():  # all servers read their users again before long
            self.users.cached(member, self.ensemble.now)
        if body is None or isinstance(body, str):
            return _text(status, body or "")
        return _json(status, body)

    def status(self, port: int, path: str) -> int:
        """The status that a probe would get."""
        return self.answer(port, Request("GET", path)).status

    # -------------------------------------------------------------- routes

    def _main_routes(self) -> dict[str, Route]:
        line = self.settings.line
        routes: dict[str, Route] = {
            "GET /nacos/actuator/health": lambda *_: _json(200, {"status": "UP"}),
            "POST /nacos/v1/auth/login": self._login,
            "POST /nacos/v1/auth/users/login": self._login,
            "GET /nacos/v1/ns/operator/servers": self._servers if line <= (2, 1, 2) else self._no_such_api,
        }
        if line >= _NEW:
            return (
                routes
                | self._gone_routes()
                | {
                    "GET /nacos/v3/admin/core/cluster/node/list": self._nodes_v2,
                    "GET /nacos/v3/admin/core/cluster/node/self": self._self_v2,
                    "GET /nacos/v3/admin/core/state": lambda *_: _json(200, bodies.result(self._state())),
                    "GET /nacos/v3/admin/core/state/liveness": _alive,
                    "GET /nacos/v3/admin/core/state/readiness": lambda *_: self._readiness(failure=200),
                    "POST /nacos/v3/admin/core/ops/raft": self._raft,
                    "POST /nacos/v3/auth/user/login": self._login,
                    "POST /nacos/v3/auth/user/admin": self._admin,
                    "GET /nacos/v3/client/cs/config": self._config_v3,
                    "GET /nacos/v3/admin/cs/config": self._config_v3,
                    "POST /nacos/v3/admin/cs/config": self._publish,
                    "DELETE /nacos/v3/admin/cs/config": self._publish,
                }
            )
        routes |= {
            "GET /nacos/v1/core/cluster/nodes": self._nodes_v1,
            "GET /nacos/v1/core/cluster/self": self._self_v1,
            "POST /nacos/v1/core/ops/raft": self._raft,
            "GET /nacos/v1/console/server/state": lambda *_: _json(200, self._state()),
            "GET /nacos/v1/console/health/liveness": lambda *_: _text(200, "OK"),
            "GET /nacos/v1/console/health/readiness": self._ready_v1,
            "GET /nacos/v1/cs/configs": self._config_v1,
            "POST /nacos/v1/cs/configs": self._publish,
            "DELETE /nacos/v1/cs/configs": self._publish,
        }
        if line >= (2, 2):
            routes["GET /nacos/v2/core/cluster/node/list"] = self._nodes_v2
        if line >= (2, 3):
            routes["GET /nacos/v2/console/health/liveness"] = _alive
            routes["GET /nacos/v2/console/health/readiness"] = lambda *_: self._readiness(failure=200)
        if line >= (2, 4):
            routes["POST /nacos/v1/auth/users/admin"] = self._admin
        return routes

    def _gone_routes(self) -> dict[str, Route]:
        old = {
            "/nacos/v1/core/cluster/nodes": "/v3/admin/core/cluster/node/list",
            "/nacos/v2/core/cluster/node/list": "/v3/admin/core/cluster/node/list",
            "/nacos/v1/console/server/state": "/v3/console/server/state",
            "/nacos/v1/console/health/liveness": "/v3/console/health/liveness",
            "/nacos/v1/console/health/readiness": "/v3/console/health/readiness",
            "/nacos/v2/console/health/liveness": "/v3/console/health/liveness",
            "/nacos/v2/console/health/readiness": "/v3/console/health/readiness",
        }
        return {f"GET {path}": _gone(path, f"GET ${{contextPath:nacos}}{new}") for path, new in old.items()}

    def _console_routes(self) -> dict[str, Route]:
        return {
            "GET /v3/console/health/liveness": _alive,
            "GET /v3/console/health/readiness": lambda *_: self._readiness(failure=500),
            "GET /v3/console/server/state": lambda *_: _json(200, self._state()),
            "GET /v3/console/core/cluster/nodes": self._nodes_console,
            "POST /v3/auth/user/login": self._login,
            "POST /v3/auth/user/admin": self._admin,
        }

    # -------------------------------------------------------------- members

    def _nodes_v1(self, request: Request, query: dict[str, str]) -> Response:
        if self.settings.line >= (2, 3) and not self._may(request, query):
            return self._forbidden(request)
        keyword = query.get("keyword", "")
        members = [entry for entry in bodies.members(self.ensemble, self.member) if keyword in entry["address"]]
        return _json(200, bodies.result(members, code=200, message=None))

    def _nodes_v2(self, request: Request, query: dict[str, str]) -> Response:
        if not self._may(request, query):
            return self._forbidden(request)
        return _json(200, bodies.result(bodies.members(self.ensemble, self.member)))

    def _nodes_console(self, request: Request, query: dict[str, str]) -> Response:
        if not self._has_token(request, query):
            return self._forbidden(request)
        return _json(200, bodies.result(bodies.members(self.ensemble, self.member)))

    def _servers(self, request: Request, query: dict[str, str]) -> Response:
        return _json(200, {"servers": bodies.members(self.ensemble, self.member)})

    def _self_v1(self, request: Request, query: dict[str, str]) -> Response:
        if self.settings.line >= (2, 3) and not self._may(request, query):
            return self._forbidden(request)
        return _json(200, bodies.result(self._own_entry(), code=200, message=None))

    def _self_v2(self, request: Request, query: dict[str, str]) -> Response:
        return _json(200, bodies.result(self._own_entry())) if self._may(request, query) else self._forbidden(request)

    def _own_entry(self) -> dict[str, Any]:
        return bodies.entry(self.ensemble, self.member, self.settings.address)

    def _no_such_api(self, request: Request, query: dict[str, str]) -> Response:
        path = urlsplit(request.target).path
        return _error(501, "Not Implemented", f"no such api:{request.method}:{path}", path)

    def _raft(self, request: Request, query: dict[str, str]) -> Response:
        """The one operation on raft groups that an operator needs."""
        if not self._may(request, query):
            return self._forbidden(request)
        try:
            operation = msgspec.json.decode(request.body, type=_Operation)
        except msgspec.MsgspecError:
            return _error(400, "Bad Request", "Required request body is missing", urlsplit(request.target).path)
        host, _, port = operation.value.rpartition(":")
        if operation.command != "removePeer" or not port.isdecimal():
            return _json(200, bodies.result(None, code=500, message=f"Not support command: {operation.command}"))
        removed = self.ensemble.remove_peer(self.member, f"{host}:{int(port) - RAFT_OFFSET}", self.ensemble.now)
        good = 0 if self.settings.line >= _NEW else 200
        return _json(200, bodies.result(None, code=good if removed else 500, message=None if removed else "no leader"))

    # -------------------------------------------------------------- state and health

    def _state(self) -> dict[str, Any]:
        return bodies.state(self.settings, needs_admin=not self.users.has_admin(self.member))

    def unready(self) -> str:
        """Why it is not ready; empty when it is. The readiness depends on the database alone."""
        up = self.ensemble.has_database(self.member) and (
            self.settings.embedded or self.users.current(self.member) is not None
        )
        return "" if up else "config not in readiness"

    def _ready_v1(self, request: Request, query: dict[str, str]) -> Response:
        reason = self.unready()
        return _text(500, reason) if reason else _text(200, "OK")

    def _readiness(self, failure: int) -> Response:
        reason = self.unready()
        body = bodies.result(None, code=30000, message=reason) if reason else bodies.result("ok")
        return _json(failure if reason else 200, body)

    # -------------------------------------------------------------- configurations

    def _config_v1(self, request: Request, query: dict[str, str]) -> Response:
        if not self._may(request, query):
            return self._forbidden(request)
        if query.get("search") == "accurate":
            return self._answer_content(self._content.page, request, query)
        if query.get("show") == "all":
            return self._answer_content(self._content.detail, request, query)
        content = self.configs.read(key_of(query))
        return _text(404, f"{MISSING}\n") if content is None else _text(200, content)

    def _config_v3(self, request: Request, query: dict[str, str]) -> Response:
        if not self._may(request, query):
            return self._forbidden(request)
        content = self.configs.read(key_of(query))
        for_clients = "/client/" in request.target
        if content is None:
            code, message = NOT_FOUND
            return _json(200 if for_clients else 404, bodies.result(None, code=code, message=message))
        return _json(200, client_entry(content) if for_clients else self._entry(key_of(query), content))

    def _entry(self, key: ConfigKey, content: str) -> dict[str, Any]:
        return admin_entry(key, content, self.configs.kept.types.get(key, "text"))

    def _publish(self, request: Request, query: dict[str, str]) -> Response:
        """Write a configuration, or delete it."""
        form = query | _form(request)
        if not self._may(request, form):
            return self._forbidden(request)
        content = None if request.method == "DELETE" else form.get("content", "")
        if not self.configs.write(key_of(form), content, form.get("type", "")):
            return _text(500, "caused: UNAVAILABLE: io exception;")
        return _json(200, bodies.result(True) if self.settings.line >= _NEW else True)

    # -------------------------------------------------------------- authentication

    def _may(self, request: Request, query: dict[str, str]) -> bool:
        key, value = self.settings.identity
        known = bool(key and value) and request.headers.get(key) == value
        return self._open or known or self._has_token(request, query)

    @property
    def _open(self) -> bool:
        """Whether it asks no one who they are."""
        return not self.settings.auth and self.settings.line < _NEW

    def _has_token(self, request: Request, query: dict[str, str]) -> bool:
        bearer = request.headers.get("authorization").removeprefix("Bearer ")
        return not self._tokens.isdisjoint({bearer, query.get("accessToken", ""), request.headers.get("accesstoken")})

    def _forbidden(self, request: Request) -> Response:
        message = "user not found!"
        if self.settings.line >= _NEW:
            message = "Code: 401, Message: User not found! Please check user exist or password is right!."
        return _error(403, "Forbidden", message, urlsplit(request.target).path)

    def _login(self, request: Request, query: dict[str, str]) -> Response:
        form = query | _form(request)
        username, password = form.get("username", ""), form.get("password", "")
        known = self.users.cached(self.member, self.ensemble.now).get(username)
        if known is None:
            return self._unknown_user(request, username)
        if not self._matches(password, known):
            return self._wrong_password(request)
        token = f"simulated.{username}.{len(self._tokens)}"
        self._tokens.add(token)
        body = {
            "accessToken": token,
            "tokenTtl": 18000,
            "globalAdmin": self.users.is_admin(self.member, username),
            "username": username,
        }
        response = _json(200, body)
        response.headers.add("Authorization", f"Bearer {token}")
        return response

    def _matches(self, password: str, known: str) -> bool:
        return password == known if self.settings.embedded else self._check(password, known)

    def _unknown_user(self, request: Request, username: str) -> Response:
        if self.settings.line >= _NEW:
            return _error(403, "Forbidden", "Access Denied", urlsplit(request.target).path)
        return _text(500, f"caused: User {username} not found;")

    def _wrong_password(self, request: Request) -> Response:
        if self.settings.line >= _NEW:
            return _error(500, "Internal Server Error", "No message available", urlsplit(request.target).path)
        return _text(403, "user not found!")

    def _admin(self, request: Request, query: dict[str, str]) -> Response:
        """Creates the first administrator."""
        new = self.settings.line >= _NEW
        current = self.users.current(self.member)
        if current is None or not self.ensemble.has_database(self.member):
            return _text(500, "caused: UNAVAILABLE: io exception;")
        if self.users.has_admin(self.member):
            refusal = "have admin user cannot use it"
            data, message = (None, f"{refusal}.") if new else (refusal, None)
            return _json(200, bodies.result(data, code=409, message=message))
        password = (query | _form(request)).get("password", "") or "random"
        if not self.users.add(self.ensemble, self.member, ADMIN, password):
            return _text(500, "caused: UNAVAILABLE: io exception;")
        admin = {"username": ADMIN, "password": password}
        return _json(200, bodies.result(admin) if new else admin)


def _alive(request: Request, query: dict[str, str]) -> Response:
    return _json(200, bodies.result("ok"))


def _gone(path: str, instead: str) -> Route:
    return lambda *_: _json(410, bodies.gone(path, instead))


def _split(request: Request) -> tuple[str, dict[str, str]]:
    parts = urlsplit(request.target)
    return parts.path, dict(parse_qsl(parts.query[:MAX_FORM], keep_blank_values=True))


def _form(request: Request) -> dict[str, str]:
    return dict(parse_qsl(request.body[:MAX_FORM].decode("utf-8", "replace"), keep_blank_values=True))


def _json(status: int, body: Any) -> Response:
    return Response(status, Headers.of({"content-type": _JSON}), msgspec.json.encode(body))


def _text(status: int, text: str) -> Response:
    return Response(status, Headers.of({"content-type": _TEXT}), text.encode())


def _error(status: int, error: str, message: str, path: str) -> Response:
    return _json(status, bodies.spring(status, error, message, path))
