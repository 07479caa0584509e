"""The replica sets of a Deployment: names, annotations, collisions, events."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.kube.deployment import controller as deployment
from konverge.kube.deployment.replicasets import scale_annotations, scale_to, split
from konverge.kube.pods import replicas_of
from konverge.objects.kinds.apps_v1 import Deployment, ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import Event
from konverge.runtime.owners import controller_reference
from tests.kube.conftest import Run, running
from tests.kube.deployment.test_controller import Kubelet
from tests.kube.objects import WEB, set_image, template
from tests.kube.objects import deployment as web_deployment

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-32")]

OWN = "deployment.kubernetes.io/"


async def replicasets(client: Client) -> dict[str, ReplicaSet]:
    """By image."""
    listed = (await client.list(ReplicaSet, "default")).items
    return {rs.spec.template.spec.containers[0].image or "": rs for rs in listed if rs.spec.template}


async def events(client: Client) -> list[tuple[str | None, str | None, str]]:
    listed = (await client.list(Event, "default")).items
    mine = [event for event in listed if event.involved_object.kind == "Deployment"]
    assert {event.source.component for event in mine if event.source} <= {"deployment-controller"}
    return [(event.type, event.reason, event.message or "") for event in mine]


async def test_a_set_is_created_after_the_template_with_the_hash_in_name_labels_and_selector(
    client: Client, run: Run
) -> None:
    desired = web_deployment(2, min_ready_seconds=5)
    desired.metadata.annotations = {"team": "a", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    async with run(deployment):
        made = await client.create(desired)
        await asyncio.sleep(1)
        rs = (await replicasets(client))["app:1"]
    digest = rs.metadata.labels["pod-template-hash"]
    assert rs.metadata.name == f"web-{digest}"
    labels = {"app": "web", "pod-template-hash": digest}
    assert rs.spec.selector.match_labels == labels
    assert rs.spec.template is not None
    assert rs.metadata.labels == rs.spec.template.metadata.labels == labels
    assert rs.spec.min_ready_seconds == 5
    assert rs.metadata.owner_references == [controller_reference(made)]
    assert rs.metadata.annotations == {
        "team": "a", f"{OWN}revision": "1", f"{OWN}desired-replicas": "2", f"{OWN}max-replicas": "3",
    }  # fmt: skip
    assert await events(client) == [
        ("Normal", "ScalingReplicaSet", f"Scaled up replica set {rs.metadata.name} from 0 to 2")
    ]
    live = await client.get(Deployment, "web", "default")
    assert live.metadata.annotations[f"{OWN}revision"] == "1"
    assert live.metadata.generation == live.status.observed_generation == 1


async def test_a_long_name_is_cut_so_that_the_hash_fits(client: Client, run: Run) -> None:
    desired = web_deployment(1)
    desired.metadata.name = "a" * 250
    async with run(deployment):
        await client.create(desired)
        await asyncio.sleep(1)
        (rs,) = (await client.list(ReplicaSet, "default")).items
    digest = rs.metadata.labels["pod-template-hash"]
    assert rs.metadata.name == "a" * (252 - len(digest)) + f"-{digest}"
    assert len(rs.metadata.name) == 253


async def test_what_is_noted_about_a_set_follows_the_deployment(client: Client, run: Run) -> None:
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(2))
        await asyncio.sleep(5)
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(5)
        team = MergePatch({"metadata": {"annotations": {"team": "b"}}, "spec": {"minReadySeconds": 3, "replicas": 4}})
        await client.patch(Deployment, "web", team, "default")
        await asyncio.sleep(10)
        rs = (await replicasets(client))["app:2"]
        assert rs.spec.min_ready_seconds == 3
        assert rs.metadata.annotations == {
            "team": "b", f"{OWN}revision": "2", f"{OWN}desired-replicas": "4", f"{OWN}max-replicas": "5",
        }  # fmt: skip
        await set_image(client, Deployment, "web", "app:1")  # back, twice
        await asyncio.sleep(30)
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(30)
        await set_image(client, Deployment, "web", "app:1")
        await asyncio.sleep(30)
        found = await replicasets(client)
        assert found["app:1"].metadata.annotations[f"{OWN}revision"] == "5"
        assert found["app:1"].metadata.annotations[f"{OWN}revision-history"] == "1,3"
        assert found["app:2"].metadata.annotations[f"{OWN}revision-history"] == "2"
        assert {event[:2] for event in await events(client)} == {("Normal", "ScalingReplicaSet")}
        messages = [message for _, _, message in await events(client)]
        name = found["app:1"].metadata.name
        assert f"Scaled down replica set {name} from 1 to 0" in messages
        assert any(message.startswith(f"Scaled up replica set {name} from") for message in messages)


async def foreign(client: Client) -> ReplicaSet:
    """A set with the name that a Deployment `web` would give to its first one, and the template of another."""
    async with running(client, deployment):
        await client.create(web_deployment(1))
        await asyncio.sleep(1)
        (rs,) = (await client.list(ReplicaSet, "default")).items
    await client.delete(Deployment, "web", "default")
    await client.delete(ReplicaSet, rs.metadata.name, "default")
    assert rs.spec.template is not None
    rs.metadata = ObjectMeta(name=rs.metadata.name, namespace="default", labels={"app": "other"})
    rs.spec.template.metadata.labels = rs.spec.selector.match_labels = {"app": "other"}
    rs.spec.replicas = 0
    return await client.create(rs)


async def test_a_name_that_is_taken_leads_to_another(client: Client, run: Run) -> None:
    other = await foreign(client)
    async with run(deployment, replicaset, Kubelet):
        await client.create(web_deployment(1))
        await asyncio.sleep(10)
        kept = await client.get(ReplicaSet, other.metadata.name, "default")
        assert kept.metadata.owner_references == []
        assert kept.metadata.generation == other.metadata.generation
        listed = (await client.list(ReplicaSet, "default")).items
        (mine,) = [rs for rs in listed if rs.metadata.name != other.metadata.name]
        assert replicas_of(mine) == 1
        live = await client.get(Deployment, "web", "default")
        assert (live.status.collision_count, live.status.available_replicas) == (1, 1)
        await set_image(client, Deployment, "web", "app:2")
        await asyncio.sleep(10)
        live = await client.get(Deployment, "web", "default")
        assert (live.status.collision_count, live.status.updated_replicas) == (1, 1)


def test_of_two_sets_with_the_template_the_older_one_is_new() -> None:
    def of(name: str, image: str, minute: int) -> ReplicaSet:
        made = ReplicaSet(metadata=ObjectMeta(name=name), spec=ReplicaSetSpec(selector=WEB, template=template(image)))
        assert made.spec.template is not None
        made.spec.template.metadata.labels = {"app": "web", "pod-template-hash": name}
        made.metadata.creation_timestamp = f"2026-01-01T00:0{minute}:00Z"
        return made

    young, old, other = of("a", "app:1", 5), of("b", "app:1", 3), of("c", "app:2", 1)
    new, rest = split(web_deployment(), [young, other, old])
    assert new is old
    assert [rs.metadata.name for rs in rest] == ["c", "a"]
    assert split(web_deployment(image="app:3"), [young]) == (None, [young])
    unhashed = web_deployment()
    unhashed.spec.template.metadata.labels = {"app": "other"}
    assert split(unhashed, [young])[0] is None


@pytest.mark.parametrize(
    ("noted", "replicas", "patches", "events"),
    [
        ("2", 2, [], []),
        ("9", 2, [None], []),
        ("2", 3, [3], ["Scaled up replica set web-1 from 2 to 3"]),
        ("2", 0, [0], ["Scaled down replica set web-1 from 2 to 0"]),
    ],
)
async def test_a_set_is_written_where_its_size_or_its_notes_change(
    noted: str, replicas: int, patches: list[int | None], events: list[str]
) -> None:
    """A size that does not change is not written: another may be scaling it."""
    said: list[str] = []
    bodies: list[dict[str, Any]] = []

    async def patch(kind: type[Any], name: str, change: MergePatch, namespace: str) -> ReplicaSet:
        assert (kind, name, namespace) == (ReplicaSet, "web-1", "default")
        bodies.append(change.body)
        return rs

    ctx: Any = SimpleNamespace(
        obj=web_deployment(2),
        client=SimpleNamespace(patch=patch),
        event=lambda reason, message: said.append(message) if reason == "ScalingReplicaSet" else None,
    )
    rs = ReplicaSet(metadata=ObjectMeta(name="web-1", namespace="default"), spec=ReplicaSetSpec(replicas=2))
    notes = scale_annotations(ctx.obj)
    rs.metadata.annotations = {**notes, f"{OWN}desired-replicas": noted}
    assert await scale_to(ctx, rs, replicas) is rs
    assert bodies == [
        {"metadata": {"annotations": notes}, **({} if size is None else {"spec": {"replicas": size}})}
        for size in patches
    ]
    assert said == events
