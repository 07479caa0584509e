"""Answers of the console: JSON, refusals in one form, and the headers that restrict what browsers do with them.

Whatever others wrote (names, labels, logs, messages) leaves as JSON or as plain bytes that no browser takes for a page.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from konverge.client import ClientError, UnknownKind
from konverge.objects.codec import to_json
from konverge.service.problems import Problem, from_client
from konverge.wire.errors import WireError
from konverge.wire.message import Headers, Response

JSON = "application/json"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
"""For the pages of the console itself: nothing inline, nothing from other hosts."""
INERT = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""For everything else: even an answer that a browser took for a page could do nothing."""
_SECURITY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def json_answer(value: Any, status: int = 200, **headers: str) -> Response:
    """A value as JSON; header names are given with underscores."""
    fields = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(status, Headers.of({"Content-Type": JSON, **fields}), to_json(value))


def refusal(problem: Problem) -> Response:
    """`{"error": sentence, "reason": "NotFound", "code": 404}`."""
    details = problem.details
    reason = details.reason or HTTPStatus(details.status).phrase.replace(" ", "")
    body = {"error": details.detail, "reason": reason, "code": details.status}
    fields = {name: text for name, text in problem.headers.items() if name.lower() != "www-authenticate"}
    return json_answer(body, details.status, **fields)


def problem_of(error: Problem | ClientError | WireError) -> Problem:
    """The problem of a request that failed."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, WireError):
        return Problem(503, f"the API server cannot be reached: {error}", reason="ServiceUnavailable")
    return Problem(404, str(error), reason="NotFound") if isinstance(error, UnknownKind) else from_client(error)


def guarded(response: Response, policy: str = INERT) -> Response:
    """The same answer with the headers that every answer has."""
    for name, value in _SECURITY.items():
        if name not in response.headers:
            response.headers.add(name, value)
    if "content-security-policy" not in response.headers:
        response.headers.add("Content-Security-Policy", policy)
    if "cache-control" not in response.headers:
        response.headers.add("Cache-Control", "no-store")
    return response
