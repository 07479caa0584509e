"""`Console`: one handler in front of the front end's files, the console's own API and the proxy; and its server.

This is the boundary where problems become answers, and where requests of foreign pages end. A browser sends the cookie
of a session with every request to this host, whichever page makes it, also one on another port of the same machine. So
requests that a browser marks as those of another origin are refused, writes need a header that other origins cannot
send, and WebSockets are only opened for our own.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec

from konverge.client import ClientError
from konverge.console import static_files
from konverge.console.answers import POLICY, guarded, json_answer, problem_of, refusal
from konverge.console.call import Call
from konverge.console.listening import listening
from konverge.console.load.watching import Load, LoadAnswers
from konverge.console.overview import overview
from konverge.console.pages import Page
from konverge.console.proxy import PREFIX, Proxy
from konverge.console.sessions import Owner, Session, Sessions, user_of
from konverge.console.simulation import FAULTS, Simulation, Simulator
from konverge.console.story.telling import Teller
from konverge.console.tree import tree, why
from konverge.service.problems import Problem
from konverge.service.sign_in import CODES, SignIn
from konverge.wire.errors import WireError
from konverge.wire.message import Handler, Request, Response, UpgradingTransport

log = logging.getLogger("konverge.console")

ROOT = "/console/v1/"
HEADER = "x-konverge-console"
_SAFE = frozenset(("GET", "HEAD"))
_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
Answerer = Callable[[Call], Awaitable[Response]]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What the console says of the cluster that it shows."""

    cluster: str = ""
    context: str = ""
    server: str = ""
    simulated: bool = False


class Console:
    """The console over a transport to an API server. The transport must have no credentials of its own.

    console = Console(Reconnecting(own_nothing(load_config())))
    async with console.serving("127.0.0.1", 8083) as (host, port): ...
    """

    def __init__(
        self,
        transport: UpgradingTransport,
        *,
        about: About | None = None,
        owner: Owner | None = None,
        sign_in: SignIn | None = None,
        service: Handler | None = None,
        pages: Sequence[Page] = (),
        teller: Teller | None = None,
        simulation: Simulation | None = None,
        load: Load | None = None,
        secure: bool = False,
        anywhere: bool = False,
        stateless: bool = False,
    ) -> None:
        """`owner` has credentials that are no token; with `sign_in`, links with a code sign browsers in; `service`
        answers what the console does not, such as `/api/` and `/docs`; `teller` knows a history; `simulation` is what
        is behind the cluster; `load` is how busy it is, where it is in this process; `secure`: browsers reach it by
        https; `anywhere`: under other names than those of this machine; `stateless`: several replicas answer.
        """
        self.about = about or About()
        self.sessions = Sessions(transport, owner, secure=secure, stateless=stateless)
        self._sign_in = sign_in
        self._service = service
        self.pages = list(pages)
        """Operators' own pages; they may be replaced while it serves."""
        self._anywhere = anywhere
        self._simulator = Simulator(simulation) if simulation is not None else None
        self._proxy = Proxy(self._simulator.recording if self._simulator is not None else None)
        self._teller = teller or Teller()
        self._answers: dict[tuple[str, str], Answerer] = {
            ("GET", "session"): self._session,
            ("GET", "overview"): overview,
            ("GET", "tree"): self._tree,
            ("GET", "why"): why,
            ("GET", "story"): self._teller.story,
            ("GET", "story/stream"): self._teller.stream,
            ("GET", "pages"): self._own_pages,
            ("GET", "load"): LoadAnswers(load).answer,
            **(self._simulator.answers() if self._simulator is not None else {}),
        }

    @asynccontextmanager
    async def serving(
        self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None
    ) -> AsyncIterator[tuple[str, int]]:
        """Listen inside the block, which gets the address."""
        async with listening(self.handle, host, port, tls=tls) as address:
            yield address

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        path = request.target.partition("?")[0]
        try:
            self._check_host(request)
            response = await self._answer(request, path)
        except (Problem, ClientError, WireError) as error:
            response = refusal(problem_of(error))
        except ExceptionGroup as group:  # of questions that were asked at the same time
            response = refusal(problem_of(_first(group)))
        log.debug("%s %s %d", request.method, path, response.status)
        return guarded(response)

    async def _answer(self, request: Request, path: str) -> Response:
        if path.startswith(f"{PREFIX}/"):
            self._check_origin(request)
            return await self._proxy.answer(request, self.sessions.find(request))
        if path == f"{ROOT}session" and request.method in ("POST", "DELETE"):
            self._check_origin(request)
            return await self._sign(request)
        if path.startswith(ROOT):
            self._check_origin(request)
            return await self._call(request, path.removeprefix(ROOT))
        if path == CODES and self._sign_in is not None:
            return self._sign_in.answer(request)
        if request.method in _SAFE and (file := static_files.static(request, path)) is not None:
            return guarded(file, POLICY)
        if self._service is not None:
            return await self._service(request)
        raise Problem(404, "there is no such page", reason="NotFound")

    async def _call(self, request: Request, name: str) -> Response:
        if self._simulator is not None and request.method == "POST" and name.startswith(FAULTS):
            call = Call(request, self.sessions.find(request))
            return await self._simulator.inflict(call, name.removeprefix(FAULTS))
        answerer = self._answers.get((request.method.replace("HEAD", "GET"), name))
        if answerer is None:
            allowed = ", ".join(method for method, known in self._answers if known == name)
            if allowed:
                raise Problem(405, f"this path allows {allowed}", headers={"Allow": allowed})
            raise Problem(404, "there is no such path", reason="NotFound")
        return await answerer(Call(request, self.sessions.find(request)))

    # -------------------------------------------------------------- who asks

    def _check_host(self, request: Request) -> None:
        """A page of another name that leads to this machine (DNS rebinding) is a foreign page."""
        if self._anywhere:
            return
        host = _name(request.headers.get("host"))
        if host not in _LOOPBACK and not host.endswith(".localhost") and host != "":
            raise Problem(421, f"this console is not called {host}; open the link that it printed")

    def _check_origin(self, request: Request) -> None:
        """Refuse what a page of another origin asks for."""
        headers = request.headers
        origin = headers.get("origin")
        if origin and urlsplit(origin).netloc.lower() != headers.get("host").lower():
            raise Problem(403, "requests from pages of another origin are refused", reason="Forbidden")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Problem(403, "requests from pages of another origin are refused", reason="Forbidden")
        by_token = "authorization" in headers
        if headers.get("upgrade") and not origin and not by_token:
            raise Problem(403, "a WebSocket needs the header Origin, or a token", reason="Forbidden")
        if request.method not in _SAFE and headers.get(HEADER) != "1" and not by_token:
            raise Problem(403, "send the header X-Konverge-Console: 1 with every write", reason="Forbidden")

    async def _sign(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.sessions.end(request)
            return json_answer({"signedOut": True}, set_cookie=self.sessions.clear_cookie())
        try:
            given = msgspec.json.decode(request.body, type=_Given)
        except msgspec.DecodeError as error:
            raise Problem(400, 'send {"token": "…"} or {"code": "…"}') from error
        token = given.token
        if given.code and self._sign_in is not None:
            token = self._sign_in.exchange(given.code)
        session = await self.sessions.begin(token)
        answer = await self._session(Call(request, session))
        answer.headers.add("Set-Cookie", self.sessions.set_cookie(session))
        return answer

    async def _session(self, call: Call) -> Response:
        from importlib.metadata import version  # slow to import, and asked for once per page

        session: Session = call.session
        known = {
            "user": await user_of(session),
            "cluster": self.about.cluster,
            "context": self.about.context,
            "server": self.about.server,
            "simulated": self.about.simulated,
            "version": version("konverge"),
            "pages": self.pages,
        }
        return json_answer(known)

    async def _tree(self, call: Call) -> Response:
        return await tree(call, self._teller.revisions)

    async def _own_pages(self, call: Call) -> Response:
        return json_answer(self.pages)


class _Given(msgspec.Struct):
    token: str = ""
    code: str = ""


def _name(host: str) -> str:
    """
    >>> _name("127.0.0.1:80"), _name("[::1]:80"), _name("Example.com")
    ('127.0.0.1', '::1', 'example.com')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


def _first(group: ExceptionGroup[Exception]) -> Problem | ClientError | WireError:
    """The first refusal in a group. Raises the group if there is another error in it: that is a defect of ours."""
    error: Exception = group
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if not isinstance(error, Problem | ClientError | WireError):
        raise group
    return error
