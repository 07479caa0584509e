"""The reviews: objects that are answered and not stored, about who somebody is and what they may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from konverge.apiserver import field_errors, status
from konverge.apiserver.auth.rules import Ask
from konverge.apiserver.auth.selector_validation import equalities, selector_errors, unread_selectors
from konverge.apiserver.auth.service_account_tokens import Refused
from konverge.apiserver.auth.well_known import kubelet_of
from konverge.apiserver.field_errors import FieldError, aggregate
from konverge.apiserver.http import bodies, managed_fields, respond, writes
from konverge.apiserver.http.options import write_options
from konverge.apiserver.meta import system
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.wire.message import Response

if TYPE_CHECKING:
    from konverge.apiserver.request.call import Call

_AUTHORIZATION = "authorization.k8s.io"
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"

Check = Callable[[Obj], None]


async def _received(call: Call, check: Check | None = None) -> Obj:
    """The review of a request, admitted; `check` raises for one that is not valid."""
    served = call.resource
    respond.settle_form(call)
    bodies.check_media(call, served)
    options = write_options(call.query, "CreateOptions")
    review = bodies.read(call, served, bodies.checked_body(call), options.field_validation)
    metadata = review["metadata"]
    system.wipe(metadata)
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    managed_fields.track(call, served, None, review, options)
    call.operation, call.dry_run = "CREATE", options.dry_run
    request = writes.admission_request(call, served, review, None, options.body(), metadata.get("name") or "")
    await call.server.admission.admit(request)
    assert request.obj is not None
    if check is not None:
        check(request.obj)
    await call.server.admission.validate(request)
    return request.obj


async def self_subject(call: Call) -> Response:
    review = await _received(call)
    shown = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    info = _user_info(call.user)
    return respond.answer(
        call, 201, {**shown, "metadata": {"creationTimestamp": timestamp()}, "status": {"userInfo": info}}
    )


async def token(call: Call) -> Response:
    review = await _received(call, _has_token)
    spec = review["spec"]
    audiences = tuple(spec.get("audiences") or ()) or call.server.config.auth.own_audiences
    found: Obj = {}
    try:
        authenticated = call.server.gate.authentication.token(spec["token"], audiences)
    except Refused as error:
        found = {"user": {}, "error": str(error)}
    else:
        found = {"authenticated": True, "user": _user_info(authenticated.user)}
        found["audiences"] = list(authenticated.audiences)
    return respond.answer(call, 201, {**review, "status": found})


async def self_access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_access_errors(review, subject=False)))
    return _decided(call, review, call.user)


async def access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_access_errors(review, subject=True)))
    return _decided(call, review, _subject(review["spec"]))


async def local_access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_local_errors(review)))
    return _decided(call, review, _subject(review["spec"]))


def _decided(call: Call, review: Obj, user: User) -> Response:
    decision = call.server.gate.authorization.decide(user, _ask(review["spec"]))
    found: Obj = {"allowed": decision.allowed}
    if decision.reason:
        found["reason"] = decision.reason
    ignored = unread_selectors(review["spec"].get("resourceAttributes") or {})
    if ignored:
        found["evaluationError"] = "; ".join(ignored)
    return respond.answer(call, 201, {**review, "status": found})


async def self_rules(call: Call) -> Response:
    review = await _received(call, _has_namespace)
    rules, problems = call.server.gate.authorization.rbac.rules_of(call.user, review["spec"]["namespace"])
    found: Obj = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    for rule in rules:
        verbs = {"verbs": list(rule.verbs)}
        if rule.resources:
            parts = {"apiGroups": rule.api_groups, "resources": rule.resources, "resourceNames": rule.names}
            found["resourceRules"].append({**verbs, **{key: list(part) for key, part in parts.items() if part}})
        if rule.urls:
            found["nonResourceRules"].append({**verbs, "nonResourceURLs": list(rule.urls)})
    if kubelet_of(call.user.name, call.user.groups):
        problems.insert(0, "node authorizer does not support user rule resolution")
        found["incomplete"] = True
    if problems:
        found["evaluationError"] = aggregate(problems)
    shown = {"kind": review["kind"], "apiVersion": review["apiVersion"], "metadata": {}, "spec": {}}
    return respond.answer(call, 201, {**shown, "status": found})


def _user_info(user: User) -> Obj:
    info = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
    return {key: value for key, value in info.items() if value}


def _subject(spec: Obj) -> User:
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), spec.get("extra") or {})


def _ask(spec: Obj) -> Ask:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Ask(path.get("verb", ""), path=path.get("path", ""), is_resource=False)
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    verb, group, plural, subresource, namespace, name = (resource.get(part) or "" for part in parts)
    return Ask(verb, group, plural, subresource, namespace, name, selector=equalities(resource))


# --- validity


def _has_token(review: Obj) -> None:
    if not (review.get("spec") or {}).get("token"):
        raise status.bad_request("token is required for TokenReview in authentication")


def _has_namespace(review: Obj) -> None:
    if not (review.get("spec") or {}).get("namespace"):
        raise status.bad_request("no namespace on request")


def _refuse(errors: Iterator[FieldError]) -> None:
    """The real server leaves the kind out of these refusals."""
    found = list(errors)
    if found:
        raise status.invalid(_AUTHORIZATION, "", "", found)


def _access_errors(review: Obj, *, subject: bool) -> Iterator[FieldError]:
    spec = review.get("spec") or {}
    yield from _spec_errors(spec, subject=subject)
    if _without_fields(review["metadata"]):
        yield field_errors.invalid("metadata", review["metadata"], "must be empty")


def _local_errors(review: Obj) -> Iterator[FieldError]:
    spec, metadata = review.get("spec") or {}, review["metadata"]
    yield from _spec_errors(spec, subject=True)
    if _without_fields(metadata).keys() - {"namespace"}:
        yield field_errors.invalid("metadata", metadata, "must be empty except for namespace")
    resource = spec.get("resourceAttributes")
    if resource is not None and resource.get("namespace", "") != metadata.get("namespace", ""):
        path = "spec.resourceAttributes.namespace"
        yield field_errors.invalid(path, resource.get("namespace", ""), "must match metadata.namespace")
    if spec.get("nonResourceAttributes") is not None:
        path = "spec.nonResourceAttributes"
        yield field_errors.invalid(path, _internal_path(spec), "disallowed on this kind of request")


def _spec_errors(spec: Obj, *, subject: bool) -> Iterator[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is (path is None):
        yield field_errors.invalid("spec", _internal_path(spec), _ONE_OF)
    if subject and not spec.get("user") and not spec.get("groups"):
        yield field_errors.invalid("spec.user", "", "at least one of user or group must be specified")
    if resource is not None:
        yield from selector_errors(resource)


def _internal_path(spec: Obj) -> Obj | None:
    """The attributes as the real server prints its own struct."""
    path = spec.get("nonResourceAttributes")
    return None if path is None else {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _without_fields(metadata: Obj) -> Obj:
    return {key: value for key, value in metadata.items() if key != "managedFields" and value}
