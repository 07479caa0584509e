"""`Review`: what an admission function is asked, on typed objects, and what it says besides yes or no.

Objects are decoded when they are first looked at: a function that needs only the user costs nothing else.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

import msgspec

from konverge.objects.codec import from_json, to_json
from konverge.objects.meta import Object
from konverge.runtime.webhooks.denial import Denied, FieldError, Problem

T = TypeVar("T", bound=Object)

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

_NULL = msgspec.Raw(b"null")
_OMITTED: Any = object()


class UserInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Who makes the request, as the API server authenticated it."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class AdmissionRequest(msgspec.Struct, rename="camel", gc=False):
    """The question on the wire. Upstream: AdmissionRequest (k8s.io/api/admission/v1)."""

    uid: str = ""
    operation: Operation = "CREATE"
    name: str = ""
    namespace: str = ""
    sub_resource: str = ""
    user_info: UserInfo = msgspec.field(default_factory=UserInfo)
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL
    dry_run: bool | None = None
    options: msgspec.Raw = _NULL


class Review(Generic[T]):
    """One write that is to be judged.

    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        if review.old is not None and review.obj.spec.most < review.old.spec.most:
            review.error("spec.most", "a pool does not shrink", value=review.obj.spec.most)
    """

    def __init__(self, kind: type[T], request: AdmissionRequest) -> None:
        self._kind = kind
        self._request = request
        self._new: T | None = _OMITTED
        self._old: T | None = _OMITTED
        self.warnings: list[str] = []
        self.errors: list[FieldError] = []
        self.audit_annotations: dict[str, str] = {}
        """Added to the request's entry in the audit log of the API server."""

    @classmethod
    def of(
        cls,
        new: T | None = None,
        *,
        old: T | None = None,
        operation: Operation | None = None,
        user: UserInfo | None = None,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Review[T]:
        """A review for a unit test: `check(Review.of(Pool(…)))`, then look at `errors` and `warnings`."""
        obj = old if new is None else new
        if obj is None:
            raise TypeError("a review is about an object: give new, old or both")
        implied: Operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
        request = AdmissionRequest(
            operation=operation or implied,
            name=obj.metadata.name,
            namespace=obj.metadata.namespace,
            sub_resource=subresource,
            user_info=user or UserInfo(),
            object=_NULL if new is None else msgspec.Raw(to_json(new)),
            old_object=_NULL if old is None else msgspec.Raw(to_json(old)),
            dry_run=dry_run,
        )
        return cls(type(obj), request)

    # -------------------------------------------------------------- the question

    # Not cached_property: in Python 3.11 that takes a lock, which costs more than most functions do.
    @property
    def new(self) -> T | None:
        """The object as it is going to be; None when it is deleted. Mutating functions change it in place."""
        if self._new is _OMITTED:
            self._new = self._decoded(self._request.object, "object")
        return self._new

    @property
    def old(self) -> T | None:
        """The object as it is; None when it is created."""
        if self._old is _OMITTED:
            self._old = self._decoded(self._request.old_object, "oldObject")
        return self._old

    @property
    def obj(self) -> T:
        """The object that the request is about: the new one, or the one that is deleted."""
        obj = self.old if self.new is None else self.new
        if obj is None:
            raise Denied(f"a request to {self.operation} {self._kind.__name__} has no object", code=400)
        return obj

    @property
    def operation(self) -> Operation:
        return self._request.operation

    @property
    def user(self) -> UserInfo:
        return self._request.user_info

    @property
    def name(self) -> str:
        """Empty when the API server is going to generate it."""
        return self._request.name

    @property
    def namespace(self) -> str:
        return self._request.namespace

    @property
    def subresource(self) -> str:
        """Such as `status` or `scale`; empty for the object itself."""
        return self._request.sub_resource

    @property
    def dry_run(self) -> bool:
        """Whether nothing will be stored: then nothing else may be changed anywhere, either."""
        return bool(self._request.dry_run)

    @cached_property
    def options(self) -> dict[str, Any]:
        """Of the request (CreateOptions, UpdateOptions, PatchOptions, DeleteOptions)."""
        options: dict[str, Any] | None = msgspec.json.decode(self._request.options)
        return options or {}

    @property
    def sent(self) -> msgspec.Raw:
        """The new object as the API server sent it."""
        return self._request.object

    # -------------------------------------------------------------- the answer

    def warn(self, text: str) -> None:
        """Let the write pass, and show the user a line (kubectl prints `Warning: …`)."""
        self.warnings.append(" ".join(text.split()))

    def error(self, path: str, message: str = "", *, problem: Problem = "Invalid", value: Any = _OMITTED) -> None:
        """Refuse the write because of a field; the function goes on, so that the user sees all errors at once."""
        given = {} if value is _OMITTED else {"value": value}
        self.errors.append(FieldError(path, message, problem, **given))

    def _decoded(self, raw: msgspec.Raw, name: str) -> T | None:
        if raw == _NULL:
            return None
        try:
            return from_json(self._kind, raw)
        except msgspec.DecodeError as error:
            raise Denied(
                f"the {name} is no {self._kind.__name__} that the operator understands: {error}", code=400
            ) from error
