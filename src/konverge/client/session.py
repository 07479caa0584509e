"""`Session`: the bottom `Caller`. It turns calls into requests and puts the client's manners around the transport.

In the order of one call: rate limit, credential, what the call asks before it is sent, headers, exchange, warnings,
errors, and on failure either a new credential (once, after a 401) or a wait and another try as `RetryPolicy` says. The
good case is a straight line.

Leases have a lane of their own: another transport where there is one, and never the rate limit. A leader that cannot
renew because its own controllers fill the pool loses the leadership for no good reason. Watches of Leases stay outside.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from konverge import clock
from konverge.client.call import METHODS, Call
from konverge.client.config import Impersonation
from konverge.client.credentials import ANONYMOUS, Credential, Credentials
from konverge.client.errors import (
    ApiStatusError,
    ConnectionFailed,
    ConnectionLost,
    NotConnected,
    NotFound,
    TimedOut,
    Unauthorized,
    error_from_answer,
)
from konverge.client.retry import Attempts, RetryPolicy
from konverge.client.warnings import LogOnce, WarningHandler, parse_warnings
from konverge.token_bucket import TokenBucket
from konverge.wire.errors import NotSent, WireError
from konverge.wire.in_process import Direct
from konverge.wire.message import Headers, Request, Response, Stream, Transport

LEASE_GROUP = "coordination.k8s.io"
T = TypeVar("T")


class Session:
    """Calls over a transport. `Client` makes one; wrappers stand on top of it."""

    def __init__(
        self,
        transport: Transport,
        *,
        lease_transport: Transport | None = None,
        credentials: Credentials = ANONYMOUS,
        impersonate: Impersonation | None = None,
        retry: RetryPolicy | None = None,
        rate_limit: TokenBucket | None = None,
        on_warning: WarningHandler | None = None,
        user_agent: str = "konverge",
        server: str = "the API server",
    ) -> None:
        self._transport = transport
        self._lease_transport = lease_transport or transport
        self._credentials = credentials
        self._retry = retry or RetryPolicy()
        self._rate_limit = rate_limit
        self._on_warning = on_warning or LogOnce()
        self._server = server
        acting = impersonate.headers() if impersonate else []
        # Names of users may be in any script; they travel as UTF-8, of which a header takes the bytes one by one.
        self._common = [("user-agent", user_agent), *((name, text.encode().decode("latin-1")) for name, text in acting)]
        self.on_missing_kind: Callable[[], None] = lambda: None
        """Called when a path turns out not to be served: what was discovered is no longer true."""
        self._headers: dict[tuple[str, str], Headers] = {}
        self._headers_of: Credential | None = None

    @property
    def near(self) -> bool:
        return isinstance(self._transport, Direct)

    def call(self, call: Call) -> Coroutine[Any, Any, Response]:
        return self._repeat(call, self._send)

    def stream(self, call: Call) -> Coroutine[Any, Any, Stream]:
        return self._repeat(call, self._open)

    async def _repeat(self, call: Call, exchange: Callable[[Call, Credential], Awaitable[T]]) -> T:
        attempts: Attempts | None = None
        renewed = False
        while True:
            if self._rate_limit is not None and not _is_lease(call):
                await self._rate_limit.take()
            credential = self._credentials.current() or await self._credentials.renew()
            if call.before_send is not None:
                call.before_send()
            try:
                return await exchange(call, credential)
            except (ApiStatusError, ConnectionFailed) as error:
                if isinstance(error, NotFound) and error.kind_missing:
                    self.on_missing_kind()
                if isinstance(error, Unauthorized) and not renewed:
                    renewed = True
                    if await self._credentials.renew(credential) is credential:
                        raise
                    continue
                attempts = attempts or self._retry.begin(reads=not call.writes)
                delay = attempts.delay(error)
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def _send(self, call: Call, credential: Credential) -> Response:
        request = self._request(call, credential)
        lane = self._lease_transport if _is_lease(call) else self._transport
        try:
            response = await lane.send(request)
        except WireError as error:
            raise self._lost(error, request) from error
        self._notice(response.headers)
        if response.status < 300 or response.status == 304:
            return response
        raise _refusal(request, response.status, response.headers, response.body)

    async def _open(self, call: Call, credential: Credential) -> Stream:
        request = self._request(call, credential)
        try:
            # Also of Leases: a few watches would fill their lane for good.
            stream = await self._transport.stream(request)
            self._notice(stream.headers)
            if stream.status < 300:
                return stream
            try:
                body = await stream.read()
            finally:
                await stream.aclose()
        except WireError as error:
            raise self._lost(error, request) from error
        raise _refusal(request, stream.status, stream.headers, body)

    def _request(self, call: Call, credential: Credential) -> Request:
        call.check()
        if credential is not self._headers_of:
            self._headers.clear()
            self._headers_of = credential
        headers = self._headers.get((call.accept, call.content_type))
        if headers is None:
            headers = self._make_headers(call, credential)
        if call.headers:
            headers = Headers([*headers.raw, *Headers.of(dict(call.headers)).raw])
        return Request(METHODS[call.verb], call.target(), headers, call.body, timeout=call.timeout)

    def _make_headers(self, call: Call, credential: Credential) -> Headers:
        headers = Headers()
        for name, value in self._common:
            headers.add(name, value)
        headers.add("accept", call.accept)
        if call.content_type:
            headers.add("content-type", call.content_type)
        if credential.authorization:
            headers.add("authorization", credential.authorization)
        self._headers[call.accept, call.content_type] = headers
        return headers

    def _notice(self, headers: Headers) -> None:
        for name, value in headers.raw:
            if len(name) == 7 and name.lower() == b"warning":
                for warning in parse_warnings(value.decode("utf-8", "replace")):
                    self._on_warning(warning)

    def _lost(self, error: WireError, request: Request) -> ConnectionFailed:
        """The wire's errors, mapped once. The request is named without its query: selectors may be long."""
        what = f"{request.method} {request.target.partition('?')[0]} at {self._server}: {error}"
        if isinstance(error, NotSent):
            return NotConnected(what)
        if isinstance(error, TimeoutError):
            return TimedOut(what)
        return ConnectionLost(what)


def _is_lease(call: Call) -> bool:
    return call.resource is not None and call.resource.group == LEASE_GROUP


def _refusal(request: Request, status: int, headers: Headers, body: bytes) -> ApiStatusError:
    line = f"{request.method} {request.target.partition('?')[0]}"
    return error_from_answer(status, body, request=line, retry_after=_retry_after(headers))


def _retry_after(headers: Headers) -> float | None:
    """The API server says seconds; what stands before it may name a moment."""
    value = headers.get("retry-after").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    return _seconds_until(value) if value else None


def _seconds_until(moment: str) -> float | None:
    from email.utils import parsedate_to_datetime  # costs more to import than this module, and is seldom needed

    try:
        return max(0.0, parsedate_to_datetime(moment).timestamp() - clock.now())
    except (ValueError, OverflowError):
        return None
