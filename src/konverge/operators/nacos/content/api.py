"""The API of Nacos for its content, of the 2.x line (v1) and the 3.x line (v3), over the operator's client of servers.

The version that the Nacos reports says which API is asked first; the other one is asked when that is gone, as during an
upgrade. A server that cannot be reached is passed over for the next one: every write may be repeated.

The identity of the servers opens this API. Where it does not, the administrator of the Nacos signs in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

import msgspec

from konverge.operators.nacos.server import Connection, HttpNacosServers, Identity, NacosError, answers
from konverge.operators.nacos.server.client import request_headers
from konverge.wire import Request, Response

PUBLIC = "public"
Api = Literal["v1", "v3"]
Method = Literal["GET", "POST", "PUT", "DELETE"]
Parameters = Mapping[str, str]
T = TypeVar("T")

_PATHS: dict[str, dict[Api, str]] = {
    "login": {"v1": "/nacos/v1/auth/login", "v3": "/nacos/v3/auth/user/login"},
    "namespace": {"v1": "/nacos/v1/console/namespaces", "v3": "/nacos/v3/admin/core/namespace"},
    "namespaces": {"v1": "/nacos/v1/console/namespaces", "v3": "/nacos/v3/admin/core/namespace/list"},
    "config": {"v1": "/nacos/v1/cs/configs", "v3": "/nacos/v3/admin/cs/config"},
    "configs": {"v1": "/nacos/v1/cs/configs", "v3": "/nacos/v3/admin/cs/config/list"},
    "versions": {"v1": "/nacos/v1/cs/history", "v3": "/nacos/v3/admin/cs/history/list"},
    "user": {"v1": "/nacos/v1/auth/users", "v3": "/nacos/v3/auth/user"},
    "users": {"v1": "/nacos/v1/auth/users", "v3": "/nacos/v3/auth/user/list"},
    "role": {"v1": "/nacos/v1/auth/roles", "v3": "/nacos/v3/auth/role"},
    "roles": {"v1": "/nacos/v1/auth/roles", "v3": "/nacos/v3/auth/role/list"},
    "permission": {"v1": "/nacos/v1/auth/permissions", "v3": "/nacos/v3/auth/permission"},
    "permissions": {"v1": "/nacos/v1/auth/permissions", "v3": "/nacos/v3/auth/permission/list"},
    "version": {"v1": "/nacos/v1/cs/history", "v3": "/nacos/v3/admin/cs/history"},
}
_GONE = frozenset((405, 410, 501))
_NOT_FOUND = 20004
_UNAUTHORIZED = (401, 403)
_ROWS = 500
"""Rows of a list: servers before 2.0.4 list all users, whatever name is asked for."""
_PAGE = 100
"""Versions of a configuration that are looked through for the one to go back to."""


class ConfigKey(msgspec.Struct, frozen=True):
    """What names a configuration on the servers."""

    namespace: str
    group: str
    data_id: str

    def parameters(self, api: Api) -> dict[str, str]:
        # The namespace "public" has no id in 2.x.
        if api == "v1":
            space = {} if self.namespace == PUBLIC else {"tenant": self.namespace}
            return {"dataId": self.data_id, "group": self.group, **space}
        return {"dataId": self.data_id, "groupName": self.group, "namespaceId": self.namespace}

    def __str__(self) -> str:
        return f"{self.namespace}/{self.group}/{self.data_id}"


class Namespace(msgspec.Struct, rename="camel"):
    """A namespace as the servers list it."""

    namespace: str = ""
    namespace_show_name: str = ""
    namespace_desc: str | None = None
    config_count: int = 0


class StoredConfig(msgspec.Struct, rename="camel"):
    """A configuration as the servers have it."""

    data_id: str
    content: str | None = None
    md5: str | None = None
    type: str | None = None


class _Version(msgspec.Struct):
    id: str | int = ""
    md5: str | None = None


class _Listed(msgspec.Struct, rename="camel"):
    data_id: str
    group: str | None = None
    group_name: str | None = None


class _ConfigPage(msgspec.Struct, rename="camel"):
    page_items: list[_Listed] | None = None
    pages_available: int = 0


class _Page(msgspec.Struct, rename="camel"):
    page_items: list[_Version] = []


class _Row(msgspec.Struct):
    """Of users, roles or permissions; the hash of a password is not read."""

    username: str = ""
    role: str = ""
    resource: str = ""
    action: str = ""


class _Rows(msgspec.Struct, rename="camel"):
    page_items: list[_Row] | None


class _Data(msgspec.Struct):
    code: int | None = None
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Token(msgspec.Struct, rename="camel"):
    access_token: str = ""


@dataclass(frozen=True, slots=True)
class Login:
    """The administrator of a Nacos."""

    username: str
    password: str = field(repr=False)


class Tokens:
    """The tokens of administrators by the uid of their Nacos. A token that a server refuses is replaced."""

    LIMIT = 1024

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def get(self, uid: str) -> str:
        return self._known.get(uid, "")

    def keep(self, uid: str, token: str) -> None:
        self._known.pop(uid, None)
        self._known[uid] = token
        if len(self._known) > self.LIMIT:
            del self._known[next(iter(self._known))]


class ContentApi(msgspec.Struct, frozen=True, kw_only=True):
    """The servers of one Nacos. All calls raise NacosError."""

    servers: HttpNacosServers
    uid: str
    """Of the Nacos."""
    addresses: tuple[str, ...]
    """Of its ready servers, in the order in which they are asked."""
    third: bool
    """Whether it is of the 3.x line."""
    identity: Identity | None = None
    login: Login | None = None
    signs_in: bool = True
    """Whether users can sign in: servers without authentication may lack the key that tokens are made with."""
    tokens: Tokens
    timeout: float = 5.0

    # -------------------------------------------------------------- namespaces

    async def namespaces(self) -> dict[str, Namespace]:
        """By id."""
        _, body = await self._send("GET", "namespaces")
        listed = _decoded(_data(body), list[Namespace], "a list of namespaces")
        return {space.namespace or PUBLIC: space for space in listed}

    async def create_namespace(self, space: str, title: str, description: str) -> None:
        old = {"customNamespaceId": space, "namespaceName": title, "namespaceDesc": description}
        new = {"namespaceId": space, "namespaceName": title, "namespaceDesc": description}
        await self._write("POST", "namespace", {"v1": old, "v3": new}, f"namespace {space} was not created")

    async def update_namespace(self, space: str, title: str, description: str) -> None:
        old = {"namespace": space, "namespaceShowName": title, "namespaceDesc": description}
        new = {"namespaceId": space, "namespaceName": title, "namespaceDesc": description}
        await self._write("PUT", "namespace", {"v1": old, "v3": new}, f"namespace {space} was not changed")

    async def delete_namespace(self, space: str) -> None:
        form = {"namespaceId": space}
        await self._write("DELETE", "namespace", {"v1": form, "v3": form}, f"namespace {space} was not deleted")

    # -------------------------------------------------------------- configurations

    async def config(self, key: ConfigKey) -> StoredConfig | None:
        """From the database of the servers, not from their caches; None: there is none."""
        parameters: dict[Api, Parameters] = {"v1": {**key.parameters("v1"), "show": "all"}, "v3": key.parameters("v3")}
        api, body = await self._send("GET", "config", parameters)
        if not body.strip() or answers.code(body) == _NOT_FOUND:
            return None
        stored = _decoded(_data(body) if api == "v3" else body, StoredConfig | None, "a configuration")
        return stored if stored is not None and stored.content is not None else None

    async def config_keys(self, namespace: str, number: int, size: int) -> tuple[list[ConfigKey], int]:
        """One page of the configurations of a namespace, and how many pages there are; the first has the number 1."""
        page = {"search": "accurate", "dataId": "", "pageNo": str(number), "pageSize": str(size)}
        parameters: dict[Api, Parameters] = {
            "v1": {**page, "group": "", "tenant": "" if namespace == PUBLIC else namespace},
            "v3": {**page, "groupName": "", "namespaceId": namespace},
        }
        api, body = await self._send("GET", "configs", parameters)
        listed = _decoded(_data(body) if api == "v3" else body, _ConfigPage, "a page of configurations")
        items = listed.page_items or []
        keys = [ConfigKey(namespace, item.group or item.group_name or "", item.data_id) for item in items]
        return keys, listed.pages_available

    async def publish(self, key: ConfigKey, content: str, type: str, description: str) -> None:
        form = {"content": content, "type": type, "desc": description}
        forms: dict[Api, Parameters] = {"v1": {**key.parameters("v1"), **form}, "v3": {**key.parameters("v3"), **form}}
        await self._write("POST", "config", forms, f"configuration {key} was not published")

    async def delete_config(self, key: ConfigKey) -> None:
        forms: dict[Api, Parameters] = {"v1": key.parameters("v1"), "v3": key.parameters("v3")}
        await self._write("DELETE", "config", forms, f"configuration {key} was not deleted")

    async def earlier_content(self, key: ConfigKey, md5: str) -> str | None:
        """The content with this digest from the history that the servers keep; None: they have it no longer."""
        pages = {"search": "accurate", "pageNo": "1", "pageSize": str(_PAGE)}
        parameters: dict[Api, Parameters] = {
            "v1": {**key.parameters("v1"), **pages},
            "v3": {**key.parameters("v3"), **pages},
        }
        api, body = await self._send("GET", "versions", parameters)
        page = _decoded(_data(body) if api == "v3" else body, _Page, "the history of a configuration")
        for version in page.page_items:
            if version.md5 in (None, "", md5):  # lists of 2.x have no digests
                content = await self._version(key, str(version.id))
                if content is not None and digest(content) == md5:
                    return content
        return None

    async def _version(self, key: ConfigKey, number: str) -> str | None:
        parameters: dict[Api, Parameters] = {
            "v1": {**key.parameters("v1"), "nid": number},
            "v3": {**key.parameters("v3"), "nid": number},
        }
        api, body = await self._send("GET", "version", parameters)
        stored = _decoded(_data(body) if api == "v3" else body, StoredConfig | None, "a version of a configuration")
        return stored.content if stored is not None else None

    # -------------------------------------------------------------- users, roles and permissions

    async def has_user(self, username: str) -> bool:
        return any(row.username == username for row in await self._rows("users", {"username": username}))

    async def create_user(self, username: str, password: str) -> None:
        form = {"username": username, "password": password}
        await self._write("POST", "user", {"v1": form, "v3": form}, f"user {username} was not created")

    async def set_password(self, username: str, password: str) -> None:
        form = {"username": username, "newPassword": password}
        await self._write("PUT", "user", {"v1": form, "v3": form}, f"the password of {username} was not changed")

    async def delete_user(self, username: str) -> None:
        form = {"username": username}
        await self._write("DELETE", "user", {"v1": form, "v3": form}, f"user {username} was not deleted")

    async def accepts(self, username: str, password: str) -> bool:
        """Whether a server lets this user in."""
        address, timeout = self.addresses[0], self.timeout
        return await self.servers.login(address, username=username, password=password, timeout=timeout)

    async def roles_of(self, username: str) -> frozenset[str]:
        rows = await self._rows("roles", {"username": username})
        return frozenset(row.role for row in rows if row.username == username)

    async def has_role(self, role: str) -> bool:
        return any(row.role == role for row in await self._rows("roles", {"role": role}))

    async def add_role(self, role: str, username: str) -> None:
        form = {"role": role, "username": username}
        await self._write("POST", "role", {"v1": form, "v3": form}, f"{username} was not given the role {role}")

    async def remove_role(self, role: str, username: str) -> None:
        form = {"role": role, "username": username}
        await self._write("DELETE", "role", {"v1": form, "v3": form}, f"the role {role} of {username} was not removed")

    async def permissions_of(self, role: str) -> frozenset[tuple[str, str]]:
        rows = await self._rows("permissions", {"role": role})
        return frozenset((row.resource, row.action) for row in rows if row.role == role)

    async def grant(self, role: str, resource: str, action: str) -> None:
        form = {"role": role, "resource": resource, "action": action}
        await self._write("POST", "permission", {"v1": form, "v3": form}, f"{role} was not given {action} {resource}")

    async def revoke(self, role: str, resource: str, action: str) -> None:
        form = {"role": role, "resource": resource, "action": action}
        await self._write("DELETE", "permission", {"v1": form, "v3": form}, f"{role} still has {action} {resource}")

    async def _rows(self, what: str, search: Parameters) -> list[_Row]:
        parameters = {"search": "accurate", "pageNo": "1", "pageSize": str(_ROWS), **search}
        api, body = await self._send("GET", what, {"v1": parameters, "v3": parameters})
        rows: _Rows = _decoded(_data(body) if api == "v3" else body, _Rows, f"a list of {what}")
        return rows.page_items or []

    # -------------------------------------------------------------- requests

    async def _write(self, method: Method, what: str, forms: Mapping[Api, Parameters], failure: str) -> None:
        _, body = await self._send(method, what, forms)
        code = answers.code(body)
        good = body.strip() == b"true" or (code in answers.GOOD and _data(body).startswith((b"true", b'"')))
        if not good:
            # The answer to a password is not repeated: it may hold it.
            text = "" if what == "user" else answers.error_message(body)
            message = f"{failure}: {text or 'no reason given'}"
            raise NacosError("ServerError", message)

    async def _send(
        self, method: Method, what: str, parameters: Mapping[Api, Parameters] | None = None
    ) -> tuple[Api, bytes]:
        """The answer of the first server that can be reached, and the version of its API."""
        problem = NacosError("Unreachable", "no server is ready")
        for address in self.addresses:
            try:
                return await self._ask(address, method, what, parameters or {})
            except NacosError as error:
                if error.reason not in ("Unreachable", "Timeout"):
                    raise
                problem = error
        raise problem

    async def _ask(
        self, address: str, method: Method, what: str, parameters: Mapping[Api, Parameters]
    ) -> tuple[Api, bytes]:
        used: list[Api] = []

        async def ask(connection: Connection) -> Response:
            return await self._authorized(connection, method, what, parameters, used)

        response = await self.servers.exchange(address, timeout=self.timeout, ask=ask)
        if response.status == 200 or (response.status == 404 and _is_missing(response)):
            return used[-1], response.body
        text = "" if what == "user" else answers.error_message(response.body)
        if response.status in _UNAUTHORIZED:
            advice = "its administrator must be in adminCredentialsSecretRef, with a plain password"
            raise NacosError("Forbidden", f"{address} refused (HTTP {response.status} {text!r}); {advice}")
        raise NacosError("ServerError", f"{address}: HTTP {response.status} {text!r}")

    async def _authorized(
        self,
        connection: Connection,
        method: Method,
        what: str,
        parameters: Mapping[Api, Parameters],
        used: list[Api],
    ) -> Response:
        """With the identity and the token that is known; a refusal leads to a sign-in."""
        response = await self._in_either(connection, method, what, parameters, used)
        if response.status not in _UNAUTHORIZED or self.login is None:
            return response
        form = {"username": self.login.username, "password": self.login.password}
        signed_in = await self._in_either(connection, "POST", "login", {"v1": form, "v3": form}, [])
        if signed_in.status != 200 or not answers.has_token(signed_in.body):
            return response
        self.tokens.keep(self.uid, msgspec.json.decode(signed_in.body, type=_Token).access_token)
        return await self._in_either(connection, method, what, parameters, used)

    async def _in_either(
        self,
        connection: Connection,
        method: Method,
        what: str,
        parameters: Mapping[Api, Parameters],
        used: list[Api],
    ) -> Response:
        order: tuple[Api, Api] = ("v3", "v1") if self.third else ("v1", "v3")
        for api in order:
            used.append(api)
            response = await connection.send(self._request(method, _PATHS[what][api], parameters.get(api, {})))
            if response.status not in _GONE and not (response.status == 404 and not _is_missing(response)):
                return response
        paths = " or ".join(_PATHS[what].values())
        raise NacosError("Gone", f"the server has no {paths} (HTTP {response.status})")

    def _request(self, method: Method, path: str, parameters: Parameters) -> Request:
        headers = request_headers(self.identity)
        if token := self.tokens.get(self.uid):
            headers.add("accessToken", token)
            headers.add("authorization", f"Bearer {token}")
        encoded = urlencode(parameters)
        if method in ("GET", "DELETE"):
            return Request(method, f"{path}?{encoded}" if encoded else path, headers)
        headers.add("content-type", "application/x-www-form-urlencoded")
        return Request(method, path, headers, encoded.encode())


def digest(content: str) -> str:
    """As the servers compute it."""
    from hashlib import md5

    return md5(content.encode(), usedforsecurity=False).hexdigest()


def _is_missing(response: Response) -> bool:
    """A 404 that is about the content, not about the path."""
    return answers.code(response.body) == _NOT_FOUND or b"not exist" in response.body[:200]


def _data(body: bytes) -> bytes:
    """The payload of an envelope."""
    return bytes(_decoded(body, _Data, "an answer of Nacos").data)


def _decoded(body: bytes, form: Any, what: str) -> Any:
    if len(body) > answers.MAX_BODY:
        raise NacosError("BadAnswer", f"the answer is larger than {answers.MAX_BODY >> 20} MiB, so it is not {what}")
    try:
        return msgspec.json.decode(body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NacosError("BadAnswer", f"the answer is not {what}: {answers.excerpt(str(error))}") from error
