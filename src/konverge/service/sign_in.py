"""Links that sign a browser in, each of them once.

A link has a code in its fragment, which browsers never send; the page exchanges it for a session of the token that it
stands for. So no token is typed, and none is in an address, a history, a log or a page.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

import msgspec

from konverge import clock
from konverge.service.access import bearer
from konverge.service.problems import Problem
from konverge.wire.message import Headers, Request, Response

CODES = "/sign-in/codes"
VALID = 600.0
"""Seconds for which a code that was asked for can be used."""
MOST = 100
"""Codes that are kept at a time; the oldest go first."""


class SignIn:
    """Codes and the tokens that they stand for, in memory."""

    def __init__(self) -> None:
        self._tokens: dict[str, tuple[str, float | None]] = {}

    def code(self, token: str, *, seconds: float | None = VALID) -> str:
        """A code for a token, to be used once; with `seconds=None` whenever that is."""
        while len(self._tokens) >= MOST:
            del self._tokens[next(iter(self._tokens))]
        code = secrets.token_urlsafe(24)
        self._tokens[code] = (token, None if seconds is None else clock.now() + seconds)
        return code

    def exchange(self, code: str) -> str:
        """The token; the code is used up. Raises a 403 for one that was used, has expired or never was."""
        known = next((kept for kept in self._tokens if hmac.compare_digest(kept.encode(), code.encode())), None)
        token, until = self._tokens.pop(known) if known is not None else ("", 0.0)
        if known is None or (until is not None and until < clock.now()):
            raise Problem(
                403, "this link was used, or is too old; `konverge console` makes another", reason="Forbidden"
            )
        return token

    def answer(self, request: Request) -> Response:
        """A new code for whoever has a token. Raises Problem."""
        if request.method != "POST":
            raise Problem(405, "only POST is answered here", headers={"Allow": "POST"})
        return _json(201, {"code": self.code(bearer(request.headers))})


def link(url: str, code: str) -> str:
    """
    >>> link("http://127.0.0.1:8082", "abc")
    'http://127.0.0.1:8082/#sign-in=abc'
    """
    return f"{url}/#sign-in={code}"


def _json(status: int, body: Any) -> Response:
    return Response(status, Headers.of({"Content-Type": "application/json"}), msgspec.json.encode(body))
