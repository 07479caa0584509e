"""The `Status` answers: one exception with a constructor for every way in which a request can fail.

Handlers raise an `ApiError`; the pipeline turns it into the Status object that clients know. Codes, reasons and texts
are in the constructors below, so that no handler writes its own. Upstream: apimachinery/pkg/api/errors/errors.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from konverge.apiserver.field_errors import OMIT, FieldError
from konverge.apiserver.go.strconv import quote


class ApiError(Exception):
    """A request that ends in a failure Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        headers: dict[str, str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers = headers or {}
        self.metadata = metadata or {}

    def status(self) -> dict[str, Any]:
        """The Status object, with its members in the order of the real server."""
        body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def _details(group: str, plural: str, name: str, **more: Any) -> dict[str, Any]:
    details = {"name": name, "group": group, "kind": plural, **more}
    return {key: value for key, value in details.items() if value}


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    subject = f"{_qualified(group, plural)} {quote(name)}" if name else _qualified(group, plural)
    message = f"{subject} is forbidden: {why}" if plural else f"forbidden: {why}"
    return ApiError(403, "Forbidden", message, _details(group, plural, name))


def not_found(group: str, plural: str, name: str) -> ApiError:
    return ApiError(
        404, "NotFound", f"{_qualified(group, plural)} {quote(name)} not found", _details(group, plural, name)
    )


def no_such_resource() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(message: str, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(406, "NotAcceptable", message, details)


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f"{_qualified(group, plural)} {quote(name)} already exists"
    return ApiError(409, "AlreadyExists", message, _details(group, plural, name))


def conflict(group: str, kind_or_plural: str, name: str, why: str) -> ApiError:
    message = f"Operation cannot be fulfilled on {_qualified(group, kind_or_plural)} {quote(name)}: {why}"
    return ApiError(409, "Conflict", message, _details(group, kind_or_plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def expired(message: str, *, metadata: dict[str, Any] | None = None) -> ApiError:
    return ApiError(410, "Expired", message, metadata=metadata)


def too_large(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(message: str, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message, details)


def invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422: `details.kind` is the Kind here, not the resource. Equal errors of two rules appear once."""
    distinct = _listed(errors)
    joined = next(iter(distinct)) if len(distinct) == 1 else "[" + ", ".join(distinct) + "]"
    causes = [{"reason": e.reason, "message": e.body, "field": e.path} for e in distinct.values()]
    qualified = f"{kind}.{group}" if group else kind
    details = _details(group, kind, name, causes=causes)
    return ApiError(422, "Invalid", f"{qualified} {quote(name)} is invalid: {joined}", details)


_MOST_TEXT = 256 * 1024
"""Characters of errors in one answer. The real server has no bound: 3 MB of wrong labels make an answer of 100 MB."""


def _listed(errors: Sequence[FieldError]) -> dict[str, FieldError]:
    """The distinct errors by their texts, as many as there is room for; the last one says that there are others."""
    distinct: dict[str, FieldError] = {}
    size = 0
    for index, error in enumerate(errors):
        text = str(error)
        size += len(text)
        distinct[text] = error
        if size > _MOST_TEXT and index + 1 < len(errors):
            more = FieldError(error.type, error.path, OMIT, "there are more errors")
            distinct[str(more)] = more
            break
    return distinct


def too_many_requests(message: str, retry_after: int, details: dict[str, Any] | None = None) -> ApiError:
    details = {**(details or {}), "retryAfterSeconds": retry_after}
    return ApiError(429, "TooManyRequests", message, details, headers={"Retry-After": str(retry_after)})


def internal(message: str) -> ApiError:
    """500 with the reason InternalError, as for a failing webhook."""
    details = {"causes": [{"message": message}]}
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", details)


def plain_500(message: str) -> ApiError:
    """500 without a reason: what the real server answers where its code returns a plain Go error."""
    return ApiError(500, "", message)


def unavailable(message: str, retry_after: int) -> ApiError:
    details = {"retryAfterSeconds": retry_after}
    return ApiError(503, "ServiceUnavailable", message, details, headers={"Retry-After": str(retry_after)})


def timeout(message: str, retry_after: int, causes: list[dict[str, str]] | None = None) -> ApiError:
    details: dict[str, Any] = {"causes": causes} if causes else {}
    details["retryAfterSeconds"] = retry_after
    return ApiError(504, "Timeout", message, details, headers={"Retry-After": str(retry_after)})
