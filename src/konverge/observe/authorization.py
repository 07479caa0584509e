"""Who may read metrics and debug pages: the API server is asked, by TokenReview and SubjectAccessReview.

A caller needs a bearer token and the right to `get` the path, such as by this rule:

    {nonResourceURLs: [/metrics], verbs: [get]}

Answers are remembered for as long as controller-runtime remembers them; of a token, only its digest is. A failed review
is not remembered, and refuses the request.

Upstream: WithAuthenticationAndAuthorization (controller-runtime's pkg/metrics/filters).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from konverge import clock
from konverge.client import Client, ClientError
from konverge.objects.resource import Resource
from konverge.wire.message import Headers, Request, Response

# Upstream: DelegatingAuthenticatorConfig.CacheTTL, DelegatingAuthorizerConfig.AllowCacheTTL and DenyCacheTTL.
USER_FOR = 60.0
ALLOWED_FOR = 300.0
DENIED_FOR = 30.0
"""Seconds for which an answer holds."""
REVIEW_TIMEOUT = 10.0
REVIEWS_AT_ONCE = 4
"""A flood of bad tokens is not passed on to the API server."""
MAX_REMEMBERED = 1_000

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False)

User = dict[str, Any]
V = TypeVar("V")

_log = logging.getLogger("konverge.authorization")


class _Remembered(Generic[V]):
    """Answers with the time until which they hold; the oldest go first."""

    def __init__(self) -> None:
        self._answers: dict[object, tuple[float, V]] = {}

    def get(self, key: object) -> tuple[V] | None:
        until, value = self._answers.get(key, (0.0, None))
        return (value,) if value is not None and clock.monotonic() < until else None

    def put(self, key: object, value: V, seconds: float) -> V:
        self._answers.pop(key, None)
        while len(self._answers) >= MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = clock.monotonic() + seconds, value
        return value


class Authorizer:
    """Asks the API server about callers.

    refusal = await Authorizer(client).refusal(request)
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._users: _Remembered[User] = _Remembered()
        """Digest of a token -> its user, or an empty one where it is refused."""
        self._decisions: _Remembered[bool] = _Remembered()
        self._room = asyncio.Semaphore(REVIEWS_AT_ONCE)

    async def refusal(self, request: Request) -> Response | None:
        """The answer to a caller that may not; None to one that may."""
        token = bearer_token(request.headers)
        if not token:
            return unauthorized()
        try:
            user = await self._user(token)
            if not user:
                return unauthorized()
            path = urlsplit(request.target).path
            if await self._is_allowed(user, "get" if request.method == "HEAD" else request.method.lower(), path):
                return None
        except (ClientError, TimeoutError) as error:
            _log.warning("a caller cannot be authorised: %s", str(error) or "the API server has not answered in time")
            return _text(500, "authorisation failed: the API server cannot be asked")
        return _text(403, f"{user.get('username', '')} may not {request.method.lower()} {path}")

    async def _user(self, token: str) -> User:
        digest = hashlib.sha256(token.encode()).digest()
        known = self._users.get(digest)
        if known is not None:
            return known[0]
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        accepted = status.get("authenticated") is True
        return self._users.put(digest, dict(status.get("user") or {}) if accepted else {}, USER_FOR)

    async def _is_allowed(self, user: User, verb: str, path: str) -> bool:
        extra = user.get("extra") or {}
        who = (user.get("username"), user.get("uid"), tuple(user.get("groups") or ()), repr(sorted(extra.items())))
        key = (who, verb, path)
        known = self._decisions.get(key)
        if known is not None:
            return known[0]
        spec = {
            "user": user.get("username", ""),
            "uid": user.get("uid", ""),
            "groups": user.get("groups") or [],
            "extra": extra,
            "nonResourceAttributes": {"path": path, "verb": verb},
        }
        status = await self._review(ACCESS_REVIEWS, spec)
        allowed = status.get("allowed") is True and status.get("denied") is not True
        return self._decisions.put(key, allowed, ALLOWED_FOR if allowed else DENIED_FOR)

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        review = {"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec}
        async with asyncio.timeout(REVIEW_TIMEOUT), self._room:
            answer = await self._client.create(review, resource=resource)
        return dict(answer.get("status") or {})


def bearer_token(headers: Headers) -> str:
    """
    >>> bearer_token(Headers.of({"Authorization": "Bearer abc"}))
    'abc'
    """
    scheme, _, token = headers.get("authorization").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def unauthorized() -> Response:
    return _text(401, "a bearer token of the cluster is needed", {"WWW-Authenticate": "Bearer"})


def _text(status: int, text: str, more: dict[str, str] | None = None) -> Response:
    fields = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", **(more or {})}
    return Response(status, Headers.of(fields), f"{text}\n".encode())
