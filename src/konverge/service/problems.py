"""Refusals: one exception, and its form on the wire (RFC 9457, application/problem+json).

Most refusals are the API server's: its Status becomes a problem with every cause and the path of its field. Its text is
not changed, except that secrets in it are hidden: it may repeat a value that was stored before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Self

import msgspec

from konverge.client import ApiStatusError, ClientError, ConnectionFailed, TimedOut
from konverge.objects.codec import to_json
from konverge.objects.meta import StatusCause
from konverge.operators.nacos.resource import LONGEST_NAME, NAME
from konverge.service.models import FieldProblem, ProblemDetails
from konverge.service.redaction import in_text
from konverge.wire.message import Headers, Response

MEDIA_TYPE = "application/problem+json"
_AT = re.compile(r"^(?P<text>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?$", re.DOTALL)
_MISSING = re.compile(r"missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]+)`")
_STRICT = re.compile(r'(?P<what>unknown|duplicate) field "(?P<path>[^"]+)"')
_EXPECTED = re.compile(r"^Expected `(?P<wanted>[^`]+)`(?:, got `(?P<got>[^`]+)`)?(?P<rest>.*)$", re.DOTALL)
_KINDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}
_FORM_OF_NAMES = f"matching regex {NAME!r}"
_QUANTITY = "([KMGTPE]i|[numkMGTPE]|"
_REASONS = {
    400: "BadRequest",
    405: "MethodNotAllowed",
    408: "Timeout",
    412: "Conflict",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "TooManyRequests",
    503: "ServiceUnavailable",
}
"""The API server's default reasons for these statuses."""
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
            title=_title(status),
            status=status,
            detail=detail,
            reason=reason or _REASONS.get(status, ""),
            errors=list(errors),
        )
        self.headers = headers or {}

    def inside(self, prefix: str) -> Self:
        """The same with the paths of a caller whose whole request is the part of the resource at `prefix`."""
        self.details.errors = [
            field_problem(error.field.removeprefix(prefix), error.message, error.reason)
            for error in self.details.errors
        ]
        return self

    def response(self) -> Response:
        fields = {"Content-Type": MEDIA_TYPE, **self.headers}
        return Response(self.details.status, Headers.of(fields), to_json(self.details))


def wrong_field(path: str, message: str, *, reason: str = "FieldValueInvalid") -> Problem:
    """One field of the request is invalid."""
    detail = f"{path}: {message}" if path else f"the body {message}"
    return Problem(422, detail, reason="Invalid", errors=[field_problem(path, message, reason)])


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
    return Problem(502, "the API server's answer cannot be read; its address may be wrong", reason="BadGateway")


def _from_status(error: ApiStatusError) -> Problem:
    status = error.code if 400 <= error.code <= 599 else 502
    if status == 401:
        return unauthorized("the cluster does not accept the token: it may have expired or belong to another cluster")
    headers = {"Retry-After": str(max(1, round(error.retry_after)))} if error.retry_after else {}
    strict = "strict decoding error" in error.message  # then only the message names the fields, no cause does
    causes = [_strict(match) for match in _STRICT.finditer(error.message)] if strict else _causes(error)
    hint = error.hint()
    detail = in_text(f"{error.message}. {hint}" if hint and status in (403, 404) else error.message)
    return Problem(status, detail, reason=error.reason, errors=causes, headers=headers)


def _causes(error: ApiStatusError) -> list[FieldProblem]:
    """The errors, field by field. The API server reports a wrong type twice, once with a dot before the path; a cause
    without a field (`<nil>`) only says that the validation stopped early; and its `metadata` is the top level of our
    requests."""
    plain = {cause.field for cause in error.causes}
    return [
        field_problem(cause.field.removeprefix(".").removeprefix("metadata."), _readable(cause), cause.reason)
        for cause in error.causes
        if cause.field not in ("", "<nil>") and not (cause.field[0] == "." and cause.field[1:] in plain)
    ]


def _readable(cause: StatusCause) -> str:
    """For a quantity the API server shows its pattern, which does not help users."""
    message = in_text(f"{cause.field}: {cause.message}").removeprefix(f"{cause.field}: ")
    value = message.partition(": ")[2].partition(": ")[0]
    return f"{value} is not a quantity: write it as 2, 500m or 4Gi" if _QUANTITY in message else message


def _strict(match: re.Match[str]) -> FieldProblem:
    return field_problem(match["path"], f"{match['what']} field", "FieldValueInvalid")


def from_decoding(error: msgspec.DecodeError | UnicodeDecodeError | RecursionError) -> Problem:
    """A body that is not JSON, or not of the expected form."""
    if not isinstance(error, msgspec.ValidationError):
        return Problem(400, "the body is not readable JSON; send an object as the page of the API shows it")
    match = _AT.match(str(error))
    assert match is not None  # it matches anything
    text, path = match["text"], (match["path"] or "").lstrip(".")
    named = _MISSING.search(text) or _UNKNOWN.search(text)
    if named is not None:
        path = f"{path}.{named['name']}" if path else named["name"]
        text = "is missing" if _MISSING.search(text) else "is not a known field"
    return wrong_field(path, _for_people(text))


def _for_people(text: str) -> str:
    """The message of msgspec with the names of JSON's types.

    >>> _for_people("Expected `str | null`, got `int`"), _for_people("Expected `str` of length <= 50")
    ('must be a string or null, not an integer', 'must be a string of length <= 50')
    """
    if _FORM_OF_NAMES in text:
        return f"must begin with a letter and have at most {LONGEST_NAME} lower-case letters, digits and '-'"
    match = _EXPECTED.match(text)
    if match is None:
        return text
    wanted = " or ".join(_KINDS.get(kind, kind) for kind in match["wanted"].split(" | "))
    got = f", not {_KINDS.get(match['got'], match['got'])}" if match["got"] else ""
    return f"must be {wanted}{got}{match['rest']}"


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Refused"
