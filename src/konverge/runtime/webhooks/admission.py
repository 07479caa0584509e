"""`@validating` and `@mutating`: admission functions on typed objects.

    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        if review.obj.spec.least > review.obj.spec.most:
            review.error("spec.least", "must not be over spec.most", value=review.obj.spec.least)

    @mutating(Pool, operations=("CREATE",))
    def default(review: Review[Pool]) -> None:
        review.obj.metadata.labels.setdefault("team", review.namespace)

    manager.add_webhook(check).add_webhook(default)

The decorated function stays a function: a unit test calls it with `Review.of(…)`.

Upstream: controller-runtime's pkg/webhook/admission (validator_custom.go, defaulter_custom.go).
"""

from __future__ import annotations

import base64
import inspect
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, Literal, TypeVar, get_args

import msgspec

from konverge.objects.codec import to_dict, to_json
from konverge.objects.meta import LabelSelector, Object
from konverge.objects.resource import Resource
from konverge.runtime.webhooks.denial import Denied
from konverge.runtime.webhooks.json_patch import changes
from konverge.runtime.webhooks.registry import BadReview, Webhook
from konverge.runtime.webhooks.review import AdmissionRequest, Operation, Review

T = TypeVar("T", bound=Object)

Function = Callable[[Review[T]], Awaitable[None] | None]
"""What is decorated; it may be a coroutine function."""
FailurePolicy = Literal["Fail", "Ignore"]
MatchPolicy = Literal["Equivalent", "Exact"]
SideEffects = Literal["None", "NoneOnDryRun"]
Reinvocation = Literal["Never", "IfNeeded"]

WRITES: tuple[Operation, ...] = ("CREATE", "UPDATE")


class _Question(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    request: AdmissionRequest


_read = msgspec.json.Decoder(_Question).decode
_write = msgspec.json.Encoder().encode


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Which writes are reviewed, and what happens when the webhook does not answer. As in webhook configurations."""

    operations: tuple[Operation, ...] = WRITES
    subresources: tuple[str, ...] = ("",)
    """Such as `status`, `scale`; the empty one is the object itself, `*` all of them."""
    failure_policy: FailurePolicy = "Fail"
    match_conditions: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Name -> CEL expression; the webhook is called when all hold."""
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    timeout: int = 10
    side_effects: SideEffects = "None"
    match_policy: MatchPolicy = "Equivalent"
    reinvocation: Reinvocation = "Never"

    def check(self) -> None:
        """Raises ValueError for what no API server would take."""
        if not self.operations or not set(self.operations) <= set(get_args(Operation)):
            raise ValueError(f"operations must be some of {', '.join(get_args(Operation))}, not {self.operations!r}")
        if not 1 <= self.timeout <= 30:
            raise ValueError(f"timeout must be from 1 to 30 seconds, not {self.timeout}")
        for given, choices in (
            (self.failure_policy, FailurePolicy),
            (self.match_policy, MatchPolicy),
            (self.side_effects, SideEffects),
            (self.reinvocation, Reinvocation),
        ):
            if given not in get_args(choices):
                raise ValueError(f"{given!r} must be one of {', '.join(get_args(choices))}")
        if not self.subresources:
            raise ValueError('subresources must not be empty: "" is the object itself')


class AdmissionHook(Webhook, Generic[T]):
    """An admission function and where it is served."""

    verb: ClassVar[str]

    def __init__(
        self, kind: type[T], function: Function[T], options: Options, *, of: type[Object] | None, name: str, path: str
    ) -> None:
        options.check()
        self.kind = kind
        self.function = function
        self.waits = inspect.iscoroutinefunction(function)
        self.options = options
        self.kinds = (of or kind,)
        self.resource: Resource = self.kinds[0].resource
        slug = _slug(name or getattr(function, "__name__", "").replace("<lambda>", ""))
        if not slug:
            raise ValueError(f"{function!r} has no name that a webhook could be called by; give it a name=…")
        group = self.resource.group or "core"
        self.name = f"{slug}.{self.resource.plural}.{group}"
        """In the configuration; the API server names it in its messages."""
        self.path = path or f"/{self.verb}/{self.resource.plural}.{group}/{self.resource.version}/{slug}"
        self.__doc__ = function.__doc__

    def __call__(self, review: Review[T]) -> Awaitable[None] | None:
        return self.function(review)

    async def answer(self, review: bytes) -> bytes:
        try:
            question = _read(review)
        except msgspec.DecodeError as error:
            raise BadReview(f"this is no AdmissionReview: {error}") from error
        if question.kind != "AdmissionReview" or not question.api_version.startswith("admission.k8s.io/"):
            raise BadReview(f"this is no AdmissionReview: {question.api_version}, Kind={question.kind}")
        response = await self._respond(question.request)
        return _write({"kind": "AdmissionReview", "apiVersion": question.api_version, "response": response})

    async def _respond(self, request: AdmissionRequest) -> dict[str, Any]:
        review = Review(self.kind, request)
        response: dict[str, Any] = {"uid": request.uid, "allowed": True}
        try:
            response |= await self._ask(review)
            if review.errors:
                raise Denied("", *review.errors)
        except Denied as denied:
            errors = (*review.errors, *(error for error in denied.errors if error not in review.errors))
            if errors != denied.errors:
                code = 0 if denied.errors else denied.code
                denied = Denied(denied.message, *errors, code=code)
            response = {"uid": request.uid, "allowed": False, "status": denied.status(self.resource, request.name)}
        if review.warnings:
            response["warnings"] = review.warnings
        if review.audit_annotations:
            response["auditAnnotations"] = review.audit_annotations
        return response

    @abstractmethod
    async def _ask(self, review: Review[T]) -> dict[str, Any]:
        """Call the function; what it adds to the answer."""

    async def _called(self, review: Review[T]) -> None:
        result = self.function(review)
        if inspect.isawaitable(result):
            await result


class ValidatingHook(AdmissionHook[T]):
    """What `@validating` makes of a function."""

    verb = "validate"

    async def _ask(self, review: Review[T]) -> dict[str, Any]:
        await self._called(review)
        return {}


class MutatingHook(AdmissionHook[T]):
    """What `@mutating` makes of a function."""

    verb = "mutate"

    async def _ask(self, review: Review[T]) -> dict[str, Any]:
        if review.new is None:
            await self._called(review)
            return {}
        before = to_json(review.new)
        await self._called(review)
        if to_json(review.new) == before:
            return {}
        listed = changes(msgspec.json.decode(review.sent), msgspec.json.decode(before), to_dict(review.new))
        return {"patchType": "JSONPatch", "patch": base64.b64encode(to_json(listed)).decode()} if listed else {}


def validating(
    kind: type[T],
    *,
    of: type[Object] | None = None,
    operations: Iterable[Operation] = WRITES,
    subresources: Iterable[str] = ("",),
    failure_policy: FailurePolicy = "Fail",
    match_conditions: Mapping[str, str] | None = None,
    namespace_selector: LabelSelector | None = None,
    object_selector: LabelSelector | None = None,
    timeout: int = 10,
    side_effects: SideEffects = "None",
    match_policy: MatchPolicy = "Equivalent",
    name: str = "",
    path: str = "",
) -> Callable[[Function[T]], ValidatingHook[T]]:
    """Decide about writes of a kind: refuse (`raise Denied`, `review.error`), warn, or let them pass.

    `of` names the kind whose subresource has objects of another kind:
    `@validating(Scale, of=Pool, subresources=("scale",))`.
    """
    options = Options(
        operations=tuple(operations),
        subresources=tuple(subresources),
        failure_policy=failure_policy,
        match_conditions=match_conditions or {},
        namespace_selector=namespace_selector,
        object_selector=object_selector,
        timeout=timeout,
        side_effects=side_effects,
        match_policy=match_policy,
    )
    return lambda function: ValidatingHook(kind, function, options, of=of, name=name, path=path)


def mutating(
    kind: type[T],
    *,
    of: type[Object] | None = None,
    operations: Iterable[Operation] = WRITES,
    subresources: Iterable[str] = ("",),
    failure_policy: FailurePolicy = "Fail",
    match_conditions: Mapping[str, str] | None = None,
    namespace_selector: LabelSelector | None = None,
    object_selector: LabelSelector | None = None,
    timeout: int = 10,
    side_effects: SideEffects = "None",
    match_policy: MatchPolicy = "Equivalent",
    reinvocation: Reinvocation = "Never",
    name: str = "",
    path: str = "",
) -> Callable[[Function[T]], MutatingHook[T]]:
    """Change objects of a kind before they are stored: the function changes `review.obj` in place.

    The difference becomes the patch; what the class does not know stays. `reinvocation="IfNeeded"` has it called again
    when another webhook changed the object after it.
    """
    options = Options(
        operations=tuple(operations),
        subresources=tuple(subresources),
        failure_policy=failure_policy,
        match_conditions=match_conditions or {},
        namespace_selector=namespace_selector,
        object_selector=object_selector,
        timeout=timeout,
        side_effects=side_effects,
        match_policy=match_policy,
        reinvocation=reinvocation,
    )
    return lambda function: MutatingHook(kind, function, options, of=of, name=name, path=path)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")
