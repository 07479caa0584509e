"""`HttpNacosServers`: an HTTP client for the API of every version of Nacos.

    2.0 – 2.5   v1 on the main port; v2 beside it from 2.2 on
    3.x         v3 on the main port, the console on 8080; v1 and v2 answer 410 Gone

The client tries v1, v2, v3 in this order: v1 alone tells the two lines apart, it answers or it is gone. The version
that answered is remembered by address; when it is gone (the image changed), the search starts again.

Each question opens a connection of its own and closes it: servers are asked rarely, and their pods come and go. The
number of open connections, the size of an answer and the time for a question are bounded.

Error messages never repeat what a server answers to a login, and the value of an identity is masked in all of them.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Literal, Protocol
from urllib.parse import urlencode

import msgspec

from konverge.operators.nacos.server import answers
from konverge.operators.nacos.server.model import PORT, Identity, Member, NacosError, Reason, join
from konverge.wire import BodyTooLarge, ClientLimits, ConnectionPool, Headers, ProtocolError, Request, Response

Question = Literal["nodes", "login", "admin", "raft"]
_PATHS: dict[Question, dict[str, str]] = {
    "nodes": {
        "v1": "/nacos/v1/core/cluster/nodes",
        "v2": "/nacos/v2/core/cluster/node/list",
        "v3": "/nacos/v3/admin/core/cluster/node/list",
    },
    "login": {"v1": "/nacos/v1/auth/login", "v3": "/nacos/v3/auth/user/login"},
    "admin": {"v1": "/nacos/v1/auth/users/admin", "v3": "/nacos/v3/auth/user/admin"},
    "raft": {"v1": "/nacos/v1/core/ops/raft", "v3": "/nacos/v3/admin/core/ops/raft"},
}
"""By question and version of the API, in the order of the attempts."""
ABSENT = frozenset((404, 405, 410, 501))
"""HTTP statuses of servers that do not have a path: 410 for an older API, 404 and 501 for one they never had."""
CONCURRENT = 64
"""Connections at once, over all servers."""
REMEMBERED = 8192
"""Servers and questions whose API is remembered."""
_HOST = re.compile(r"[0-9A-Za-z._-]{1,253}|[0-9A-Fa-f:.]{2,45}(%[0-9A-Za-z]{1,16})?")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,4096}")


class Connection(Protocol):
    """A transport that is closed after use."""

    async def send(self, request: Request) -> Response: ...

    async def aclose(self) -> None: ...


Connect = Callable[[str, int], Connection]
"""Opens the transport to an address and a port."""


def over_sockets(address: str, port: int) -> Connection:
    limits = ClientLimits(connections=1, body=answers.MAX_BODY, head=64 << 10, header_fields=100, idle=1.0)
    return ConnectionPool(f"http://{join(address, port)}", limits=limits, gzip=False)


class HttpNacosServers:
    """Each call is about one server. All raise NacosError, and none takes longer than its timeout (seconds)."""

    def __init__(self, connect: Connect = over_sockets, *, concurrent: int = CONCURRENT) -> None:
        self._connect = connect
        self._slots = asyncio.Semaphore(concurrent)
        self._known: OrderedDict[tuple[str, Question], str] = OrderedDict()
        """The version of the API by server and question."""

    # --- questions ------------------------------------------------------------------------------------------------

    async def nodes(
        self, address: str, *, port: int = PORT, identity: Identity | None = None, timeout: float = 5.0
    ) -> tuple[Member, ...]:
        """The members as this server lists them."""
        headers = request_headers(identity)
        answer = await self._ask(address, port, timeout, "nodes", lambda path: Request("GET", path, headers))
        with _about(address, port):
            _must_be_good(answer, identity)
            return answers.members(answer.body)

    async def login(
        self, address: str, *, port: int = PORT, username: str, password: str, timeout: float = 5.0
    ) -> bool:
        """Whether this password is accepted. Servers reread their users every 15 s: ask again after a change."""
        form = {"username": username, "password": password}
        answer = await self._ask(address, port, timeout, "login", lambda path: _post(path, form))
        # An unknown user is a 500 in 2.4 and a wrong password a 500 in 3.0: no status identifies a refusal.
        return answer.status == 200 and answers.has_token(answer.body)

    async def bootstrap_admin(self, address: str, *, port: int = PORT, password: str, timeout: float = 5.0) -> bool:
        """Create the first administrator, `nacos` (2.4 and later). False: there is one already."""
        form = {"password": password}
        answer = await self._ask(address, port, timeout, "admin", lambda path: _post(path, form))
        code = answers.code(answer.body)
        if 409 in (answer.status, code):
            return False
        if answer.status == 200 and code in (None, *answers.GOOD):
            return True
        # The server's text is not repeated: it may hold the password.
        message = f"{join(address, port)}: the administrator was not created (HTTP {answer.status}); is there a leader?"
        raise NacosError("ServerError", message)

    async def remove_peer(
        self, address: str, *, port: int = PORT, peer: str, identity: Identity | None = None, timeout: float = 5.0
    ) -> None:
        """Remove a server that left from all raft groups: by its raft address, as in `Verdict.surplus`.

        Needed after a cluster shrank: its groups keep counting the server, whatever the servers' lists say (seen on a
        real 2.1.1). It takes a leader in every group: ask again when it fails, which does no harm.
        """
        headers = request_headers(identity)
        headers.add("content-type", "application/json")
        body = msgspec.json.encode({"command": "removePeer", "value": peer})
        answer = await self._ask(address, port, timeout, "raft", lambda path: Request("POST", path, headers, body))
        with _about(address, port):
            _must_be_good(answer, identity)
            if answers.code(answer.body) not in answers.GOOD:
                reason = answers.error_message(answer.body) or "no reason given"
                raise NacosError("ServerError", f"{peer} was not removed from the raft groups: {reason}")

    # --- connections ----------------------------------------------------------------------------------------------

    async def _ask(
        self, address: str, port: int, timeout: float, question: Question, make: Callable[[str], Request]
    ) -> Response:
        """One question in the first version of the API that the server has."""

        async def ask(connection: Connection) -> Response:
            return await self._first_known(connection, join(address, port), question, make)

        return await self.exchange(address, port=port, timeout=timeout, ask=ask)

    async def exchange(
        self, address: str, *, port: int = PORT, timeout: float = 5.0, ask: Callable[[Connection], Awaitable[Response]]
    ) -> Response:
        """Requests on a connection of their own; errors of the wire become NacosErrors."""
        server = join(address, port)
        try:
            async with asyncio.timeout(timeout), self._slots, aclosing(self._connected(address, port)) as connection:
                return await ask(connection)
        except TimeoutError as error:
            raise NacosError("Timeout", f"{server} did not answer within {timeout:g} s") from error
        except (BodyTooLarge, ProtocolError) as error:
            raise NacosError("BadAnswer", f"{server}: {answers.excerpt(str(error))}") from error
        except OSError as error:
            raise NacosError("Unreachable", f"{server}: {answers.excerpt(str(error))}") from error

    def _connected(self, address: str, port: int) -> Connection:
        if not _HOST.fullmatch(address):
            raise NacosError("Unreachable", f"{address[:64]!r} is not the address of a server")
        return self._connect(address, port)

    async def _first_known(
        self, connection: Connection, server: str, question: Question, make: Callable[[str], Request]
    ) -> Response:
        """The answer of the first API that the server has, the remembered one first."""
        known = self._known.get((server, question)) or self._known.get((server, "nodes"))
        paths, status = _PATHS[question], 0
        order = sorted(paths, key=lambda version: version != known)
        for version in order:
            answer = await connection.send(make(paths[version]))
            status = answer.status
            if status not in ABSENT:
                self._remember(server, question, version)
                return answer
        self._known.pop((server, question), None)
        tried = ", ".join(paths[version] for version in order)
        raise NacosError("Gone", f"{server} has none of {tried} (HTTP {status}); is it a Nacos server from 2.0 to 3.x?")

    def _remember(self, server: str, question: Question, version: str) -> None:
        self._known[server, question] = version
        self._known.move_to_end((server, question))
        while len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def request_headers(identity: Identity | None) -> Headers:
    headers = Headers.of({"accept": "application/json, text/plain", "user-agent": "konverge"})
    if identity is not None:
        if not _HEADER_NAME.fullmatch(identity.key) or not _HEADER_VALUE.fullmatch(identity.value):
            raise NacosError("Forbidden", "the identity cannot be sent as an HTTP header; correct its Secret")
        headers.add(identity.key, identity.value)
    return headers


def _post(path: str, form: dict[str, str]) -> Request:
    headers = request_headers(None)
    headers.add("content-type", "application/x-www-form-urlencoded")
    return Request("POST", path, headers, urlencode(form).encode())


@contextmanager
def _about(address: str, port: int) -> Iterator[None]:
    """Errors about an answer name the server that gave it."""
    try:
        yield
    except NacosError as error:
        raise NacosError(error.reason, f"{join(address, port)}: {error.message}") from error.__cause__


def _must_be_good(answer: Response, identity: Identity | None) -> None:
    if answer.status == 200:
        return
    text = answers.error_message(answer.body)
    if identity is not None and identity.value:
        text = text.replace(identity.value, "…")
    if answer.status in (401, 403):
        advice = "check the identity in its Secret" if identity else "it requires an identity: set identitySecretRef"
        raise NacosError("Forbidden", f"refused (HTTP {answer.status} {text!r}); {advice}")
    reason: Reason = "ServerError" if answer.status >= 500 else "BadAnswer"
    raise NacosError(reason, f"HTTP {answer.status} {text!r}; see the log of the server")
