"""A refusal, in the form in which the API server reports its own: field errors become one text and a cause for each.

Upstream: ErrorBody (apimachinery/pkg/util/validation/field/errors.go), NewInvalid (apimachinery/pkg/api/errors).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from konverge.objects.codec import to_json
from konverge.objects.resource import Resource

Problem = Literal["Invalid", "Required", "Forbidden", "NotSupported", "Duplicate", "NotFound", "TooLong", "TooMany"]

_TEXTS: Final[dict[str, str]] = {
    "Invalid": "Invalid value",
    "Required": "Required value",
    "Forbidden": "Forbidden",
    "NotSupported": "Unsupported value",
    "Duplicate": "Duplicate value",
    "NotFound": "Not found",
    "TooLong": "Too long",
    "TooMany": "Too many",
}
_WITHOUT_VALUE = frozenset(("Required", "Forbidden", "TooLong"))
_REASONS: Final[dict[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_OMITTED: Any = object()


class FieldError(msgspec.Struct, frozen=True):
    """What is wrong with one field.

    >>> print(FieldError("spec.replicas", "must be at most 10", value=11))
    spec.replicas: Invalid value: 11: must be at most 10
    """

    path: str
    message: str = ""
    problem: Problem = "Invalid"
    value: Any = _OMITTED

    @property
    def body(self) -> str:
        text = _TEXTS[self.problem]
        if self.value is not _OMITTED and self.problem not in _WITHOUT_VALUE:
            text += f": {to_json(self.value).decode()}"
        return f"{text}: {self.message}" if self.message else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


class Denied(Exception):
    """Raise it to refuse a write. The user reads `admission webhook "…" denied the request: ` and this message.

    raise Denied("pools are frozen on Fridays")
    raise Denied(FieldError("spec.most", "must not be under spec.least", value=2))
    """

    def __init__(self, message: str | FieldError = "", *errors: FieldError, code: int = 0, reason: str = "") -> None:
        """`code` is the HTTP status that the client gets: 403, or 422 with field errors."""
        if isinstance(message, FieldError):
            errors, message = (message, *errors), ""
        if code and code < 400:
            raise ValueError(f"a refusal has an HTTP status of 400 or more, not {code}")
        super().__init__(message or _joined(errors))
        self.message = message
        self.errors = errors
        self.code = code or (422 if errors else 403)
        self.reason = reason or _REASONS.get(self.code, "")

    def status(self, resource: Resource, name: str) -> dict[str, Any]:
        """The `status` of the answer. Upstream: NewInvalid."""
        status: dict[str, Any] = {"status": "Failure", "code": self.code, "reason": self.reason}
        text = self.message
        if self.errors:
            qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
            joined = f'{qualified} "{name}" is invalid: {_joined(self.errors)}'
            text = f"{text}: {joined}" if text else joined
            causes = [
                {"reason": f"FieldValue{error.problem}", "message": error.body, "field": error.path}
                for error in {str(error): error for error in self.errors}.values()
            ]
            about = {"name": name, "group": resource.group, "kind": resource.kind}
            status["details"] = {key: value for key, value in about.items() if value} | {"causes": causes}
        return {**status, "message": text} if text else status


def _joined(errors: tuple[FieldError, ...]) -> str:
    texts = list(dict.fromkeys(map(str, errors)))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""
