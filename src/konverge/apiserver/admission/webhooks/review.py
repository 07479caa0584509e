"""AdmissionReview: what a webhook is asked, and what its answer says."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from konverge.apiserver import status
from konverge.apiserver.admission.matching import is_namespace
from konverge.apiserver.admission.webhooks.hooks import Hook
from konverge.apiserver.admission.webhooks.invocation import Invocation, obj_kind
from konverge.apiserver.go import json
from konverge.apiserver.go.strconv import quote
from konverge.apiserver.http.scheme import SCHEME
from konverge.apiserver.strategy import Obj

if TYPE_CHECKING:
    from konverge.apiserver.request.admission import AdmissionRequest
    from konverge.apiserver.request.user import User

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
    shown, asked = invocation.served.resource, request.served.resource
    obj = request.obj if request.obj is not None else request.old
    other = obj_kind(request, obj or {})
    found: Obj = {
        "uid": uid,
        "kind": _kind(shown.group, shown.version, shown.kind, other),
        "resource": {"group": shown.group, "version": shown.version, "resource": shown.plural},
        "subResource": request.subresource,
        "requestKind": _kind(asked.group, asked.version, asked.kind, other),
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
        "requestSubResource": request.subresource,
        "name": "" if request.call.info.verb == "deletecollection" else request.name,
        "namespace": request.name if is_namespace(request) else request.namespace,
        "operation": request.operation,
        "userInfo": _user_info(request.user),
    }
    found = {key: value for key, value in found.items() if value != ""}
    found["object"] = invocation.shown(request, request.obj)
    found["oldObject"] = invocation.shown(request, request.old)
    found |= {"dryRun": request.dry_run, "options": request.options}
    return msgspec.json.encode(
        {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": found}
    )


def _kind(group: str, version: str, kind: str, other: tuple[str, str]) -> Obj:
    if other[0]:
        kind = other[0]
        group, _, version = other[1].rpartition("/")
    return {"group": group, "version": version, "kind": kind}


def _user_info(user: User) -> Obj:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in info.items() if value}


# --- the answer


def answer(body: bytes, version: str, uid: str, *, mutating: bool) -> Answer:
    """Raises CallFailed for an answer that cannot be used."""
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
    """What is wrong with a review of another kind or version; one without a kind is seen to later."""
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
        words = "unexpected end of JSON input" if "truncated" in str(error) else str(error)
        raise CallFailed(f"received undecodable patch in webhook response: {words}") from None
    if not isinstance(patch, list):
        raise CallFailed(
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type "
            "jsonpatch.Patch"
        )
    return patch


def denial(hook: Hook, result: Obj | None) -> status.ApiError:
    """The refusal of a webhook, with what it says itself."""
    found = result or {}
    code = found.get("code")
    code = code if isinstance(code, int) and code >= 400 else 400
    reason = str(found.get("reason") or "")
    words = str(found.get("message") or "") or reason
    head = f"admission webhook {quote(hook.name)} denied the request"
    details = found.get("details")
    metadata = found.get("metadata")
    return status.ApiError(
        code,
        reason,
        f"{head}: {words}" if words else f"{head} without explanation",
        details if isinstance(details, dict) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
    )
