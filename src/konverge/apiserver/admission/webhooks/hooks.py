"""The webhooks that are configured: whether one is called for a write, what it is asked, and what its answer says.

A rule about another version of the same resource counts as well (matchPolicy Equivalent): then the object is shown in
that version, and what the webhook changes is converted back. Upstream: apiserver/pkg/admission/plugin/webhook/generic.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.admission.matching import describe, kind_of_body, matches_rules, matches_selectors
from konverge.apiserver.go import json, json_pieces
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http.bodies import SCHEME
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.auth.authorization import Authorization
    from konverge.apiserver.registry import Served
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.protocols import Backend


GROUP = "admissionregistration.k8s.io"


class Hook(msgspec.Struct, frozen=True):
    """One webhook of a configuration."""

    name: str
    id: str
    """Distinguishes hooks of the same name, in one configuration or in several."""
    spec: Obj

    @property
    def ignores_failure(self) -> bool:
        return bool(self.spec.get("failurePolicy") == "Ignore")

    @property
    def seconds(self) -> int:
        return int(self.spec.get("timeoutSeconds") or 10)  # the default of the API

    @property
    def allows_dry_run(self) -> bool:
        return self.spec.get("sideEffects") in ("None", "NoneOnDryRun")

    @property
    def reinvoked(self) -> bool:
        return bool(self.spec.get("reinvocationPolicy") == "IfNeeded")


class Hooks:
    """All webhooks of one kind; read again when a configuration changes."""

    def __init__(self, server: Backend, plural: str) -> None:
        self._server = server
        self._plural = plural
        self._hooks: tuple[Hook, ...] | None = None
        server.store.subscribe(f"{GROUP}/{plural}", self._changed)

    def _changed(self, event: Any) -> None:
        self._hooks = None

    def all(self) -> tuple[Hook, ...]:
        """By the name of the configuration, then as they stand in it."""
        if self._hooks is None:
            self._hooks = tuple(
                Hook(spec.get("name", ""), f"{configuration['metadata']['name']}/{spec.get('name', '')}/{index}", spec)
                for configuration in self._server.objects.scan(GROUP, self._plural)
                for index, spec in enumerate(configuration.get("webhooks") or ())
            )
        return self._hooks


class Invocation(msgspec.Struct, frozen=True):
    """How a webhook is called for a write."""

    hook: Hook
    served: Served
    """The version that the webhook sees."""

    def shown(self, request: AdmissionRequest, obj: Obj | None) -> Obj | None:
        """An object of the request as the webhook sees it."""
        if obj is None:
            return None
        served = request.served
        if self.served is not served:
            obj = obj if served.conversion is None else served.conversion.to_storage(obj)
            obj = obj if self.served.conversion is None else self.served.conversion.from_storage(obj)
        return _typed(obj, self.served, kind_of_body(request, obj))

    def converted_back(self, request: AdmissionRequest, obj: Obj) -> Obj:
        served = request.served
        if self.served is not served:
            obj = obj if self.served.conversion is None else self.served.conversion.to_storage(obj)
            obj = obj if served.conversion is None else served.conversion.from_storage(obj)
            obj = {**obj, "apiVersion": served.resource.api_version}
        return obj


def _typed(obj: Obj, served: Served, other: tuple[str, str]) -> Obj:
    kind, api_version = other if other[0] else (served.resource.kind, served.resource.api_version)
    rest = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return {"kind": kind, "apiVersion": api_version, **rest}


async def invocation(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> Invocation | None:
    """How the webhook is called; None if the write does not concern it. Upstream: ShouldCallHook."""
    spec = hook.spec
    if not matches_selectors(spec, request):
        return None
    served = _wanted_version(hook, request)
    if served is None:
        return None
    if spec.get("matchConditions") and not await _conditions_hold(hook, request, authorization):
        return None
    return Invocation(hook, served)


def _wanted_version(hook: Hook, request: AdmissionRequest) -> Served | None:
    rules = hook.spec.get("rules") or ()
    if matches_rules(rules, request, equivalent=False):
        return request.served
    if hook.spec.get("matchPolicy") == "Exact":
        return None
    own = request.served
    for served in _equivalents(request):
        request.served = served
        try:
            if matches_rules(rules, request, equivalent=False):
                return served
        finally:
            request.served = own
    return None


def _equivalents(request: AdmissionRequest) -> Iterator[Served]:
    """The same resource in other versions."""
    own = request.served
    for versions in request.call.server.registry.versions(own.resource.group).values():
        served = versions.get(own.resource.plural)
        if served is not None and served is not own and served.table == own.table:
            yield served


async def _conditions_hold(hook: Hook, request: AdmissionRequest, authorization: Authorization) -> bool:
    from konverge.apiserver.admission.expressions import EvaluationError, match_conditions

    try:
        return await match_conditions(hook.spec["matchConditions"], request, authorization)
    except EvaluationError as error:
        if hook.ignores_failure:
            return False
        resource = request.served.resource
        raise status.forbidden(resource.group, resource.plural, request.name, str(error)) from None


# --- AdmissionReview: what a webhook is asked, and what its answer says
# Upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go.

_VERSIONS = ("v1", "v1beta1")


class CallFailed(Exception):
    """The webhook could not be asked, or its answer could not be used: the failurePolicy decides."""


@dataclass(frozen=True, slots=True)
class Answer:
    allowed: bool
    warnings: list[str] = field(default_factory=list)
    patch: list[Any] | None = None
    result: Obj | None = None


def version_of(hook: Hook) -> str:
    """The first of the hook's review versions that is known here."""
    for version in hook.spec.get("admissionReviewVersions") or ():
        if version in _VERSIONS:
            return str(version)
    raise CallFailed(
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )


def question(invocation: Invocation, request: AdmissionRequest, version: str, uid: str) -> bytes:
    """Upstream: CreateV1AdmissionReview."""
    asked = {"uid": uid, **describe(request, invocation.served.resource)}
    if request.call.info.verb == "deletecollection":
        asked.pop("name", None)
    asked["object"] = invocation.shown(request, request.obj)
    asked["oldObject"] = invocation.shown(request, request.old)
    asked |= {"dryRun": request.dry_run, "options": request.options or None}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": asked}
    )


def answer(body: bytes, version: str, uid: str, *, mutating: bool) -> Answer:
    """Raises CallFailed for an answer that cannot be used. Upstream: VerifyAdmissionResponse."""
    if not body:
        raise CallFailed(
            "failed to call webhook: 0-length response with status code: 200 and content type: application/json"
        )
    review, problem = json.parse(body)
    problem = f"couldn't get version/kind; json parse error: {problem}" if problem else _other_kind(review, version)
    if problem:
        raise CallFailed(f"failed to call webhook: {problem}")
    response = review.get("response")
    if not isinstance(response, dict):
        raise _invalid("webhook response was absent")
    if version == "v1":
        _check_v1(review, response, uid, mutating=mutating)
    patch = _patch(response) if mutating and response.get("allowed") else None
    result = response.get("status")
    return Answer(
        allowed=response.get("allowed") is True,
        warnings=[str(text) for text in response.get("warnings") or ()],
        patch=patch,
        result=result if isinstance(result, dict) else None,
    )


def _other_kind(review: Obj, version: str) -> str:
    """What is wrong with a review of another kind or version; `_check_v1` sees to one without a kind."""
    api_version, kind = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if not kind or (api_version, kind) == (f"admission.k8s.io/{version}", "AdmissionReview"):
        return ""
    group, _, given = api_version.rpartition("/")
    if (group, kind) == ("admission.k8s.io", "AdmissionReview") and given in _VERSIONS:
        return f"converting ({given}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
    return f"no kind {quote(kind)} is registered for version {quote(api_version)} in scheme {quote(SCHEME)}"


def _invalid(why: str) -> CallFailed:
    return CallFailed(f"received invalid webhook response: {why}")


def _check_v1(review: Obj, response: Obj, uid: str, *, mutating: bool) -> None:
    given = response.get("uid") or ""
    if given != uid:
        raise _invalid(f"expected response.uid={quote(uid)}, got {quote(str(given))}")
    api_version, kind = str(review.get("apiVersion") or ""), str(review.get("kind") or "")
    if (api_version, kind) != ("admission.k8s.io/v1", "AdmissionReview"):
        group, _, version = api_version.rpartition("/")
        shown = f"{group}/{version}, Kind={kind}"
        raise _invalid(f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}")
    patch, patch_type = response.get("patch"), response.get("patchType")
    if not mutating:
        for part, value in (("patch", patch), ("patchType", patch_type)):
            if value:
                raise _invalid(f"validating webhook may not return response.{part}")
    elif patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    elif not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    elif patch_type == "":
        raise _invalid('webhook returned invalid response.patchType of ""')


def _patch(response: Obj) -> list[Any] | None:
    if not response.get("patch"):
        return None
    if response.get("patchType", "JSONPatch") != "JSONPatch":
        raise CallFailed(f"unsupported patch type {quote(str(response.get('patchType')))}")
    try:
        text = base64.b64decode(response["patch"], validate=True)
    except (binascii.Error, TypeError):
        raise CallFailed("failed to call webhook: illegal base64 data in response.patch") from None
    try:
        patch = json_pieces.decode(text)
    except msgspec.DecodeError as error:
        why = "unexpected end of JSON input" if "truncated" in str(error) else str(error)
        raise CallFailed(f"received undecodable patch in webhook response: {why}") from None
    if not isinstance(patch, list):
        raise CallFailed(
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type "
            "jsonpatch.Patch"
        )
    return patch


def denial(hook: Hook, result: Obj | None) -> status.ApiError:
    """The refusal of a webhook, with its own message. Upstream: ToStatusErr (webhook/errors)."""
    result = result or {}
    code = result.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    reason = str(result.get("reason") or "")
    message = str(result.get("message") or "") or reason
    head = f"admission webhook {quote(hook.name)} denied the request"
    details = result.get("details")
    metadata = result.get("metadata")
    return status.ApiError(
        code,
        reason,
        f"{head}: {message}" if message else f"{head} without explanation",
        details if isinstance(details, dict) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
    )
