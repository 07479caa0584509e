"""What the server's refusals become, and what they say to do."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.client import JsonPatch, errors
from konverge.client.errors import ApiStatusError, Conflict, Expired, Forbidden, NotFound
from konverge.objects import Status
from konverge.objects.resource import Resource
from tests.client.scripted import Script, refused

MAPS = Resource("", "v1", "ConfigMap", "configmaps")
CODES = [
    (400, "BadRequest", errors.BadRequest),
    (401, "Unauthorized", errors.Unauthorized),
    (403, "Forbidden", errors.Forbidden),
    (404, "NotFound", errors.NotFound),
    (409, "AlreadyExists", errors.AlreadyExists),
    (409, "Conflict", errors.Conflict),
    (410, "Expired", errors.Expired),
    (405, "MethodNotAllowed", errors.MethodNotAllowed),
    (406, "NotAcceptable", errors.NotAcceptable),
    (413, "RequestEntityTooLarge", errors.TooLarge),
    (415, "UnsupportedMediaType", errors.UnsupportedMediaType),
    (422, "Invalid", errors.Invalid),
    (429, "TooManyRequests", errors.TooManyRequests),
    (500, "InternalError", errors.InternalError),
    (503, "ServiceUnavailable", errors.Unavailable),
    (504, "Timeout", errors.ServerTimeout),
]


async def error_of(code: int, reason: str = "", message: str = "no", **more: Any) -> ApiStatusError:
    with pytest.raises(ApiStatusError) as caught:
        await Script(refused(code, reason, message, **more)).client().get(MAPS, "a", "shop")
    return caught.value


@pytest.mark.parametrize(("code", "reason", "kind"), CODES)
async def test_the_class_of_a_refusal(code: int, reason: str, kind: type[ApiStatusError]) -> None:
    error = await error_of(code, reason)
    assert (type(error), error.code, error.reason, error.message) == (kind, code, reason, "no")


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 406, 410, 413, 415, 422, 429, 500, 503, 504])
async def test_a_refusal_without_a_reason_has_that_of_its_code(code: int) -> None:
    error = await error_of(code)
    expected = next((reason, kind) for number, reason, kind in CODES if number == code)
    assert (error.reason, type(error)) == expected


@pytest.mark.parametrize(
    ("resource", "where", "can_i", "rule"),
    [
        ("pods/log", "", "can-i get pods --subresource=log --all-namespaces --as=joe", "ClusterRole with"),
        ("pods", ' in the namespace "shop"', "can-i get pods -n shop --as=joe", "Role with"),
    ],
)
async def test_a_missing_right_names_the_rule(resource: str, where: str, can_i: str, rule: str) -> None:
    error = await error_of(403, "Forbidden", f'User "joe" cannot get resource "{resource}" in API group ""{where}')
    assert isinstance(error, Forbidden)
    assert can_i in error.hint()
    assert f'a {rule} {{apiGroups: [""], resources: ["{resource}"], verbs: ["get"]}}' in error.hint()
    assert error.hint() in str(error)


async def test_a_group_is_named_where_there_is_one_and_a_path_has_its_own_rule() -> None:
    error = await error_of(403, "Forbidden", 'User "joe" cannot list resource "jobs" in API group "batch"')
    assert "can-i list jobs.batch" in error.hint()
    error = await error_of(403, "Forbidden", 'User "joe" cannot get path "/metrics"')
    assert '{nonResourceURLs: ["/metrics"], verbs: ["get"]}' in error.hint()
    assert (await error_of(403, "Forbidden", "exceeded quota")).hint() == ""


async def test_two_kinds_of_conflict_have_two_ways_out() -> None:
    assert "Read the object again" in (await error_of(409, "Conflict", "the object has been modified")).hint()
    causes = [{"reason": "FieldManagerConflict", "field": ".spec", "message": "by you"}]
    owned = await error_of(409, "Conflict", details={"causes": causes})
    assert isinstance(owned, Conflict)
    assert "force=True" in owned.hint()
    assert [cause.field for cause in owned.causes] == [".spec"]
    assert (await error_of(409, "Conflict")).hint() == ""


async def test_an_absent_object_is_another_thing_than_an_absent_kind() -> None:
    absent = await error_of(404, "NotFound", details={"kind": "configmaps", "name": "a"})
    unserved = await error_of(404, "NotFound")
    assert isinstance(absent, NotFound)
    assert isinstance(unserved, NotFound)
    assert (absent.kind_missing, unserved.kind_missing) == (False, True)
    assert (absent.hint() == "", unserved.hint() == "") == (True, False)


async def test_what_a_refusal_carries() -> None:
    expired = await error_of(410, "Expired", metadata={"continue": "inconsistent"})
    assert isinstance(expired, Expired)
    assert expired.continue_token == "inconsistent"
    assert (await error_of(429, retry_after="7")).retry_after == 7
    assert (await error_of(500, details={"retryAfterSeconds": 9})).retry_after == 9
    assert (await error_of(500)).retry_after is None
    terminating = await error_of(403, "Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]})
    assert isinstance(terminating, Forbidden)
    assert terminating.namespace_terminating
    assert "[GET /api/v1/namespaces/shop/configmaps/a]" in str(terminating)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (409, "", errors.Conflict),
        (410, "Gone", errors.Expired),
        (500, "ServerTimeout", errors.ServerTimeout),
        (418, "Teapot", ApiStatusError),
        (404, "Unheard", errors.NotFound),
    ],
)
async def test_a_reason_counts_more_than_the_code(code: int, reason: str, kind: type[ApiStatusError]) -> None:
    error = await error_of(code, reason)
    assert (type(error), error.code, error.reason) == (kind, code, reason or kind.default_reason)


@pytest.mark.parametrize(
    ("code", "message", "more", "hint"),
    [
        (400, "metadata.managedFields must be nil", {}, "Apply an object with just the fields"),
        (400, "no", {}, ""),
        (401, "no", {}, "kubectl auth whoami"),
        (410, "no", {}, "list again"),
        (415, "the accepted media types include: application/json", {}, "Custom resources take no strategic merge"),
        (415, "no", {}, ""),
        (422, "no", {}, ""),
        (429, "no", {"details": {"causes": [{"reason": "DisruptionBudget"}]}}, "kubectl get pdb"),
        (429, "no", {"details": {"causes": [{"reason": "Other"}]}}, ""),
        (500, "no", {}, ""),
    ],
)
async def test_what_can_be_done_about_it(code: int, message: str, more: dict[str, Any], hint: str) -> None:
    error = await error_of(code, "", message, **more)
    assert hint in error.hint()
    assert bool(error.hint()) is bool(hint)
    where = "[GET /api/v1/namespaces/shop/configmaps/a]"
    assert str(error) == (f"{message} {where}. {error.hint()}" if hint else f"{message} {where}")


async def test_a_patch_that_does_not_fit_has_its_own_hint() -> None:
    server = Script(refused(422, "Invalid", "the server rejected our request due to an error in our request"))
    client = server.client()
    with pytest.raises(errors.Invalid) as caught:
        await client.patch(MAPS, "a", JsonPatch([]), "shop")
    assert "`test` did not hold" in caught.value.hint()
    with pytest.raises(errors.Invalid) as caught:
        await client.get(MAPS, "a", "shop")
    assert caught.value.hint() == ""
    with pytest.raises(errors.Invalid) as caught:
        await Script(refused(422, "Invalid", "spec is required")).client().patch(MAPS, "a", JsonPatch([]), "shop")
    assert caught.value.hint() == ""


async def test_a_refusal_may_say_nothing() -> None:
    error = await error_of(503, message="")
    assert str(error) == "the server answered 503 without a message [GET /api/v1/namespaces/shop/configmaps/a]"
    assert (error.causes, error.details.kind) == ([], "")
    assert str(errors.error_from_answer(503, b"")) == "the server answered 503 without a message"


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (b" busy \n", 502, "busy"),
        (b"x" * 501, 502, "x" * 500),
        (b"\xff", 502, "\ufffd"),
        (b'{"message":"m"}', 502, "m"),
        (b'{"message":"m","code":409}', 409, "m"),
    ],
)
async def test_an_answer_that_is_no_status_serves_as_the_message(body: bytes, code: int, message: str) -> None:
    error = errors.error_from_answer(502, body)
    assert (error.code, error.message, error.retry_after) == (code, message, None)


async def test_the_wait_that_the_header_names_counts_more_than_that_of_the_body() -> None:
    assert (await error_of(429, retry_after="0", details={"retryAfterSeconds": 9})).retry_after == 0
    assert (await error_of(429, details={"retryAfterSeconds": 0})).retry_after is None


async def test_a_namespace_that_is_not_being_deleted() -> None:
    error = await error_of(403, "Forbidden", details={"causes": [{"reason": "Other"}]})
    assert isinstance(error, Forbidden)
    assert not error.namespace_terminating


def test_an_error_that_a_program_makes_itself_has_the_code_and_reason_of_its_class() -> None:
    made = errors.TooLarge(Status(message="too much"))
    assert (made.code, made.reason, made.message) == (413, "RequestEntityTooLarge", "too much")
    stated = errors.TooLarge(Status(code=414, reason="Longer"))
    assert (stated.code, stated.reason) == (414, "Longer")
    assert str(errors.TooLarge(Status())).startswith("the server answered 413 without a message")
