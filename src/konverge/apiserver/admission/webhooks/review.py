"""AdmissionReview: what a webhook is asked, and what its answer says.

Upstream: apiserver/pkg/admission/plugin/webhook/request/admissionreview.go.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.admission.matching import describe
from konverge.apiserver.admission.webhooks.hooks import Hook, Invocation
from konverge.apiserver.go import json
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http.bodies import SCHEME
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest

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
    asked |= {"dryRun": request.dry_run, "options": request.options}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": asked}
    )


# --- the answer


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
        patch = msgspec.json.decode(text)
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
