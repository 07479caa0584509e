"""`/k8s/*`: the Kubernetes API as the caller sees it with kubectl, byte by byte, with the caller's own credentials.

What goes in either direction is chosen by lists of header fields, so that nothing else can be smuggled: no cookie, no
impersonation, no hop-by-hop field. Answers are streamed, whatever they are: a watch, a log, a large list.

Objects, logs and aggregated API servers may contain anything. Only media types that no browser takes for a page or a
script are passed on as they are; all others become plain bytes.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from urllib.parse import unquote

from konverge.client.credentials import Credential
from konverge.console.bounds import Bound
from konverge.console.messages import Ended, in_messages, lines
from konverge.console.recording import Recording
from konverge.console.sessions import AGENT, Identity, Session
from konverge.service.problems import Problem
from konverge.wire import websocket
from konverge.wire.message import Headers, Request, Response, Stream
from konverge.wire.reverse_proxy import streamed, without_body

PREFIX = "/k8s"
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
STREAMS = 128
"""Answers of one caller that may be under way at a time: each may be a watch that never ends."""
_ASKED = ("accept", "content-type", "if-match", "if-none-match")
_UPGRADED = (
    "upgrade",
    "connection",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-protocol",
)
_ANSWERED = frozenset(("etag", "warning", "audit-id", "retry-after", "last-modified", "cache-control", "allow"))
_HARMLESS = re.compile(
    r"application/(json|yaml|apply-patch\+yaml|vnd\.kubernetes\.protobuf|com\.github\.proto-openapi\.\S+"
    r"|[a-z.+-]+\+json)|text/plain"
)
_OCTETS = "application/octet-stream"
_TUNNELS = frozenset(("exec", "attach", "portforward"))
_PLAIN_TARGET = re.compile(r"[!-~]*")


class Proxy:
    """The proxy of one console; `recording` notes what is written."""

    def __init__(self, recording: Recording | None = None) -> None:
        self._recording = recording
        self._bound = Bound(STREAMS, "requests")

    async def answer(self, request: Request, session: Session) -> Response:
        """The API server's answer. Raises Problem and WireError."""
        target = target_of(request)
        if request.method not in METHODS:
            raise Problem(405, "the Kubernetes API knows GET, POST, PUT, PATCH and DELETE", reason="MethodNotAllowed")
        if not websocket.is_asked_for(request):
            return await self._recorded(request, session, target)
        if target.partition("?")[0].rpartition("/")[2] in _TUNNELS:
            return await _tunnelled(request, session.identity, target)
        return await self._in_messages(request, session, target)

    async def _recorded(self, request: Request, session: Session, target: str) -> Response:
        recording = self._recording
        if recording is None or not recording.active or request.method in ("GET", "HEAD"):
            return await self._streamed(request, session, target)
        write = Request(request.method, target, request.headers, request.body)
        await recording.before(write, session.client)
        response = await self._streamed(request, session, target)
        if response.status < 300:
            await recording.after(write, session.client)
        return response

    async def _streamed(self, request: Request, session: Session, target: str) -> Response:
        count = self._bound.enter(session)
        try:
            stream = await _open(request, session.identity, target)
            headers = _answer_headers(stream.headers)
            whole = await without_body(request, stream, headers)
        except BaseException:
            count.leave()
            raise
        if whole is not None:
            count.leave()
            return whole

        async def closed() -> None:
            count.leave()

        return streamed(stream, headers, closed)

    async def _in_messages(self, request: Request, session: Session, target: str) -> Response:
        """A stream as a WebSocket, since browsers open few connections and many WebSockets: a watch event each."""
        inner = Request("GET", target, _chosen(request.headers))
        is_watch = "watch=" in target.partition("?")[2]

        @asynccontextmanager
        async def pieces() -> AsyncIterator[AsyncIterator[bytes]]:
            with self._bound.enter(session):
                async with aclosing(await _open(inner, session.identity, target)) as stream:
                    if stream.status >= 300:
                        raise Ended(stream.status, await stream.read())
                    yield lines(stream) if is_watch else aiter(stream)

        return in_messages(request, pieces)


def target_of(request: Request) -> str:
    """The target at the API server. Raises a problem for one that another server might read in another way.

    >>> target_of(Request("GET", "/k8s/api/v1/pods?watch=true"))
    '/api/v1/pods?watch=true'
    """
    target = request.target.removeprefix(PREFIX)
    path = target.partition("?")[0]
    segments = unquote(path).split("/")
    if (
        not _PLAIN_TARGET.fullmatch(target)
        or not path.startswith("/")
        or "\\" in unquote(path)
        or "#" in target
        or any(segment in (".", "..") for segment in segments)
        or "" in segments[1:-1]
    ):
        raise Problem(400, "this is no path of the Kubernetes API", reason="BadRequest")
    if _is_page(segments[1:]):
        raise Problem(
            403, "the console does not show pages of other programs; use `kubectl port-forward`", reason="Forbidden"
        )
    return target


def _is_page(segments: list[str]) -> bool:
    """Whether another program answers at a path, under our own origin: `…/services/NAME/proxy/…`."""
    if segments[:1] != ["api"]:
        return False
    rest = segments[4:] if segments[2:3] == ["namespaces"] and len(segments) > 4 else segments[2:]
    return rest[2:3] == ["proxy"] or segments[2:3] == ["proxy"]


async def _open(request: Request, identity: Identity, target: str) -> Stream:
    """The answer, once more with another credential where the first was refused: nothing has happened then."""
    credential = identity.credentials.current() or await identity.credentials.renew()
    stream = await identity.transport.stream(_outgoing(request, identity, credential, target))
    if stream.status != 401:
        return stream
    renewed = await identity.credentials.renew(credential)
    if renewed is credential:
        return stream
    await stream.aclose()
    return await identity.transport.stream(_outgoing(request, identity, renewed, target))


def _outgoing(request: Request, identity: Identity, credential: Credential, target: str) -> Request:
    headers = _chosen(request.headers)
    headers.add("user-agent", AGENT)
    if credential.authorization:
        headers.add("authorization", credential.authorization)
    for name, text in identity.impersonate.headers() if identity.impersonate else ():
        headers.add(name, text.encode().decode("latin-1"))
    return Request(request.method, target, headers, request.body)


def _chosen(headers: Headers, names: tuple[str, ...] = _ASKED) -> Headers:
    return Headers.of({name: headers.get(name) for name in names if name in headers})


def _answer_headers(headers: Headers) -> Headers:
    chosen = Headers()
    for name, text in headers:
        if name in _ANSWERED or name.startswith("x-kubernetes-pf-"):
            chosen.add(name, text)
    media = headers.get("content-type")
    if media:
        chosen.add("content-type", media if _HARMLESS.fullmatch(media.partition(";")[0].strip().lower()) else _OCTETS)
    return chosen


async def _tunnelled(request: Request, identity: Identity, target: str) -> Response:
    """A WebSocket to a container: both directions as they are."""
    credential = identity.credentials.current() or await identity.credentials.renew()
    outgoing = _outgoing(request, identity, credential, target)
    for name, text in _chosen(request.headers, _UPGRADED):
        if name == "sec-websocket-protocol":
            # A token may be offered as a subprotocol: here only the session says who asks.
            text = ", ".join(name for name in websocket.offered(request) if "bearer" not in name.lower())
        outgoing.headers.add(name, "Upgrade" if name == "connection" else text)
    response = await identity.transport.upgrade(outgoing)
    if response.upgrade is None:
        return Response(response.status, _answer_headers(response.headers), response.body)
    names = ("upgrade", "sec-websocket-accept", "sec-websocket-protocol")
    return Response(101, _chosen(response.headers, names), upgrade=response.upgrade)
