"""Errors: a request of the operator is answered as an API server in trouble answers it.

`conflict`, `error`, `unavailable`, `throttled` and `timeout` have no effect; `lost` is a write that took effect and
whose answer is a timeout, which is as legal: a 504 says nothing about the effect.
"""

from __future__ import annotations

import msgspec

from konverge.apiserver import status
from konverge.check.gate.core import WRITES, Gate, Perturber
from konverge.check.gate.expected import is_alike, is_next
from konverge.check.model import Exchange, Refuse
from konverge.wire.message import Headers, Request, Response

_SECONDS = "1"
"""Retry-After of a server that is too busy."""


def refusal(answer: str, exchange: Exchange) -> Response:
    """The Status that the API server sends. Upstream: apimachinery/pkg/api/errors/errors.go."""
    group, plural = exchange.resource.split("/")[:2] if "/" in exchange.resource else ("", "")
    headers = Headers([(b"content-type", b"application/json")])
    if answer == "throttled":
        headers.add("retry-after", _SECONDS)
    return Response(_CODES[answer], headers, msgspec.json.encode(_error(answer, group, plural, exchange.name).status()))


_CODES = {"conflict": 409, "error": 500, "unavailable": 503, "throttled": 429, "timeout": 504, "lost": 504}


def _error(answer: str, group: str, plural: str, name: str) -> status.ApiError:
    match answer:
        case "conflict":
            return status.conflict(group, plural, name, status.MODIFIED)
        case "throttled":
            details = {"retryAfterSeconds": int(_SECONDS)}
            return status.ApiError(429, "TooManyRequests", "Too many requests, please try again later.", details)
        case "unavailable":
            return status.ApiError(
                503, "ServiceUnavailable", "the server is currently unable to handle the request", {}
            )
        case "timeout" | "lost":
            message = "Timeout: request did not complete within the requested timeout - context deadline exceeded"
            return status.timeout(message, 0)
    message = "Internal error occurred: etcdserver: leader changed"
    return status.ApiError(500, "InternalError", message, {"causes": [{"message": "etcdserver: leader changed"}]})


TROUBLE = 20.0
"""Seconds after which an API server that was in trouble answers again, however few have asked it meanwhile: what looks
at its objects every half minute meets it once."""


class Refusing(Perturber):
    """Refuses the request of a place, so many times in a row, but not for longer than trouble lasts. A place without a
    name is the nth read of its kind."""

    def __init__(self, refuse: Refuse) -> None:
        self._refuse = refuse
        self._left = refuse.times
        self._first = 0.0
        self._reads = 0
        self._gate: Gate | None = None

    def attach(self, gate: Gate) -> None:
        self._gate = gate

    async def before(self, exchange: Exchange, request: Request) -> Response | None:
        if self._is_over or self._refuse.answer == "lost" or not await self._is_it(exchange, request):
            return None
        return self._refused(exchange)

    async def after(self, exchange: Exchange, request: Request, response: Response) -> Response:
        if self._is_over or self._refuse.answer != "lost" or exchange.place != self._refuse.place:
            return response
        return self._refused(exchange)

    @property
    def _is_over(self) -> bool:
        if self.done and self._gate is not None and self._gate.recorder.now() - self._first > TROUBLE:
            self._left = 0
        return self._left <= 0

    async def _is_it(self, exchange: Exchange, request: Request) -> bool:
        place = self._refuse.place
        if exchange.verb in WRITES:
            if self.done:  # the same again
                return is_alike(exchange, place)
            return self._gate is not None and await is_next(self._gate, exchange, request, place)
        if (exchange.verb, exchange.resource) != (place.verb, place.resource) or place.name not in ("", exchange.name):
            return False
        self._reads += 1
        return self._reads >= place.occurrence

    def _refused(self, exchange: Exchange) -> Response:
        self._left -= 1
        if not self.done and self._gate is not None:
            self._first = self._gate.recorder.now()
            self._gate.note(
                f"{self._refuse.place} is answered by {_CODES[self._refuse.answer]} ({self._refuse.answer})"
            )
        self.done = True
        exchange.error, exchange.perturbed = f"{self._refuse.answer}, by the check", True
        return refusal(self._refuse.answer, exchange)
