"""Everything that can go wrong between a program and an API server, as one tree.

Upstream: apimachinery/pkg/api/errors, where functions such as `IsNotFound` ask for the reason of a Status.

    ClientError
    ├── ConfigError               a kubeconfig, a context or the in-cluster files cannot be used
    ├── CredentialError           an exec plugin or a token file gave no credential
    ├── UnknownKind               discovery knows no kind of that name
    ├── ConnectionFailed          there was no complete answer
    │   ├── NotConnected          the request never left: nothing can have happened
    │   ├── ConnectionLost        it broke after the request left: a write may have taken effect
    │   └── TimedOut              no answer came in time: a write may have taken effect
    ├── MalformedAnswer           the answer cannot be read as what was asked for
    └── ApiStatusError            the API server said no
        ├── BadRequest            400
        ├── Unauthorized          401
        ├── Forbidden             403
        ├── NotFound              404
        ├── MethodNotAllowed      405
        ├── NotAcceptable         406
        ├── AlreadyExists         409
        ├── Conflict              409
        ├── Expired               410  (the resourceVersion or the continue token is too old)
        ├── TooLarge              413
        ├── UnsupportedMediaType  415
        ├── Invalid               422  (with `causes`)
        ├── TooManyRequests       429  (with `retry_after`)
        ├── InternalError         500
        ├── Unavailable           503
        └── ServerTimeout         504

The text of an error says what happened and, where there is something to do about it, what to do.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

import msgspec

from konverge.objects.codec import decoder
from konverge.objects.meta import Status, StatusDetails

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises: for what is no JSON or does not fit, no UTF-8, and too deep to read."""


class ClientError(Exception):
    """The root of the tree."""


class ConfigError(ClientError):
    """The configuration cannot be used; the text names the file, the context and the key."""


class CredentialError(ClientError):
    """No credential could be had from an exec plugin or a token file."""


class UnknownKind(ClientError):
    """The API server serves nothing of that name."""


class ConnectionFailed(ClientError):
    """There was no complete answer. The subclasses say whether a write may have taken effect."""


class NotConnected(ConnectionFailed):
    """No connection could be made: refused, unresolvable, or TLS did not come about. Nothing was sent."""


class ConnectionLost(ConnectionFailed):
    """The connection broke after the request was sent."""


class TimedOut(ConnectionFailed):
    """No answer within the time limit."""


class MalformedAnswer(ClientError):
    """The answer is not what was asked for: broken JSON, or an object that does not fit its class."""


_decode_status = decoder(Status).decode


class ApiStatusError(ClientError):
    """The API server refused. `code`, `reason`, `message`, `details` and `causes` are those of its Status.

    try:
        await client.create(deployment)
    except AlreadyExists:
        ...
    except ApiStatusError as error:
        log.error("%s (%s)", error.message, error.reason)
    """

    default_code: ClassVar[int] = 0
    default_reason: ClassVar[str] = ""

    def __init__(self, status: Status, *, request: str = "", retry_after: float | None = None) -> None:
        self.status = status
        self.code = status.code or self.default_code
        self.reason = status.reason or self.default_reason
        self.message = status.message
        self.details = status.details or StatusDetails()
        self.causes = self.details.causes
        self.request = request
        self.retry_after = retry_after if retry_after is not None else self.details.retry_after_seconds or None
        super().__init__(self.message)

    def hint(self) -> str:
        """What the reader can do about it; empty when the message says it all."""
        return ""

    def __str__(self) -> str:
        head = self.message or f"the server answered {self.code} without a message"
        where = f" [{self.request}]" if self.request else ""
        hint = self.hint()
        return f"{head}{where}. {hint}" if hint else f"{head}{where}"


class BadRequest(ApiStatusError):
    default_code, default_reason = 400, "BadRequest"

    def hint(self) -> str:
        if "managedFields must be nil" in self.message:
            return "Apply an object with just the fields that you want to own, not one that was read"
        return ""


class Unauthorized(ApiStatusError):
    default_code, default_reason = 401, "Unauthorized"

    def hint(self) -> str:
        return (
            "The server does not accept the credentials: the token may have expired or belong to another cluster. "
            "Try `kubectl auth whoami` with the same kubeconfig, and log in again"
        )


_DENIED = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)
_DENIED_PATH = re.compile(r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) path "(?P<path>[^"]*)"')


class Forbidden(ApiStatusError):
    """Not allowed: by RBAC (then `hint()` holds the rule to add), by a quota, or by admission."""

    default_code, default_reason = 403, "Forbidden"

    @property
    def namespace_terminating(self) -> bool:
        """Nothing can be made in a namespace that is being deleted, and nothing needs to be."""
        return any(cause.reason == "NamespaceTerminating" for cause in self.causes)

    def hint(self) -> str:
        if match := _DENIED.search(self.message):
            return _missing_rule(match)
        if match := _DENIED_PATH.search(self.message):
            return f'A ClusterRole with {{nonResourceURLs: ["{match["path"]}"], verbs: ["{match["verb"]}"]}} allows it'
        return ""


def _missing_rule(match: re.Match[str]) -> str:
    resource, group, namespace = match["resource"], match["group"], match["namespace"]
    plural, _, subresource = resource.partition("/")
    asked = f"{plural}.{group}" if group else plural
    where = f" -n {namespace}" if namespace else " --all-namespaces"
    extra = f" --subresource={subresource}" if subresource else ""
    role = "Role" if namespace else "ClusterRole"
    return (
        f"Check with `kubectl auth can-i {match['verb']} {asked}{extra}{where} --as={match['user']}`; a {role} with "
        f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{match["verb"]}"]}} allows it'
    )


class NotFound(ApiStatusError):
    """There is no such object, or (`kind_missing`) the server does not serve the kind at all."""

    default_code, default_reason = 404, "NotFound"

    @property
    def kind_missing(self) -> bool:
        return not self.details.kind

    def hint(self) -> str:
        if not self.kind_missing:
            return ""
        return (
            "The server does not serve this path: is the CustomResourceDefinition installed, and in this version? "
            "`kubectl api-resources` lists what is served"
        )


class MethodNotAllowed(ApiStatusError):
    default_code, default_reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiStatusError):
    default_code, default_reason = 406, "NotAcceptable"


class AlreadyExists(ApiStatusError):
    default_code, default_reason = 409, "AlreadyExists"


class Conflict(ApiStatusError):
    """Another writer was faster, or (server-side apply) another manager owns the field; `causes` name those."""

    default_code, default_reason = 409, "Conflict"

    def hint(self) -> str:
        if any(cause.reason == "FieldManagerConflict" for cause in self.causes):
            return "Leave these fields out, or take them over with force=True"
        if "has been modified" in self.message:
            return "Read the object again and repeat the change on it"
        return ""


class Expired(ApiStatusError):
    """The resourceVersion or continue token is too old: list again. `continue_token` goes on inconsistently."""

    default_code, default_reason = 410, "Expired"

    @property
    def continue_token(self) -> str:
        return self.status.metadata.continue_

    def hint(self) -> str:
        return "The server no longer keeps that version: list again and watch from there"


class TooLarge(ApiStatusError):
    default_code, default_reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiStatusError):
    default_code, default_reason = 415, "UnsupportedMediaType"

    def hint(self) -> str:
        if "accepted media types include" in self.message:
            return "Custom resources take no strategic merge patch: use MergePatch, JsonPatch or apply"
        return ""


class Invalid(ApiStatusError):
    """Validation failed; `causes` holds one entry per field."""

    default_code, default_reason = 422, "Invalid"

    def hint(self) -> str:
        if self.request.startswith("PATCH") and "due to an error in our request" in self.message:
            return "Of a JSON patch, a `test` did not hold, a path leads nowhere, or an operation is unknown"
        return ""


class TooManyRequests(ApiStatusError):
    """The server is busy, or a disruption budget forbids the eviction; `retry_after` is in seconds."""

    default_code, default_reason = 429, "TooManyRequests"

    def hint(self) -> str:
        if any(cause.reason == "DisruptionBudget" for cause in self.causes):
            return "Try again when other pods of the budget are ready: `kubectl get pdb` shows how many may be missing"
        return ""


class InternalError(ApiStatusError):
    default_code, default_reason = 500, "InternalError"


class Unavailable(ApiStatusError):
    default_code, default_reason = 503, "ServiceUnavailable"


class ServerTimeout(ApiStatusError):
    default_code, default_reason = 504, "Timeout"


_CLASSES: list[type[ApiStatusError]] = ApiStatusError.__subclasses__()
_BY_REASON: dict[str, type[ApiStatusError]] = {
    **{cls.default_reason: cls for cls in _CLASSES},
    "Gone": Expired,
    "ServerTimeout": ServerTimeout,
}
# In the order above: AlreadyExists stands before Conflict, so a bare 409 without a reason is a Conflict.
_BY_CODE: dict[int, type[ApiStatusError]] = {cls.default_code: cls for cls in _CLASSES}


def error_for(status: Status, *, request: str = "", retry_after: float | None = None) -> ApiStatusError:
    """The exception for a Status: by its reason, else by its code."""
    error = _BY_REASON.get(status.reason) or _BY_CODE.get(status.code, ApiStatusError)
    return error(status, request=request, retry_after=retry_after)


def error_from_answer(code: int, body: bytes, *, request: str = "", retry_after: float | None = None) -> ApiStatusError:
    """The exception for an answer. A proxy's HTML page or a bare text serve as the message."""
    return error_for(read_status(body, code), request=request, retry_after=retry_after)


def read_status(body: bytes, code: int = 0) -> Status:
    try:
        status = _decode_status(body)
    except UNREADABLE:
        return Status(code=code, message=body[:500].decode("utf-8", "replace").strip())
    if not status.code:
        status.code = code
    return status
