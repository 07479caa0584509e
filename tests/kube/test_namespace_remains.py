"""What is left of a namespace, as conditions, and when it is looked at again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client.discovery import Served
from konverge.kube import namespace
from konverge.kube.namespace import Remains, conditions, deletable
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace, NamespaceCondition, Pod, PodSpec
from konverge.objects.resource import Resource
from konverge.objects.times import now
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-42")]

PROBLEMS = [
    "NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure", "NamespaceContentRemaining", "NamespaceFinalizersRemaining",
]  # fmt: skip


def item(*finalizers: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "finalizers": list(finalizers)}, **more}


def test_what_is_left_is_counted_by_kind_and_finalizer() -> None:
    remains = Remains()
    assert not remains.anything
    assert remains.problems() == {}
    remains.add(ConfigMap.resource, [])
    assert not remains.anything
    remains.add(Pod.resource, [item("b"), item("a", "b")])
    remains.add(Resource("apps", "v1", "Deployment", "deployments"), [item()])
    assert remains.anything
    problems = remains.problems()
    assert list(problems) == PROBLEMS[3:]
    assert problems["NamespaceContentRemaining"] == (
        "SomeResourcesRemain",
        "Some resources are remaining: deployments.apps has 1 resource instances, pods. has 2 resource instances",
    )
    assert problems["NamespaceFinalizersRemaining"][1].endswith("a in 1 resource instances, b in 2 resource instances")
    failed = Remains(errors=["z", "y"])
    assert failed.anything
    assert failed.problems() == {
        PROBLEMS[2]: ("ContentDeletionFailed", "Failed to delete all resource types, 2 remaining: y, z")
    }
    away = Remains(undiscovered="why")
    assert away.anything
    assert away.problems() == {PROBLEMS[0]: ("DiscoveryFailed", "why")}


async def test_the_times_of_conditions_change_with_their_status() -> None:
    first = conditions([], Remains(errors=["x"]))
    assert [c.type for c in first] == PROBLEMS
    assert [c.status for c in first] == ["False", "False", "True", "False", "False"]
    start = now()
    assert {c.last_transition_time for c in first} == {start}
    await asyncio.sleep(10)
    other = NamespaceCondition(type="Other", status="True", reason="r", message="m")
    second = conditions([other, *first], Remains(errors=["y"], undiscovered="z"))
    assert second[0] == other
    assert [c.last_transition_time for c in second[1:]] == [now(), start, start, start, start]
    assert second[3].message is not None
    assert second[3].message.endswith("remaining: y")
    third = conditions(second, Remains())
    assert [c.status for c in third[1:]] == ["False"] * 5
    assert third[3].reason == "ContentDeleted"
    assert third[3].last_transition_time == now()


async def test_a_namespace_is_looked_at_less_often_the_longer_it_takes() -> None:
    going = Namespace(metadata=ObjectMeta(name="shop", deletion_timestamp=now()))
    delays = []
    for _ in range(6):
        delays.append(namespace._delay(going))
        await asyncio.sleep(8)
    assert delays == [0.5, 2, 4, 6, 8, 8]


async def test_a_pod_that_outlives_its_grace_period_is_unexpected() -> None:
    going = Namespace(metadata=ObjectMeta(name="shop", deletion_timestamp=now()))
    running = item(spec={"terminationGracePeriodSeconds": 30}, status={"phase": "Running"})
    ended = item(spec={"terminationGracePeriodSeconds": 90}, status={"phase": "Failed"})
    plain, kept = item(), item("f")

    def unexpected(*left: dict[str, Any]) -> bool:
        return namespace._is_unexpected(going, list(left))

    assert unexpected(plain)
    assert unexpected(ended)
    assert not unexpected(running, ended)
    assert not unexpected(plain, kept)
    await asyncio.sleep(29)
    assert not unexpected(plain, running)
    await asyncio.sleep(1)
    assert unexpected(plain, running)


def test_each_kind_is_deleted_once_in_its_first_version() -> None:
    def served(group: str, version: str, plural: str, *, namespaced: bool = True, verbs: str = "delete list") -> Served:
        resource = Resource(group, version, plural.title(), plural, namespaced)
        return Served(resource=resource, verbs=tuple(verbs.split()))

    every = [
        served("", "v1", "pods"), served("", "v1", "nodes", namespaced=False),
        served("", "v1", "bindings", verbs="create"),
        served("", "v1", "logs", verbs="list"), served("", "v1", "events"), served("events.k8s.io", "v1", "events"),
        served("x", "v2", "things"), served("x", "v1", "things"), served("y", "v1", "things"),
    ]  # fmt: skip
    chosen = [(item.resource.group, item.resource.version, item.resource.plural) for item in deletable(every)]
    assert chosen == [("", "v1", "pods"), ("", "v1", "events"), ("x", "v2", "things"), ("y", "v1", "things")]


def test_the_last_pod_wakes_its_namespace() -> None:
    trigger = Triggers(*namespace.controllers())
    pod = Pod(metadata=ObjectMeta(name="p", namespace="shop"), spec=PodSpec(containers=[]))
    assert trigger.of(pod, None) == {"namespace shop"}
    assert trigger.of(pod, pod) == trigger.of(None, pod) == set()
