"""Who asks: sessions of browsers by a cookie, programs by their bearer token, and a client that acts as the caller.

A session keeps the caller's token here, in memory; the browser has a random id in a cookie, which no script of a page
can read. Where several replicas answer (`stateless`), the cookie is the token itself: then nothing is kept, and a host
name of the console's own and https protect it. The console has no rights of its own that a request could borrow: see
`konverge.service.access`.

`konverge console` serves one person with the credentials of a kubeconfig, which may be a certificate. For that a key
made at the start stands in for the token: who has the key (by the link that is printed) acts as the kubeconfig says.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from konverge import clock
from konverge.client import Client, Credentials, NotFound, Static
from konverge.client.call import JSON, Call
from konverge.client.config import Impersonation
from konverge.client.retry import RetryPolicy
from konverge.client.warnings import ServerWarning
from konverge.objects.codec import from_json, to_json
from konverge.service import access
from konverge.service.problems import Problem
from konverge.wire.message import Headers, Request, UpgradingTransport

AGENT = "konverge-console"
LIFE = 12 * 3600.0
"""Seconds without a request after which a session ends."""
MOST = 1000
"""Sessions that are kept at a time; the one that was used longest ago goes first."""
COOKIE = 3800
"""Characters of a token in a cookie: browsers keep 4096 bytes of one."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]{1,3800}")
_RETRIES = RetryPolicy(retries=2, budget=3.0)
"""Few: a person waits for the answer, and can repeat the request."""


@dataclass(frozen=True)
class Identity:
    """As whom, and through which transport, requests reach the API server."""

    transport: UpgradingTransport
    credentials: Credentials
    impersonate: Impersonation | None = None

    @cached_property
    def client(self) -> Client:
        """It owns nothing, so it need not be closed."""
        return Client(
            self.transport,
            credentials=self.credentials,
            impersonate=self.impersonate,
            retry=_RETRIES,
            user_agent=AGENT,
            on_warning=_ignore,
        )


def _ignore(warning: ServerWarning) -> None:
    """Warnings belong to the caller's request, not to the log of the console."""


@dataclass(eq=False)
class Session:
    """One caller: a browser that signed in, or a program."""

    identity: Identity
    user: str = ""
    id: str = ""
    used: float = 0.0
    kept: dict[str, Any] = field(default_factory=dict)
    """What the parts of the console keep for this caller, by their name. It ends with the session."""

    @property
    def client(self) -> Client:
        return self.identity.client


@dataclass(frozen=True)
class Owner:
    """The key that stands in for credentials which are no token, and whose they are."""

    identity: Identity
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)


class Sessions:
    """All sessions, in memory.

    sessions = Sessions(transport)
    session = await sessions.begin(token)
    sessions.find(request)
    """

    def __init__(
        self,
        transport: UpgradingTransport,
        owner: Owner | None = None,
        *,
        secure: bool = False,
        stateless: bool = False,
    ) -> None:
        """`transport` must have no credentials of its own; `secure` is for consoles that are reached by https."""
        self._transport = transport
        self._stateless = stateless
        self._owner = owner
        self._secure = secure
        self._sessions: OrderedDict[str, Session] = OrderedDict()
        self._programs: OrderedDict[bytes, Session] = OrderedDict()
        # Cookies do not know ports: two consoles on one machine must not overwrite each other's; replicas have to.
        own = "" if stateless else f"-{secrets.token_hex(4)}"
        self.cookie = f"{'__Host-' if secure else ''}konverge-console{own}"

    def __len__(self) -> int:
        return len(self._sessions)

    def identity_of(self, token: str) -> Identity:
        owner = self._owner
        if owner is not None and hmac.compare_digest(owner.key.encode(), token.encode()):
            return owner.identity
        return Identity(self._transport, Static.bearer(token))

    async def begin(self, token: str) -> Session:
        """Sign in. Raises a problem or a ClientError when the cluster does not accept the token."""
        headers = Headers.of({"authorization": f"Bearer {token}"}) if token.isascii() else Headers()
        identity = self.identity_of(access.bearer(headers))
        session = Session(identity, await _user(identity.client), secrets.token_urlsafe(32), clock.monotonic())
        if self._stateless:
            if len(token) > COOKIE:
                raise Problem(400, "this token is too long for a cookie; ask for one with fewer claims")
            session.id = token
            return session
        while len(self._sessions) >= MOST:
            self._sessions.popitem(last=False)
        self._sessions[session.id] = session
        return session

    def end(self, request: Request) -> None:
        self._sessions.pop(self._id(request), None)

    def find(self, request: Request) -> Session:
        """Whose request it is. Raises a 401."""
        if "authorization" in request.headers:
            return self._program(access.bearer(request.headers))
        if self._stateless and _TOKEN.fullmatch(self._id(request)):
            return self._program(self._id(request))
        session = self._sessions.get(self._id(request))
        now = clock.monotonic()
        if session is None or now - session.used > LIFE:
            self._sessions.pop(session.id if session else "", None)
            raise Problem(401, "you are not signed in; open the link that `konverge console` prints", reason=_NO)
        session.used = now
        self._sessions.move_to_end(session.id)
        return session

    def set_cookie(self, session: Session) -> str:
        """The value of Set-Cookie for a new session."""
        return f"{self.cookie}={session.id}; {self._attributes}"

    def clear_cookie(self) -> str:
        return f"{self.cookie}=; Max-Age=0; {self._attributes}"

    @property
    def _attributes(self) -> str:
        return f"Path=/; HttpOnly; SameSite=Strict{'; Secure' if self._secure else ''}"

    def _id(self, request: Request) -> str:
        for line in request.headers.get_all("cookie"):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.cookie:
                    return value
        return ""

    def _program(self, token: str) -> Session:
        """Programs send their token each time; what was discovered for it is kept, the token's digest is its name."""
        digest = hashlib.sha256(token.encode()).digest()
        session = self._programs.get(digest)
        if session is None:
            while len(self._programs) >= MOST:
                self._programs.popitem(last=False)
            session = self._programs[digest] = Session(self.identity_of(token))
        self._programs.move_to_end(digest)
        return session


_NO = "Unauthorized"


async def _user(client: Client) -> str:
    """Who the cluster says it is. Raises Unauthorized."""
    body = to_json({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    try:
        response = await client.caller.call(Call("create", None, path=path, body=body, content_type=JSON))
    except NotFound:  # before Kubernetes 1.28; a token that is not accepted is refused there as well
        return ""
    info = from_json(dict[str, Any], response.body).get("status", {}).get("userInfo", {})
    return str(info.get("username", ""))


async def user_of(session: Session) -> str:
    """The name of the caller, asked for once."""
    if not session.user:
        session.user = await _user(session.client)
    return session.user
