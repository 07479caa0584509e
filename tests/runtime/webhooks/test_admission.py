"""Admission functions, called by the API server: what they are asked, and what their answers lead to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from konverge.apiserver import ApiServer
from konverge.client import (
    Client,
    Conflict,
    Forbidden,
    InternalError,
    Invalid,
    MergePatch,
)
from konverge.objects import CustomResource, Model, NoStatus
from konverge.objects.kinds.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from konverge.objects.kinds.autoscaling_v1 import Scale
from konverge.objects.kinds.core_v1 import Container, Pod, PodSpec, ServiceAccount
from konverge.objects.meta import LabelSelector, ObjectMeta
from konverge.runtime.webhooks import BadReview, Denied, FieldError, Review, UserInfo, Webhook, mutating, validating
from tests.runtime.webhooks.pools import SPACE, Pool, install, manager, pool

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-66")]


@asynccontextmanager
async def serving(server: ApiServer, client: Client, *webhooks: Webhook) -> AsyncIterator[None]:
    await install(client)
    async with manager(client, server.webhooks.in_process, *webhooks).running():
        yield


async def change(client: Client, name: str = "p", **spec: Any) -> Pool:
    return await client.patch(Pool, name, MergePatch({"spec": spec}), SPACE)


async def test_old_and_new_objects_are_typed_and_none_where_there_is_none(server: ApiServer, client: Client) -> None:
    seen: list[tuple[Any, ...]] = []

    @validating(Pool, operations=("CREATE", "UPDATE", "DELETE"))
    async def note(review: Review[Pool]) -> None:
        await asyncio.sleep(0)
        old, new = review.old and review.old.spec.most, review.new and review.new.spec.most
        seen.append((review.operation, old, new, review.obj.spec.most, review.name, review.namespace, review.dry_run))
        assert review.user.groups

    async with serving(server, client, note):
        await client.create(pool(most=4), dry_run=True)
        await client.create(pool(most=4))
        await change(client, most=5)
        await client.delete(Pool, "p", SPACE)
    assert seen == [
        ("CREATE", None, 4, 4, "p", SPACE, True),
        ("CREATE", None, 4, 4, "p", SPACE, False),
        ("UPDATE", 4, 5, 5, "p", SPACE, False),
        ("DELETE", 5, None, 5, "p", SPACE, False),
    ]


async def test_a_refusal_has_its_message_and_its_code(server: ApiServer, client: Client) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        match review.obj.spec.owner:
            case "plain":
                raise Denied("not on Fridays")
            case "conflict":
                raise Denied("taken", code=409)
            case "silent":
                raise Denied

    async with serving(server, client, check):
        with pytest.raises(Forbidden) as refused:
            await client.create(pool(owner="plain"))
        assert refused.value.message == (
            'admission webhook "check.pools.tests.konverge.dev" denied the request: not on Fridays'
        )
        with pytest.raises(Conflict, match="taken"):
            await client.create(pool(owner="conflict"))
        with pytest.raises(Forbidden, match="denied the request: Forbidden"):
            await client.create(pool(owner="silent"))
        await client.create(pool(owner="me"))
    assert [item.spec.owner for item in (await client.list(Pool, SPACE)).items] == ["me"]


async def test_field_errors_are_reported_as_the_api_server_reports_its_own(server: ApiServer, client: Client) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        spec = review.obj.spec
        if spec.least > spec.most:
            review.error("spec.least", "must not be over spec.most", value=spec.least)
        if not spec.owner:
            review.error("spec.owner", problem="Required")
        for index, tag in enumerate(spec.tags):
            if spec.tags.index(tag) != index:
                review.error(f"spec.tags[{index}]", problem="Duplicate", value=tag)

    async with serving(server, client, check):
        with pytest.raises(Invalid) as refused:
            await client.create(pool(least=5, most=2, tags=["a", "a"]))
        head = 'admission webhook "check.pools.tests.konverge.dev" denied the request: '
        assert refused.value.message == head + (
            'Pool.tests.konverge.dev "p" is invalid: [spec.least: Invalid value: 5: must not be over spec.most, '
            'spec.owner: Required value, spec.tags[1]: Duplicate value: "a"]'
        )
        details = refused.value.details
        assert details is not None
        assert (details.name, details.group, details.kind) == ("p", "tests.konverge.dev", "Pool")
        assert [(cause.reason, cause.field) for cause in details.causes] == [
            ("FieldValueInvalid", "spec.least"),
            ("FieldValueRequired", "spec.owner"),
            ("FieldValueDuplicate", "spec.tags[1]"),
        ]
        with pytest.raises(Invalid) as refused:
            await client.create(pool(owner="me", least=5))
        assert refused.value.message.endswith("is invalid: spec.least: Invalid value: 5: must not be over spec.most")


async def test_errors_that_were_collected_are_not_lost_when_it_raises(server: ApiServer, client: Client) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        review.error("spec.a", "one")
        if review.obj.spec.owner == "fields":
            raise Denied(FieldError("spec.b", "two"))
        raise Denied("closed", code=409)

    async with serving(server, client, check):
        with pytest.raises(Invalid, match=r"\[spec.a: Invalid value: one, spec.b: Invalid value: two\]"):
            await client.create(pool(owner="fields"))
        with pytest.raises(Conflict, match=r"closed: .*spec.a: Invalid value: one"):
            await client.create(pool())


async def test_warnings_reach_the_client_also_with_a_refusal(server: ApiServer) -> None:
    from konverge.client import Static

    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        review.warn("least is deprecated,\nuse most")
        if review.obj.spec.owner == "bad":
            raise Denied("no")

    warnings: list[str] = []
    credentials = Static.bearer(server.token)
    warned = Client(server.transport, credentials=credentials, on_warning=lambda warning: warnings.append(warning.text))
    async with warned as client, serving(server, client, check):
        await client.create(pool())
        assert warnings == ["least is deprecated, use most"]
        with pytest.raises(Forbidden):
            await client.create(pool("q", owner="bad"))
    assert warnings == ["least is deprecated, use most"] * 2


async def test_a_mutating_function_changes_the_object_in_place(server: ApiServer, client: Client) -> None:
    @mutating(Pool, operations=("CREATE",))
    def default(review: Review[Pool]) -> None:
        review.obj.metadata.labels.setdefault("team", review.user.username)
        review.obj.spec.tags.append("new")
        review.obj.spec.most = 9

    async with serving(server, client, default):
        made = await client.create(pool(labels={"a": "b"}, tags=["x"]))
        assert made.spec.tags == ["x", "new"]
        assert made.spec.most == 9
        assert made.metadata.labels["a"] == "b"
        assert made.metadata.labels["team"]
        assert (await change(client, most=2)).spec.most == 2  # an update is not reviewed


class SmallSpec(Model):
    tags: list[str] = []


class SmallPool(CustomResource[SmallSpec, NoStatus], group="tests.konverge.dev", version="v1", kind="Pool"):
    """A pool, by an operator that knows little of it."""


async def test_a_field_that_the_class_does_not_know_stays(server: ApiServer, client: Client) -> None:
    @mutating(SmallPool)
    def tag(review: Review[SmallPool]) -> None:
        review.obj.spec.tags = ["tagged"]

    async with serving(server, client, tag):
        made = await client.create(pool(owner="me", most=7))
    assert (made.spec.owner, made.spec.most, made.spec.tags) == ("me", 7, ["tagged"])


async def test_nothing_changed_is_no_patch() -> None:
    @mutating(Pool)
    def nothing(review: Review[Pool]) -> None:
        review.obj.spec.most = review.obj.spec.most

    request = {"uid": "u", "operation": "UPDATE", "object": msgspec.to_builtins(pool(most=4)), "userInfo": {}}
    review = {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": request}
    answer = msgspec.json.decode(await nothing.answer(msgspec.json.encode(review)))
    assert answer == {
        "apiVersion": "admission.k8s.io/v1beta1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


async def test_built_in_kinds_are_reviewed_as_well(server: ApiServer, client: Client) -> None:
    @mutating(Pod, operations=("CREATE",))
    def add_proxy(review: Review[Pod]) -> None:
        review.obj.spec.containers.insert(0, Container(name="proxy", image="proxy:1"))

    @validating(Pod, operations=("CREATE",))
    def check(review: Review[Pod]) -> None:
        if any(container.image == "bad" for container in review.obj.spec.containers):
            review.error("spec.containers", problem="Forbidden", message="bad image")

    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=SPACE)))

    def pod(name: str, image: str) -> Pod:
        return Pod(
            metadata=ObjectMeta(name=name, namespace=SPACE), spec=PodSpec(containers=[Container(name="c", image=image)])
        )

    async with serving(server, client, add_proxy, check):
        made = await client.create(pod("a", "good"))
        assert [container.name for container in made.spec.containers] == ["proxy", "c"]
        with pytest.raises(Invalid, match=r'Pod "b" is invalid: spec.containers: Forbidden: bad image'):
            await client.create(pod("b", "bad"))


async def test_subresources_are_reviewed_with_their_own_kind(server: ApiServer, client: Client) -> None:
    from konverge.objects.kinds.apps_v1 import Deployment, DeploymentSpec
    from konverge.objects.kinds.core_v1 import PodTemplateSpec

    @validating(Scale, of=Deployment, operations=("UPDATE",), subresources=("scale",))
    def not_over(review: Review[Scale]) -> None:
        if (review.obj.spec.replicas or 0) > 5:
            raise Denied(f"{review.subresource} of {review.name} is too much")

    labels = {"a": "b"}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="i")])
    )
    spec = DeploymentSpec(selector=LabelSelector(match_labels=labels), template=template, replicas=1)
    async with serving(server, client, not_over):
        await client.create(Deployment(metadata=ObjectMeta(name="web", namespace=SPACE), spec=spec))
        with pytest.raises(Forbidden, match="scale of web is too much"):
            await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 9}}), SPACE, subresource="scale")
        # The object itself is not reviewed.
        await client.patch(Deployment, "web", MergePatch({"spec": {"replicas": 9}}), SPACE)


async def test_options_select_what_is_reviewed(server: ApiServer, client: Client) -> None:
    asked: list[str] = []

    @validating(
        Pool,
        operations=("CREATE",),
        object_selector=LabelSelector(match_labels={"checked": "yes"}),
        match_conditions={"large": "object.spec.most > 5"},
    )
    def check(review: Review[Pool]) -> None:
        asked.append(review.name)

    async with serving(server, client, check):
        await client.create(pool("no-label", most=9))
        await client.create(pool("small", labels={"checked": "yes"}, most=2))
        await client.create(pool("both", labels={"checked": "yes"}, most=9))
    assert asked == ["both"]


async def test_a_bug_is_a_failure_and_the_policy_decides(
    server: ApiServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    @validating(Pool, failure_policy="Fail")
    def strict(review: Review[Pool]) -> None:
        if review.name == "bug":
            raise KeyError("internal detail")

    @validating(Pool, failure_policy="Ignore")
    def lenient(review: Review[Pool]) -> None:
        raise KeyError("internal detail")

    async with serving(server, client, strict, lenient):
        with pytest.raises(InternalError) as failed:
            await client.create(pool("bug"))
        assert "strict.pools.tests.konverge.dev" in failed.value.message
        assert "the log of the operator says why" in failed.value.message
        assert "internal detail" not in failed.value.message
        assert "internal detail" in caplog.text
        await client.create(pool("fine"))


async def test_a_slow_function_is_bounded_by_the_timeout_of_its_webhook(server: ApiServer, client: Client) -> None:
    ended: list[float] = []
    loop = asyncio.get_running_loop()

    @validating(Pool, timeout=3)
    async def slow(review: Review[Pool]) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            ended.append(loop.time())

    async with serving(server, client, slow):
        began = loop.time()
        with pytest.raises(InternalError, match="failed calling webhook"):
            await client.create(pool())
        await asyncio.sleep(0.1)
        assert len(ended) == 1
        assert ended[0] - began == pytest.approx(3, abs=0.1)


async def test_an_object_that_the_class_cannot_read_is_refused_with_the_reason() -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        assert review.obj.spec.most

    request = {"uid": "u", "operation": "CREATE", "object": {"spec": {"most": "many"}}, "userInfo": {}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response = msgspec.json.decode(await check.answer(msgspec.json.encode(review)))["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 400
    assert "$.spec.most" in response["status"]["message"]


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}", b'{"apiVersion":"v1","kind":"Pod","request":{}}'])
async def test_what_is_no_review_is_a_bad_review(body: bytes) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None: ...

    with pytest.raises(BadReview, match="no AdmissionReview"):
        await check.answer(body)


async def test_a_function_is_tested_without_a_server() -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        if review.old is not None and review.obj.spec.most < review.old.spec.most:
            review.error("spec.most", "does not shrink", value=review.obj.spec.most)
        if review.user.username == "root":
            review.warn("you are root")

    review = Review.of(pool(most=1), old=pool(most=2), user=UserInfo(username="root"))
    check(review)
    assert (review.operation, list(map(str, review.errors))) == (
        "UPDATE",
        ["spec.most: Invalid value: 1: does not shrink"],
    )
    assert review.warnings == ["you are root"]
    assert Review.of(old=pool()).operation == "DELETE"
    assert Review.of(pool()).operation == "CREATE"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"operations": ()}, "operations must be"),
        ({"operations": ("PATCH",)}, "operations must be"),
        ({"timeout": 31}, "from 1 to 30"),
        ({"timeout": 0}, "from 1 to 30"),
        ({"failure_policy": "fail"}, "Fail, Ignore"),
        ({"side_effects": "Some"}, "NoneOnDryRun"),
        ({"match_policy": "Any"}, "Equivalent"),
        ({"subresources": ()}, "subresources"),
    ],
)
async def test_impossible_options_are_refused_at_the_declaration(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        validating(Pool, **options)(lambda review: None)
    with pytest.raises(ValueError, match="name="):
        validating(Pool)(lambda review: None)


@pytest.mark.spec("R-71")
async def test_configurations_are_there_while_the_operator_runs(server: ApiServer, client: Client) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        raise Denied("no")

    @mutating(Pool)
    def default(review: Review[Pool]) -> None: ...

    async with serving(server, client, check, default):
        assert len((await client.list(ValidatingWebhookConfiguration)).items) == 1
        assert len((await client.list(MutatingWebhookConfiguration)).items) == 1
    assert (await client.list(ValidatingWebhookConfiguration)).items == []
    assert (await client.list(MutatingWebhookConfiguration)).items == []
    assert server.webhooks.in_process == {}
    await client.create(pool())


async def test_what_the_class_reads_as_empty_and_was_not_sent_is_added_as_a_whole() -> None:
    """The patch is made for the object as it was sent: there, entries have fields that the class does not know."""
    from base64 import b64decode

    from konverge.apiserver.merge import json_patch

    @mutating(Pod)
    def change(review: Review[Pod]) -> None:
        review.obj.spec.containers[0].image = "new"
        review.obj.spec.containers.insert(0, Container(name="proxy", image="proxy:1"))

    container = {"name": "c", "image": "i", "fromTheFuture": {"a": 1}}
    sent = {"metadata": {"name": "p", "resourceVersion": "1"}, "spec": {"containers": [container], "futureToo": []}}
    request = {"uid": "u", "operation": "CREATE", "object": sent, "userInfo": {}}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response = msgspec.json.decode(await change.answer(msgspec.json.encode(review)))["response"]
    assert response["patchType"] == "JSONPatch"
    changed = json_patch.apply_in_admission(sent, msgspec.json.decode(b64decode(response["patch"])))
    assert changed["spec"] == {
        "containers": [{"name": "proxy", "image": "proxy:1"}, {**container, "image": "new"}],
        "futureToo": [],
    }


@pytest.mark.spec("R-71")
async def test_the_end_of_one_process_leaves_the_configuration_of_its_successor(
    server: ApiServer, client: Client
) -> None:
    @validating(Pool)
    def check(review: Review[Pool]) -> None:
        raise Denied("no")

    await install(client)
    first, second = (manager(client, server.webhooks.in_process, check) for _ in range(2))
    async with asyncio.timeout(600):
        stop = asyncio.Event()
        ending = asyncio.create_task(first.serve(stop))
        await asyncio.sleep(5)
        async with second.running():
            stop.set()
            await ending
            with pytest.raises(Forbidden):
                await client.create(pool())
    assert (await client.list(ValidatingWebhookConfiguration)).items == []
