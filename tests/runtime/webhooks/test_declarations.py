"""What a decorated function becomes: names, paths, options, and the configurations that are made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from konverge.objects.kinds.core_v1 import Namespace, Pod
from konverge.objects.meta import LabelSelector
from konverge.runtime.webhooks import BadReview, Denied, FieldError, Review, mutating, validating
from konverge.runtime.webhooks.admission import AdmissionHook
from konverge.runtime.webhooks.configurations import configurations, service_target, url_target
from tests.objects.pools import PoolV1
from tests.runtime.webhooks.pools import Pool, pool

pytestmark = pytest.mark.spec("R-66")

DECORATORS = [validating, mutating]
GIVEN: dict[str, Any] = {
    "operations": ["DELETE", "CONNECT"],
    "subresources": ["", "status", "*"],
    "failure_policy": "Ignore",
    "match_conditions": {"large": "object.spec.most > 5"},
    "namespace_selector": LabelSelector(match_labels={"in": "yes"}),
    "object_selector": LabelSelector(match_labels={"checked": "yes"}),
    "timeout": 30,
    "side_effects": "NoneOnDryRun",
    "match_policy": "Exact",
}


def check(review: Review[Any]) -> None:
    """Look at it."""


def entry(hook: AdmissionHook[Any]) -> dict[str, Any]:
    (configuration,) = configurations([hook], "m", lambda path: {"url": f"https://x{path}"})
    (only,) = configuration["webhooks"]
    assert isinstance(only, dict)
    return only


@pytest.mark.parametrize("decorate", DECORATORS)
def test_every_option_is_in_the_entry_of_its_configuration(decorate: Callable[..., Any]) -> None:
    again = {"reinvocation": "IfNeeded"} if decorate is mutating else {}
    verb = "mutate" if again else "validate"
    assert entry(decorate(Pool, **GIVEN, **again, name="Look at!", path="/look")(check)) == {
        "name": "look-at.pools.tests.konverge.dev",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://x/look"},
        "rules": [
            {
                "apiGroups": ["tests.konverge.dev"],
                "apiVersions": ["v1"],
                "resources": ["pools", "pools/status", "pools/*"],
                "operations": ["DELETE", "CONNECT"],
                "scope": "Namespaced",
            }
        ],
        "failurePolicy": "Ignore",
        "matchPolicy": "Exact",
        "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 30,
        "namespaceSelector": {"matchLabels": {"in": "yes"}},
        "objectSelector": {"matchLabels": {"checked": "yes"}},
        "matchConditions": [{"name": "large", "expression": "object.spec.most > 5"}],
        **({"reinvocationPolicy": "IfNeeded"} if again else {}),
    }
    assert entry(decorate(Pool)(check))["clientConfig"] == {
        "url": f"https://x/{verb}/pools.tests.konverge.dev/v1/check"
    }


@pytest.mark.parametrize("decorate", DECORATORS)
def test_defaults_are_written_as_the_api_server_has_them(decorate: Callable[..., Any]) -> None:
    expected = {
        "name": "check.namespaces.core",
        "admissionReviewVersions": ["v1"],
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["namespaces"],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Cluster",
            }
        ],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": 10,
        "namespaceSelector": {},
        "objectSelector": {},
    }
    made = entry(decorate(Namespace)(check))
    del made["clientConfig"]
    assert made == (expected | {"reinvocationPolicy": "Never"} if decorate is mutating else expected)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_a_hook_stays_the_function_and_knows_its_kinds(decorate: Callable[..., Any]) -> None:
    hook = decorate(PoolV1, of=Pool, match_conditions=None)(check)
    assert (hook.kind, hook.kinds, hook.resource) == (PoolV1, (Pool,), Pool.resource)
    assert (hook.function, hook.__doc__, hook.waits) == (check, "Look at it.", False)
    assert hook.options.match_conditions == {}
    assert hook.name == "check.pools.tests.konverge.dev"

    @decorate(Pool)
    async def later(review: Review[Pool]) -> None:
        review.warn("later")

    assert (later.kinds, later.waits) == ((Pool,), True)


@pytest.mark.parametrize(
    ("name", "slug"), [("a" * 59 + "_b", "a" * 59), ("__Check_Pool2__", "check-pool2"), ("b" * 61, "b" * 60)]
)
def test_names_become_parts_of_a_host_name(name: str, slug: str) -> None:
    hook = validating(Pool, name=name)(check)
    assert (hook.name, hook.path) == (
        f"{slug}.pools.tests.konverge.dev",
        f"/validate/pools.tests.konverge.dev/v1/{slug}",
    )


def test_a_function_without_a_name_needs_one() -> None:
    nameless = validating(Pool, name="???")
    with pytest.raises(ValueError, match=r"has no name that a webhook could be called by; give it a name=…$"):
        nameless(check)
    assert validating(Pool, name="any")(lambda review: None).name == "any.pools.tests.konverge.dev"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"operations": ()}, "operations must be some of CREATE, UPDATE, DELETE, CONNECT, not ()"),
        ({"timeout": 0}, "timeout must be from 1 to 30 seconds, not 0"),
        ({"timeout": 31}, "timeout must be from 1 to 30 seconds, not 31"),
        ({"failure_policy": "fail"}, "'fail' must be one of Fail, Ignore"),
        ({"match_policy": "Any"}, "'Any' must be one of Equivalent, Exact"),
        ({"side_effects": "Some"}, "'Some' must be one of None, NoneOnDryRun"),
        ({"reinvocation": "Always"}, "'Always' must be one of Never, IfNeeded"),
        ({"subresources": ()}, 'subresources must not be empty: "" is the object itself'),
    ],
)
def test_impossible_options_are_refused_with_what_is_possible(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as refused:
        mutating(Pool, **options)(check)
    assert str(refused.value) == problem


@pytest.mark.parametrize("timeout", [1, 30])
def test_the_shortest_and_the_longest_timeout(timeout: int) -> None:
    assert entry(validating(Pool, timeout=timeout)(check))["timeoutSeconds"] == timeout


# ------------------------------------------------------------------ configurations


def test_only_configurations_with_entries_are_made() -> None:
    first, second, third = validating(Pool, name="a")(check), mutating(Pool)(check), validating(Pod, name="b")(check)
    target = service_target("s", "ns", bundle="Yg==", port=8443)
    made = configurations([first, second, third], "pools", target)
    assert [(obj["apiVersion"], obj["kind"], obj["metadata"]) for obj in made] == [
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", {"name": "pools"}),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", {"name": "pools"}),
    ]
    assert [[each["name"] for each in obj["webhooks"]] for obj in made] == [[first.name, third.name], [second.name]]
    assert made[1]["webhooks"][0]["clientConfig"] == {
        "service": {"name": "s", "namespace": "ns", "path": second.path, "port": 8443},
        "caBundle": "Yg==",
    }
    assert [obj["kind"] for obj in configurations([second], "pools", target)] == ["MutatingWebhookConfiguration"]
    assert configurations([], "pools", target) == []


def test_targets_leave_out_a_bundle_that_is_not_known() -> None:
    assert service_target("s", "ns")("/p") == {"service": {"name": "s", "namespace": "ns", "path": "/p", "port": 443}}
    assert url_target("https://x", "")("/p") == {"url": "https://x/p"}
    assert url_target("https://x", "Yg==")("/p") == {"url": "https://x/p", "caBundle": "Yg=="}


# ------------------------------------------------------------------ answers


async def answered(hook: AdmissionHook[Any], **request: Any) -> dict[str, Any]:
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    answer = msgspec.json.decode(await hook.answer(msgspec.json.encode(review)))
    assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response: dict[str, Any] = answer["response"]
    return response


@pytest.mark.parametrize(
    ("version", "kind"), [("admission.k8s.io/v1", "Review"), ("v1", "AdmissionReview"), ("v1", "Pod")]
)
async def test_a_review_of_another_kind_is_named(version: str, kind: str) -> None:
    body = msgspec.json.encode({"apiVersion": version, "kind": kind, "request": {}})
    with pytest.raises(BadReview) as refused:
        await validating(Pool)(check).answer(body)
    assert str(refused.value) == f"this is no AdmissionReview: {version}, Kind={kind}"


async def test_an_answer_has_warnings_and_audit_annotations() -> None:
    @validating(Pool)
    async def note(review: Review[Pool]) -> None:
        review.warn("careful")
        review.audit_annotations["seen"] = review.name

    assert await answered(note, operation="CREATE", name="p", object=msgspec.to_builtins(pool())) == {
        "uid": "u",
        "allowed": True,
        "warnings": ["careful"],
        "auditAnnotations": {"seen": "p"},
    }


async def test_a_refusal_keeps_its_reason_and_its_code() -> None:
    @validating(Pool)
    def closed(review: Review[Pool]) -> None:
        raise Denied("closed", code=409, reason="Taken")

    assert await answered(closed) == {
        "uid": "u",
        "allowed": False,
        "status": {"status": "Failure", "code": 409, "reason": "Taken", "message": "closed"},
    }


async def test_errors_of_both_kinds_are_listed_once() -> None:
    @validating(Pool)
    def fields(review: Review[Pool]) -> None:
        review.error("spec.a", "one")
        raise Denied(FieldError("spec.b", "two"), FieldError("spec.a", "one"), code=409)

    status = (await answered(fields, name="p"))["status"]
    assert (status["code"], status["message"]) == (
        422,
        'Pool.tests.konverge.dev "p" is invalid: [spec.a: Invalid value: one, spec.b: Invalid value: two]',
    )


async def test_a_mutating_function_is_asked_about_a_deletion_too() -> None:
    seen: list[tuple[str, int]] = []

    @mutating(Pool, operations=("DELETE",))
    def note(review: Review[Pool]) -> None:
        review.obj.spec.most += 1
        seen.append((review.operation, review.obj.spec.most))

    old = msgspec.to_builtins(pool(most=4))
    assert await answered(note, operation="DELETE", oldObject=old) == {"uid": "u", "allowed": True}
    assert seen == [("DELETE", 5)]
