"""What controllers ask of pods, which changes of a pod matter, and how pods are created and deleted in batches."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, ClientError, Conflict, Forbidden
from konverge.client.errors import error_from_answer
from konverge.kube import pods as podlib
from konverge.kube.pod_control import creating, slow_start
from konverge.kube.pod_predicates import by_node, moved, placed
from konverge.objects.codec import from_dict
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, PodTemplateSpec
from konverge.objects.times import now
from tests.kube.objects import deployment
from tests.kube.triggers import change, record

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-33")]


def pod(spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None, **metadata: Any) -> Pod:
    document = {"metadata": {"name": "p", "namespace": "default", **metadata}, "status": status or {}}
    return from_dict(Pod, {**document, "spec": {"containers": [], **(spec or {})}})


def ready(status: str = "True", since: str | None = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {"conditions": [{"type": "Other", "status": "True"}, {"type": "Ready", "status": status, "lastTransitionTime": since}]}  # fmt: skip # noqa: E501


def test_a_pod_of_a_template() -> None:
    meta = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["tests.konverge.dev/kept"]}
    template = from_dict(PodTemplateSpec, {"metadata": meta, "spec": {"containers": [{"name": "main"}]}})
    owner = deployment()
    made = podlib.from_template(owner, template)
    assert (made.metadata.name, made.metadata.generate_name, made.metadata.namespace) == ("", "web-", "default")
    assert (made.metadata.labels, made.metadata.annotations) == ({"a": "b"}, {"c": "d"})
    assert made.metadata.finalizers == ["tests.konverge.dev/kept"]
    assert [(owner.kind, owner.name, owner.controller) for owner in made.metadata.owner_references] == [
        ("Deployment", "web", True)
    ]
    assert made.spec == template.spec
    made.spec.containers[0].image = "changed"
    made.metadata.labels["x"] = "y"
    assert template.spec.containers[0].image is None
    assert template.metadata.labels == {"a": "b"}
    assert podlib.from_template(owner, template, name="web-0").metadata.name == "web-0"


@pytest.mark.parametrize(("length", "prefix"), [(252, 253), (253, 253)])
def test_a_generated_name_of_the_longest_owner_has_no_dash(length: int, prefix: int) -> None:
    owner = deployment()
    owner.metadata.name = "a" * length
    made = podlib.from_template(owner, owner.spec.template)
    assert len(made.metadata.generate_name) == prefix
    assert made.metadata.generate_name.endswith("-") == (length < 253)


def test_the_default_of_replicas_is_one() -> None:
    owner = deployment(0)
    assert podlib.replicas_of(owner) == 0
    owner.spec.replicas = None
    assert podlib.replicas_of(owner) == 1


async def test_a_ready_pod_becomes_available_with_age() -> None:
    seen = pod(status=ready(since=now()))
    assert podlib.available_in(seen, 0) == 0
    assert podlib.available_in(seen, 30) == 30
    await asyncio.sleep(10)
    assert podlib.available_in(seen, 30) == 20
    await asyncio.sleep(30)
    assert podlib.available_in(seen, 30) == 0
    assert podlib.available_in(pod(status=ready(since=None)), 30) == 0
    assert podlib.available_in(pod(status=ready("False")), 30) is None
    assert podlib.available_in(pod(status=ready("False")), 0) is None
    assert podlib.available_in(pod(), 30) is None


def test_pods_are_active_until_they_end_or_are_deleted() -> None:
    assert podlib.is_active(pod())
    assert podlib.is_active(pod(status={"phase": "Running"}))
    for phase in ("Succeeded", "Failed"):
        assert podlib.is_terminated(pod(status={"phase": phase}))
        assert not podlib.is_active(pod(status={"phase": phase}))
    assert not podlib.is_active(pod(deletionTimestamp=now()))
    assert not podlib.is_terminated(pod(deletionTimestamp=now()))
    assert podlib.is_ready(pod(status=ready()))
    assert not podlib.is_ready(pod(status=ready("False")))


def test_a_condition_is_put_where_it_was_or_at_the_end() -> None:
    def order(kind: str) -> list[str]:
        patch = podlib.condition_patch(pod(status=ready()), {"type": kind, "status": "True"})
        assert patch["conditions"] == [{"type": kind, "status": "True"}]
        return [item["type"] for item in patch["$setElementOrder/conditions"]]

    assert order("Other") == ["Other", "Ready"]
    assert order("Ready") == ["Other", "Ready"]
    assert order("New") == ["Other", "Ready", "New"]


def test_later_times_come_first() -> None:
    times = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", ""]
    assert sorted(times, key=podlib.descending) == ["", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]


# ------------------------------------------------------------------ which changes matter


PLAIN = pod({"nodeName": "n"}, {"phase": "Running", **ready()})


@pytest.mark.parametrize(
    ("other", "matters"),
    [
        (pod({"nodeName": "n"}, {"phase": "Running", **ready(since="2026-01-01T00:00:09Z")}), False),
        (pod({"nodeName": "n"}, {"phase": "Running", **ready()}, annotations={"a": "b"}), False),
        (pod({"nodeName": "n"}, {"phase": "Running", **ready()}, labels={"a": "b"}), True),
        (pod({"nodeName": "n"}, {"phase": "Running", **ready()}, deletionTimestamp=now()), True),
        (pod({"nodeName": "n"}, {"phase": "Running", **ready("False")}), True),
        (pod({"nodeName": "n"}, {"phase": "Succeeded", **ready()}), True),
        (pod({"nodeName": "n"}, {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], **ready()}), True),
        (pod({"nodeName": "m"}, {"phase": "Running", **ready()}), True),
        (pod({"nodeName": "n", "hostname": "h"}, {"phase": "Running", **ready()}), True),
        (pod({"nodeName": "n", "subdomain": "s"}, {"phase": "Running", **ready()}), True),
    ],
)
def test_what_a_service_sees_of_a_pod(other: Pod, matters: bool) -> None:
    assert moved(change(PLAIN, other)) is matters
    assert moved(change(other, PLAIN)) is matters
    assert moved(change(None, other))
    assert moved(change(other, None))


@pytest.mark.parametrize(
    ("old", "new", "matters"),
    [
        (None, pod(), False),
        (None, pod({"nodeName": "n"}), True),
        (None, pod(deletionTimestamp=now()), True),
        (None, pod(status={"phase": "Failed"}), True),
        (None, pod(status={"phase": "Succeeded"}), True),
        (None, pod(status={"phase": "Running"}), False),
        (pod(), pod({"nodeName": "n"}), True),
        (pod({"nodeName": "n"}), pod({"nodeName": "n"}, ready()), False),
        (pod({"nodeName": "n"}), pod({"nodeName": "n"}, deletionTimestamp=now()), True),
        (pod({"nodeName": "n"}), pod({"nodeName": "n"}, {"phase": "Failed"}), True),
        (pod({"nodeName": "n"}, {"phase": "Succeeded"}), pod({"nodeName": "n"}, {"phase": "Failed"}), False),
        (pod({"nodeName": "n"}), None, False),
    ],
)
def test_a_pod_that_was_bound_is_being_deleted_or_ended(old: Pod | None, new: Pod | None, matters: bool) -> None:
    assert placed(change(old, new)) is matters


def test_pods_are_indexed_by_their_node() -> None:
    for spec, expected in (({"nodeName": "n"}, ("n",)), ({}, ())):
        found = record(pod(spec))
        assert tuple(by_node(found, found.meta)) == expected


# ------------------------------------------------------------------ batches


def refused(code: int = 500) -> ClientError:
    return error_from_answer(code, b'{"kind":"Status","message":"refused"}')


@pytest.mark.parametrize(("failing", "tried"), [(None, 20), (0, 1), (1, 3), (4, 7), (7, 15), (19, 20)])
async def test_batches_double_until_one_is_refused(failing: int | None, tried: int) -> None:
    called: list[int] = []

    async def call(number: int) -> int:
        called.append(number)
        if number == failing:
            raise refused()
        return number

    done, refusal = await slow_start([lambda n=number: call(n) for number in range(20)])  # type: ignore[misc]
    assert called == list(range(tried))
    assert done == [number for number in called if number != failing]
    assert (refusal is not None) == (failing is not None)


async def test_a_mistake_of_ours_is_not_taken_for_a_refusal() -> None:
    async def call() -> None:
        raise KeyError("mistake")

    with pytest.raises(KeyError):
        await slow_start([call])


async def test_creating_ignores_what_exists_and_what_is_going_away(client: Client) -> None:
    terminating = b'{"kind":"Status","reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}'
    for code, body in ((409, b'{"reason":"AlreadyExists"}'), (404, b'{"reason":"NotFound"}'), (403, terminating)):
        with creating():
            raise error_from_answer(code, body)
    for code, expected in ((403, Forbidden), (409, Conflict)):
        with pytest.raises(expected), creating():
            raise refused(code)
    with creating():
        await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    assert (await client.get(ConfigMap, "a", "default")).metadata.uid
