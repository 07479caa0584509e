"""Budgets: how many pods may be disrupted, in every form of a budget; and evictions that never happened."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from konverge.client import Client, MergePatch, TooManyRequests
from konverge.kube import disruption
from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import ReplicaSet
from konverge.objects.kinds.core_v1 import Event, Pod, PodCondition
from konverge.objects.kinds.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from konverge.objects.times import now
from konverge.wire.message import Response
from tests.kube.conftest import Run, make_ready, pods, running
from tests.kube.interposed import Interposed
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-43")]

LABELS = {"app": "web"}


async def budget(client: Client, **spec: Any) -> None:
    body = {"selector": {"matchLabels": LABELS}, **spec}
    made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": body}
    await client.create(made, "default")


async def make_pods(client: Client, count: int, *, ready: int, owner: Any = None) -> None:
    references = [owner] if owner else []
    for number in range(count):
        meta = {"name": f"p{number}", "labels": LABELS, "ownerReferences": references}
        spec = {"containers": [{"name": "m", "image": "i"}], "nodeName": "node-1"}
        await client.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}, "default")
        await make_ready(client, await client.get(Pod, f"p{number}", "default"), ready=number < ready)


async def replica_set(client: Client, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template}
    made = await client.create(
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec}, "default"
    )
    uid = made["metadata"]["uid"]
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": uid, "controller": True}


async def status(client: Client) -> PodDisruptionBudgetStatus:
    await asyncio.sleep(1)
    return (await client.get(PodDisruptionBudget, "b", "default")).status


def numbers(status_: PodDisruptionBudgetStatus) -> tuple[int | None, ...]:
    return status_.expected_pods, status_.desired_healthy, status_.current_healthy, status_.disruptions_allowed


async def test_a_budget_with_a_number_of_pods_that_must_stay(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client, minAvailable=2)
        await make_pods(client, 4, ready=3)
        status_ = await status(client)
        assert numbers(status_) == (4, 2, 3, 1)
        (condition,) = status_.conditions
        assert (condition.type, condition.status, condition.reason) == ("DisruptionAllowed", "True", "SufficientPods")
        assert status_.observed_generation == condition.observed_generation == 1
        await make_ready(client, await client.get(Pod, "p0", "default"), ready=False)
        status_ = await status(client)
        assert numbers(status_) == (4, 2, 2, 0)
        assert [(c.status, c.reason) for c in status_.conditions] == [("False", "InsufficientPods")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"maxUnavailable": 1}, (5, 4, 5, 1)),
        ({"maxUnavailable": "30%"}, (5, 3, 5, 2)),
        ({"minAvailable": "50%"}, (5, 3, 5, 2)),
    ],
)
async def test_a_budget_with_a_share_of_the_controllers_replicas(
    client: Client, run: Run, spec: dict[str, Any], expected: tuple[int, ...]
) -> None:
    owner = await replica_set(client, 5)
    async with run(disruption):
        await budget(client, **spec)
        await make_pods(client, 5, ready=5, owner=owner)
        assert numbers(await status(client)) == expected


async def test_pods_whose_controller_is_unknown_are_not_disrupted(client: Client, run: Run) -> None:
    owner = await replica_set(client, 2)
    async with run(disruption):
        await budget(client, maxUnavailable=1)
        await make_pods(client, 2, ready=2, owner=owner)
        assert (await status(client)).disruptions_allowed == 1
        await client.delete(ReplicaSet, "web", "default")
        await client.patch(Pod, "p0", MergePatch({"metadata": {"labels": {"x": "y"}}}), "default")
        status_ = await status(client)
        assert status_.disruptions_allowed == 0
        assert [(c.status, c.reason) for c in status_.conditions] == [("False", "SyncFailed")]


async def test_a_budget_without_pods_allows_no_disruption(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client, minAvailable=0)
        assert numbers(await status(client)) == (0, 0, 0, 0)


async def test_an_eviction_is_counted_until_its_pod_is_deleted(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client, minAvailable=1)
        await make_pods(client, 2, ready=2)
        assert (await status(client)).disruptions_allowed == 1
        await client.evict("p0", "default")
        status_ = await status(client)
        assert numbers(status_) == (2, 1, 1, 0)
        with pytest.raises(TooManyRequests):
            await client.evict("p1", "default")
        await client.delete(Pod, "p0", "default", grace_period=0)
        assert numbers(await status(client)) == (1, 1, 1, 0)
        assert len(await pods(client)) == 1


async def test_an_eviction_that_never_happened_is_forgotten(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client, minAvailable=1)
        await make_pods(client, 2, ready=2)
        await asyncio.sleep(1)
        since = (await client.get(Pod, "p0", "default")).metadata.creation_timestamp
        patch = MergePatch({"status": {"disruptedPods": {"p0": since}, "disruptionsAllowed": 0}})
        await client.patch(PodDisruptionBudget, "b", patch, "default", subresource="status")
        status_ = await status(client)
        assert (list(status_.disrupted_pods), status_.current_healthy) == (["p0"], 1)
        await asyncio.sleep(130)
        status_ = await status(client)
        assert (status_.disrupted_pods, numbers(status_)) == ({}, (2, 1, 2, 1))


async def test_a_pod_that_survives_its_disruption_is_no_longer_a_target(client: Client, run: Run) -> None:
    async with run(disruption):
        await make_pods(client, 1, ready=1)
        pod = await client.get(Pod, "p0", "default")
        target = {
            "type": disruption.TARGET, "status": "True", "reason": "EvictionByEvictionAPI",
            "lastTransitionTime": pod.metadata.creation_timestamp,
        }  # fmt: skip
        await client.patch(Pod, "p0", MergePatch({"status": {"conditions": [target]}}), "default", subresource="status")

        async def targeted() -> str:
            (condition,) = (await client.get(Pod, "p0", "default")).status.conditions
            return condition.status

        await asyncio.sleep(100)
        assert await targeted() == "True"
        await asyncio.sleep(30)
        assert await targeted() == "False"


async def test_a_budget_that_says_nothing_allows_nothing(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client)
        await make_pods(client, 2, ready=2)
        assert numbers(await status(client)) == (0, 0, 2, 0)


async def reasons(client: Client) -> set[tuple[str | None, str | None, str | None]]:
    listed = (await client.list(Event, "default")).items
    return {(event.type, event.reason, event.source.component if event.source else None) for event in listed}


async def test_pods_without_a_controller_are_reported_where_controllers_count(client: Client, run: Run) -> None:
    owner = await replica_set(client, 2)
    async with run(disruption):
        await make_pods(client, 2, ready=2, owner=owner)
        await budget(client, maxUnavailable=1)
        assert numbers(await status(client)) == (2, 1, 2, 1)
        assert await reasons(client) == set()
        await client.patch(
            Pod, "p1", MergePatch({"metadata": {"ownerReferences": None, "labels": {"a": "b"}}}), "default"
        )
        assert numbers(await status(client)) == (2, 1, 2, 1)
        assert await reasons(client) == {("Warning", "UnmanagedPods", "controllermanager")}


async def test_no_pods_and_uncountable_pods_are_reported(client: Client, run: Run) -> None:
    async with run(disruption):
        await budget(client, maxUnavailable=1)
        await status(client)
        assert await reasons(client) == {("Normal", "NoPods", "controllermanager")}
        stray = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
        await make_pods(client, 1, ready=1, owner=stray)
        assert (await status(client)).disruptions_allowed == 0
        assert ("Warning", "CalculateExpectedPodCountFailed", "controllermanager") in await reasons(client)
        owner = await replica_set(client, 3)
        references = {"metadata": {"ownerReferences": [owner]}}
        await client.patch(Pod, "p0", MergePatch(references), "default")
        await asyncio.sleep(6)  # it is tried again by itself
        assert numbers(await status(client)) == (3, 2, 1, 0)


async def owned_by(client: Client, api_version: str, kind: str, replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "m", "image": "i"}]}}
    selector = LABELS if kind == "ReplicationController" else {"matchLabels": LABELS}
    spec = {"replicas": replicas, "selector": selector, "template": template, "serviceName": "x"}
    if kind != "StatefulSet":
        del spec["serviceName"]
    body = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": spec}
    made = await client.create(body, "default")
    uid = made["metadata"]["uid"]
    return {"apiVersion": api_version, "kind": kind, "name": "web", "uid": uid, "controller": True}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("apps/v1", "StatefulSet"), ("v1", "ReplicationController"), ("apps/v1", "ReplicaSet")],
)
async def test_the_replicas_of_any_controller_count(client: Client, run: Run, api_version: str, kind: str) -> None:
    owner = await owned_by(client, api_version, kind, 7)
    await make_pods(client, 2, ready=2, owner=owner)
    async with run(disruption):
        await budget(client, maxUnavailable="50%")
        assert numbers(await status(client)) == (7, 3, 2, 0)


async def test_the_replicas_of_a_deployment_count_for_all_its_sets(client: Client, run: Run) -> None:
    above = await owned_by(client, "apps/v1", "Deployment", 9)
    below = await replica_set(client, 2)
    owners = MergePatch({"metadata": {"ownerReferences": [above]}})
    await client.patch(ReplicaSet, "web", owners, "default")
    await make_pods(client, 2, ready=2, owner=below)
    async with run(disruption):
        await budget(client, minAvailable="20%")
        assert numbers(await status(client)) == (9, 2, 2, 0)


async def test_a_kind_without_a_scale_cannot_be_counted(client: Client, run: Run) -> None:
    made = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}, "default")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": made["metadata"]["uid"], "controller": True}
    await make_pods(client, 1, ready=1, owner=owner)
    async with run(disruption):
        await budget(client, maxUnavailable=1)
        (condition,) = (await status(client)).conditions
        assert (condition.status, condition.reason) == ("False", "SyncFailed")
        assert condition.message == "ConfigMap web does not implement the scale subresource"
        assert condition.observed_generation in (None, 0)


@pytest.mark.parametrize(("scale", "expected"), [(b'{"spec":{"replicas":6}}', 6), (b'{"spec":{}}', 0), (b"{}", 0)])
async def test_the_scale_of_any_other_kind_counts(client: Client, scale: bytes, expected: int) -> None:
    made = await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}}, "default")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": made["metadata"]["uid"], "controller": True}
    await make_pods(client, 1, ready=1, owner=owner)
    interposed = Interposed(client)
    answer = Response(200, body=scale)
    interposed.rules.append(lambda call: answer if call.target().endswith("/configmaps/web/scale") else None)
    async with running(interposed, disruption):
        await budget(client, maxUnavailable=1)
        assert numbers(await status(client)) == (expected, max(0, expected - 1), 1, 0)


async def test_a_status_is_written_for_the_version_that_was_read(client: Client) -> None:
    """An eviction that was granted meanwhile would be forgotten."""
    interposed = Interposed(client)
    async with running(interposed, disruption):
        await budget(client, minAvailable=1)
        await make_pods(client, 2, ready=2)
        await asyncio.sleep(1)
        made = await client.get(PodDisruptionBudget, "b", "default")
        patches = [json.loads(call.body or b"") for call in interposed.calls if call.subresource == "status"]
    versions = [patch["metadata"] for patch in patches]
    assert versions
    assert all(set(version) == {"resourceVersion"} for version in versions)
    assert int(versions[-1]["resourceVersion"]) < int(made.metadata.resource_version)


async def test_a_settled_budget_is_not_written_again(client: Client) -> None:
    interposed = Interposed(client)
    async with running(interposed, disruption):
        await budget(client, minAvailable=1)
        await make_pods(client, 2, ready=2)
        await asyncio.sleep(1)
        before = len(interposed.writes())
        await client.patch(Pod, "p0", MergePatch({"metadata": {"labels": {"more": "x"}}}), "default")
        await asyncio.sleep(5)
        assert interposed.writes()[before:] == []


@pytest.mark.parametrize(
    ("reason", "change", "kept"),
    [
        ("EvictionByEvictionAPI", {}, False),
        ("TerminationByKubelet", {}, True),
        ("EvictionByEvictionAPI", {"status": {"phase": "Failed"}}, True),
    ],
)
async def test_which_targets_are_released(
    client: Client, run: Run, reason: str, change: dict[str, Any], kept: bool
) -> None:
    await make_pods(client, 1, ready=1)
    target = {
        "type": disruption.TARGET,
        "status": "True",
        "reason": reason,
        "message": "m",
        "lastTransitionTime": now(),
    }
    body = {"status": {"conditions": [target], **change.get("status", {})}}
    await client.patch(Pod, "p0", MergePatch(body), "default", subresource="status")
    async with run(disruption):
        await asyncio.sleep(118)
        (condition,) = (await client.get(Pod, "p0", "default")).status.conditions
        assert condition.status == "True"
        await asyncio.sleep(5)
        (condition,) = (await client.get(Pod, "p0", "default")).status.conditions
        assert condition.status == str(kept)
        if not kept:
            assert (condition.reason, condition.message) == (None, None)
            assert str(condition.last_transition_time) > "2026-01-01T00:01:59Z"


def test_which_changes_concern_a_budget() -> None:
    trigger = Triggers(*disruption.controllers())

    def made(name: str, namespace: str = "default", **labels: str) -> PodDisruptionBudget:
        spec = {"selector": {"matchLabels": labels}}
        return from_dict(PodDisruptionBudget, {"metadata": {"name": name, "namespace": namespace}, "spec": spec})

    cached = [made("b", **LABELS), made("far", "elsewhere", **LABELS), made("other", app="other")]
    pod = from_dict(
        Pod, {"metadata": {"name": "p", "namespace": "default", "labels": LABELS}, "spec": {"containers": []}}
    )
    assert trigger.of(None, pod, cached=cached) == {"disruption default/b"}
    assert trigger.of(pod, pod, cached=cached) == set()
    pod.status.conditions = [from_dict(PodCondition, {"type": "DisruptionTarget", "status": "True"})]
    assert trigger.of(pod, pod, cached=cached) == {"stale-disruption default/p"}
    assert trigger.of(pod, None, cached=cached) == {"disruption default/b"}
