"""The reviews: objects that are answered and not stored, about who a user is and what the user may do.

Upstream: pkg/registry/authentication, pkg/registry/authorization, pkg/apis/authorization/validation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from konverge.apiserver import aside, field_errors, status
from konverge.apiserver.auth.rules import Attributes, Rule
from konverge.apiserver.auth.service_account_tokens import Refused
from konverge.apiserver.auth.well_known import kubelet_of
from konverge.apiserver.field_errors import FieldError, aggregate
from konverge.apiserver.http import bodies, managed_fields, render, respond, writes
from konverge.apiserver.meta import system
from konverge.apiserver.meta.system import timestamp
from konverge.apiserver.request.call import Call
from konverge.apiserver.request.user import User
from konverge.apiserver.strategy import Obj
from konverge.objects import fields, labels
from konverge.objects.names import label_value_errors, qualified_name_errors
from konverge.wire.message import Response

_AUTHORIZATION = "authorization.k8s.io"
_PATH = "spec.resourceAttributes"
_RULE = 50
"""Bytes of a rule, about."""
_ONE_OF = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


async def _received(call: Call, check: Callable[[Obj], None] | None = None) -> Obj:
    """The review of a request, admitted; `check` raises for one that is not valid."""
    served = call.resource
    review, options = await bodies.received(call, served, "CreateOptions", tables=False)
    metadata = review["metadata"]
    system.wipe(metadata)
    system.match_namespace(metadata, call.info.namespace if served.resource.namespaced else "")
    await aside.run(len(call.request.body), managed_fields.track, call, served, None, review, options)
    return await writes.admit_unstored(call, review, options, metadata.get("name") or "", check)


def _answered(call: Call, review: Obj) -> Response:
    return respond.answer(call, 201, render.unstored(call, review))


async def self_subject(call: Call) -> Response:
    review = await _received(call)
    shown = {"kind": review["kind"], "apiVersion": review["apiVersion"]}
    info = call.user.info()
    return _answered(call, {**shown, "metadata": {"creationTimestamp": timestamp()}, "status": {"userInfo": info}})


async def token(call: Call) -> Response:
    review = await _received(call, _has_token)
    spec = review["spec"]
    audiences = tuple(spec.get("audiences") or ()) or call.server.config.auth.own_audiences
    result: Obj = {}
    try:
        authenticated = call.server.gate.authentication.token(spec["token"], audiences)
    except Refused as error:
        result = {"user": {}, "error": str(error)}
    else:
        result = {"authenticated": True, "user": authenticated.user.info()}
        result["audiences"] = list(authenticated.audiences)
    await call.server.store.present_settled(call.reverts)
    return _answered(call, {**review, "status": result})


async def self_access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_access_errors(review, subject=False)))
    return await _decided(call, review, call.user)


async def access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_access_errors(review, subject=True)))
    return await _decided(call, review, _subject(review["spec"]))


async def local_access(call: Call) -> Response:
    review = await _received(call, lambda review: _refuse(_local_errors(review)))
    return await _decided(call, review, _subject(review["spec"]))


async def _decided(call: Call, review: Obj, user: User) -> Response:
    attributes, ignored = await aside.run(len(call.request.body), _asked, review["spec"])
    decision = call.server.gate.authorization.decide(user, attributes)
    result: Obj = {"allowed": decision.allowed}
    if decision.reason:
        result["reason"] = decision.reason
    if ignored:
        result["evaluationError"] = "; ".join(ignored)
    return _answered(call, {**review, "status": result})


def _asked(spec: Obj) -> tuple[Attributes, list[str]]:
    """What a review asks, and messages about what could not be read of it."""
    return _attributes(spec), _unread_selectors(spec.get("resourceAttributes") or {})


async def self_rules(call: Call) -> Response:
    review = await _received(call, _has_namespace)
    rules, problems = await call.server.gate.authorization.rbac.rules_of(call.user, review["spec"]["namespace"])
    result = await aside.run(_RULE * len(rules), _shown, rules)
    if kubelet_of(call.user.name, call.user.groups):
        problems.insert(0, "node authorizer does not support user rule resolution")
        result["incomplete"] = True
    if problems:
        result["evaluationError"] = aggregate(problems)
    shown = {"kind": review["kind"], "apiVersion": review["apiVersion"], "metadata": {}, "spec": {}}
    return await aside.run(_RULE * len(rules), _answered, call, {**shown, "status": result})


def _shown(rules: list[Rule]) -> Obj:
    result: Obj = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    for rule in rules:
        if rule.resources:
            parts = {"apiGroups": rule.api_groups, "resources": rule.resources, "resourceNames": rule.names}
            named = {key: part for key, part in parts.items() if part}
            result["resourceRules"].append({"verbs": rule.verbs, **named})
        if rule.urls:
            result["nonResourceRules"].append({"verbs": rule.verbs, "nonResourceURLs": rule.urls})
    return result


def _subject(spec: Obj) -> User:
    return User(spec.get("user") or "", spec.get("uid") or "", tuple(spec.get("groups") or ()), spec.get("extra") or {})


def _attributes(spec: Obj) -> Attributes:
    """Upstream: AuthorizationAttributesFrom (pkg/registry/authorization/util)."""
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(path.get("verb", ""), path=path.get("path", ""), is_resource=False)
    parts = ("verb", "group", "resource", "subresource", "namespace", "name")
    verb, group, plural, subresource, namespace, name = (resource.get(part) or "" for part in parts)
    return Attributes(verb, group, plural, subresource, namespace, name, selector=_equalities(resource))


# --- validity


def _has_token(review: Obj) -> None:
    if not (review.get("spec") or {}).get("token"):
        raise status.bad_request("token is required for TokenReview in authentication")


def _has_namespace(review: Obj) -> None:
    if not (review.get("spec") or {}).get("namespace"):
        raise status.bad_request("no namespace on request")


def _refuse(errors: Iterable[FieldError]) -> None:
    """The real server leaves the kind out of these refusals."""
    errors = list(errors)
    if errors:
        raise status.invalid(_AUTHORIZATION, "", "", errors)


def _access_errors(review: Obj, *, subject: bool) -> Iterator[FieldError]:
    """Upstream: ValidateSubjectAccessReview, ValidateSelfSubjectAccessReview."""
    spec = review.get("spec") or {}
    yield from _spec_errors(spec, subject=subject)
    if _without_fields(review["metadata"]):
        yield field_errors.invalid("metadata", review["metadata"], "must be empty")


def _local_errors(review: Obj) -> Iterator[FieldError]:
    """Upstream: ValidateLocalSubjectAccessReview."""
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
        yield from _selector_errors(resource)


def _internal_path(spec: Obj) -> Obj | None:
    """The attributes as the real server prints its own struct."""
    path = spec.get("nonResourceAttributes")
    return None if path is None else {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _without_fields(metadata: Obj) -> Obj:
    return {key: value for key, value in metadata.items() if key != "managedFields" and value}


# --- the selectors of a review: their form is checked, RBAC itself does not look at them


def _selector_errors(resource: Obj) -> Iterator[FieldError]:
    for name in ("fieldSelector", "labelSelector"):
        selector = resource.get(name)
        if selector is not None:
            yield from _requirements_errors(selector, f"{_PATH}.{name}")


def _requirements_errors(selector: Obj, path: str) -> Iterator[FieldError]:
    """Upstream: validateFieldSelectorAttributes, validateLabelSelectorAttributes."""
    raw, requirements = selector.get("rawSelector"), selector.get("requirements") or []
    if raw and requirements:
        yield field_errors.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        detail = f"when {path} is specified, requirements or rawSelector is required"
        yield field_errors.required(f"{path}.requirements", detail)
    for index, requirement in enumerate(requirements):
        yield from _requirement_errors(
            requirement, f"{path}.requirements[{index}]", labels=path.endswith("labelSelector")
        )


def _requirement_errors(requirement: Obj, path: str, *, labels: bool) -> Iterator[FieldError]:
    """Unknown operators are valid: a newer client may know more than this server."""
    key, operator, values = (requirement.get(part) or "" for part in ("key", "operator", "values"))
    if not labels and not key:
        yield field_errors.required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn") and not values:
        yield field_errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    if operator in ("Exists", "DoesNotExist") and values:
        yield field_errors.forbidden(
            f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        )
    if labels:
        for detail in qualified_name_errors(key):
            yield field_errors.invalid(f"{path}.key", key, detail)


def _equalities(resource: Obj) -> str:
    """The field selector of a review, as a request would have it; only its equalities."""
    selector = resource.get("fieldSelector") or {}
    if not selector.get("requirements"):
        return str(selector.get("rawSelector") or "")
    return ",".join(
        f"{requirement.get('key')}={requirement['values'][0]}"
        for requirement in selector["requirements"]
        if requirement.get("operator") == "In" and len(requirement.get("values") or ()) == 1
    )


def _unread_selectors(resource: Obj) -> list[str]:
    """A message for each selector that could not be read, as a whole or in part. Upstream: BuildEvaluationError."""
    messages = []
    for name, parse, good in (
        ("fieldSelector", fields.parse, _good_field),
        ("labelSelector", labels.parse, _good_label),
    ):
        selector = resource.get(name) or {}
        requirements = selector.get("requirements") or ()
        bad = [requirement for requirement in requirements if not good(requirement)]
        if not bad and (requirements or _reads(parse, selector.get("rawSelector") or "")):
            continue
        partially = "partially " if len(bad) < len(requirements) else ""
        messages.append(f"{_PATH}.{name} {partially}ignored due to parse error")
    return messages


def _good_field(requirement: Obj) -> bool:
    return requirement.get("operator") in ("In", "NotIn") and len(requirement.get("values") or ()) == 1


def _good_label(requirement: Obj) -> bool:
    operator = requirement.get("operator")
    valid = not any(label_value_errors(value) for value in requirement.get("values") or ())
    return operator in ("In", "NotIn", "Exists", "DoesNotExist") and valid


def _reads(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except labels.SelectorError:
        return False
    return True
