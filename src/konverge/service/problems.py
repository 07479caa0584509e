"""Refusals: one exception, and its form on the wire (RFC 9457, application/problem+json).

Most refusals are the API server's: its Status is turned into a problem with every cause and the path of its field.
What it says stays what it says; a problem adds no secret of ours and hides no reason of theirs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Self

import msgspec

from konverge.client import (
    ApiStatusError,
    ClientError,
    ConnectionFailed,
    TimedOut,
)
from konverge.objects.codec import to_json
from konverge.service.models import FieldProblem, ProblemDetails
from konverge.wire.message import Headers, Response

MEDIA_TYPE = "application/problem+json"
_AT = re.compile(r"^(?P<text>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")
_STRICT = re.compile(r'(?P<what>unknown|duplicate) field "(?P<path>[^"]+)"')
_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


class Problem(Exception):
    """A request that is refused. `headers` are added to the answer's."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        reason: str = "",
        errors: Iterable[FieldProblem] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.details = ProblemDetails(
            title=_title(status), status=status, detail=detail, reason=reason, errors=list(errors)
        )
        self.headers = headers or {}

    def inside(self, prefix: str) -> Self:
        """The same with paths as a caller sees them whose whole request is what the resource has at `prefix`."""
        named = [(one.field.removeprefix(prefix), one) for one in self.details.errors]
        self.details.errors = [field_problem(path, one.message, one.reason) for path, one in named]
        return self

    def response(self) -> Response:
        fields = {"Content-Type": MEDIA_TYPE, **self.headers}
        return Response(self.details.status, Headers.of(fields), to_json(self.details))


def wrong_field(path: str, message: str, *, reason: str = "FieldValueInvalid") -> Problem:
    """One field of the request cannot be meant."""
    return Problem(422, f"{path}: {message}", reason="Invalid", errors=[field_problem(path, message, reason)])


def field_problem(path: str, message: str, reason: str) -> FieldProblem:
    return FieldProblem(field=path, pointer=pointer(path), reason=reason, message=message)


def pointer(path: str) -> str:
    """
    >>> pointer("spec.env[0].name"), pointer("metadata.labels[a/b]"), pointer("")
    ('/spec/env/0/name', '/metadata/labels/a~1b', '')
    """
    steps = (inside or plain for inside, plain in _STEP.findall(path))
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def unauthorized(detail: str) -> Problem:
    return Problem(401, detail, reason="Unauthorized", headers={"WWW-Authenticate": 'Bearer realm="kubernetes"'})


def from_client(error: ClientError) -> Problem:
    """The problem of a call that failed."""
    if isinstance(error, ApiStatusError):
        return _from_status(error)
    if isinstance(error, TimedOut):
        return Problem(504, "the API server did not answer in time; try again", reason="Timeout")
    if isinstance(error, ConnectionFailed):
        headers = {"Retry-After": "5"}
        return Problem(503, "the API server cannot be reached; try again", reason="ServiceUnavailable", headers=headers)
    return Problem(502, "the API server's answer makes no sense; its address may be wrong", reason="BadGateway")


def _from_status(error: ApiStatusError) -> Problem:
    status = error.code if 400 <= error.code <= 599 else 502
    if status == 401:
        return unauthorized("the cluster does not accept the token: it may have expired or belong to another cluster")
    headers = {"Retry-After": str(max(1, round(error.retry_after)))} if error.retry_after else {}
    strict = "strict decoding error" in error.message  # then the message alone says which fields, and no cause does
    causes = [_strict(match) for match in _STRICT.finditer(error.message)] if strict else _causes(error)
    hint = error.hint()
    detail = f"{error.message}. {hint}" if hint and status in (403, 404) else error.message
    return Problem(status, detail, reason=error.reason, errors=causes, headers=headers)


def _causes(error: ApiStatusError) -> list[FieldProblem]:
    """What is wrong, field by field. The API server tells of a wrong type twice, once with a dot before the path; a
    cause of no field (`<nil>`) only says that not everything was looked at; and what it has in `metadata` stands at the
    top of a request."""
    plain = {cause.field for cause in error.causes}
    return [
        field_problem(cause.field.removeprefix(".").removeprefix("metadata."), cause.message, cause.reason)
        for cause in error.causes
        if cause.field not in ("", "<nil>") and not (cause.field[0] == "." and cause.field[1:] in plain)
    ]


def _strict(match: re.Match[str]) -> FieldProblem:
    return field_problem(match["path"], f"{match['what']} field", "FieldValueInvalid")


def from_decoding(error: msgspec.DecodeError | UnicodeDecodeError | RecursionError) -> Problem:
    """A body that is no JSON, or not of the form that is wanted."""
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, "the body is no JSON that can be read; send an object as the API's page shows it")
    match = _AT.match(str(error))
    assert match is not None  # it matches anything
    text, path = match["text"], (match["path"] or "").lstrip(".")
    named = _MISSING.search(text) or _UNKNOWN.search(text)
    if named is not None:
        path = f"{path}.{named['name']}" if path else named["name"]
    return wrong_field(path, text)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Refused"
