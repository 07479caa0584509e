"""ControllerRevisions: one per template, numbers that rise, collisions, adoption."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from konverge import ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import revisions
from konverge.kube.daemonset import controller as daemonset
from konverge.kube.gc.controller import GarbageCollector
from konverge.kube.hashing import hash_of
from konverge.kube.statefulset import controller as statefulset
from konverge.objects.codec import to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision, DaemonSet, StatefulSet
from konverge.wire.message import Response
from tests.kube.conftest import Run, pods, running
from tests.kube.interposed import Interposed, reads
from tests.kube.kubelet import Kubelet
from tests.kube.objects import add_node, set_image, template
from tests.kube.objects import daemonset as agent_daemonset
from tests.kube.objects import statefulset as web_statefulset

pytestmark = [pytest.mark.spec("R-34"), pytest.mark.spec("R-35")]
virtual = pytest.mark.virtual


async def live_revisions(client: Client) -> list[ControllerRevision]:
    return revisions.ordered((await client.list(ControllerRevision, "default")).items)


def test_a_revision_restores_its_template() -> None:
    original = template("app:7")
    data = revisions.data_of(original)
    revision = ControllerRevision(metadata=ObjectMeta(name="r"), data=data, revision=1)
    assert revisions.template_of(revision) == original
    assert list(data["spec"]["template"]) == sorted(data["spec"]["template"])


def test_revisions_are_sorted_by_number_then_by_time() -> None:
    def made(name: str, number: int, time: str) -> ControllerRevision:
        return ControllerRevision(metadata=ObjectMeta(name=name, creation_timestamp=time), data={}, revision=number)

    mixed = [made("c", 2, "2"), made("b", 1, "2"), made("a", 2, "1")]
    assert [revision.metadata.name for revision in revisions.ordered(mixed)] == ["b", "a", "c"]


@virtual
async def test_a_name_that_is_taken_is_counted_as_a_collision(client: Client, run: Run) -> None:
    made = await client.create(web_statefulset(1))
    taken = f"web-{hash_of(revisions.data_of(made.spec.template), 0)}"
    await client.create(
        ControllerRevision(metadata=ObjectMeta(name=taken, namespace="default"), data={"other": 1}, revision=1)
    )
    async with run(statefulset, Kubelet()):
        await asyncio.sleep(10)
        status = (await client.get(StatefulSet, "web", "default")).status
        assert status.collision_count == 1
        assert status.update_revision != taken
        assert status.ready_replicas == 1
        assert len(await live_revisions(client)) == 2  # and no third one at the next look


@virtual
async def test_revisions_left_by_an_orphaning_deletion_are_adopted(client: Client, run: Run) -> None:
    collecting = asyncio.create_task(GarbageCollector().run(client))
    async with run(statefulset, Kubelet()):
        await client.create(web_statefulset(2))
        await asyncio.sleep(10)
        await set_image(client, StatefulSet, "web", "app:2")
        await asyncio.sleep(10)
        before = {pod.metadata.uid for pod in await pods(client)}
        await client.delete(StatefulSet, "web", "default", propagation="Orphan")
        await asyncio.sleep(10)
        assert all(revision.metadata.owner_references == [] for revision in await live_revisions(client))
        again = await client.create(web_statefulset(2, "app:2"))
        await asyncio.sleep(10)
        owners = [
            owner.uid for revision in await live_revisions(client) for owner in revision.metadata.owner_references
        ]
        assert owners == [again.metadata.uid] * 2
        assert {pod.metadata.uid for pod in await pods(client)} == before
    collecting.cancel()
    await asyncio.gather(collecting, return_exceptions=True)


@virtual
async def test_a_deleted_revision_is_created_again(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        await add_node(client, "a")
        await client.create(agent_daemonset())
        await asyncio.sleep(5)
        (revision,) = await live_revisions(client)
        await client.delete(ControllerRevision, revision.metadata.name, "default")
        await asyncio.sleep(5)
        (again,) = await live_revisions(client)
        assert again.metadata.name == revision.metadata.name
        assert again.metadata.uid != revision.metadata.uid
        patch: dict[str, Any] = {"spec": {"template": {"metadata": {"annotations": {"restarted": "now"}}}}}
        await client.patch(DaemonSet, "agent", MergePatch(patch), "default")
        await asyncio.sleep(5)
        assert [revision.revision for revision in await live_revisions(client)] == [1, 2]


@virtual
async def test_a_template_that_comes_back_gets_the_highest_number(client: Client, run: Run) -> None:
    async with run(daemonset, Kubelet()):
        await add_node(client, "a")
        agent = agent_daemonset()
        agent.metadata.annotations = {"team": "a"}
        await client.create(agent)
        await asyncio.sleep(5)
        (first,) = await live_revisions(client)
        assert first.metadata.annotations["team"] == "a"
        assert first.metadata.namespace == "default"
        await set_image(client, DaemonSet, "agent", "app:2")
        await asyncio.sleep(5)
        await set_image(client, DaemonSet, "agent", "app:1")
        await asyncio.sleep(5)
        numbers = {revision.metadata.name: revision.revision for revision in await live_revisions(client)}
        assert numbers[first.metadata.name] == 3
        assert sorted(numbers.values()) == [2, 3]
        again = await client.get(ControllerRevision, first.metadata.name, "default")
        assert (again.metadata.uid, again.data) == (first.metadata.uid, first.data)
        await client.patch(DaemonSet, "agent", MergePatch({"metadata": {"labels": {"look": "again"}}}), "default")
        await asyncio.sleep(5)
        assert {r.metadata.name: r.revision for r in await live_revisions(client)} == numbers


@virtual
async def test_only_matching_orphans_are_adopted_and_revisions_of_others_ignored(client: Client, run: Run) -> None:
    def revision(name: str, **labels: str) -> ControllerRevision:
        return ControllerRevision(
            metadata=ObjectMeta(name=name, namespace="default", labels=labels), data={"other": 1}, revision=7
        )

    await client.create(revision("mine", app="web"))
    await client.create(revision("other", app="other"))
    going = revision("going", app="web")
    going.metadata.finalizers = ["tests.konverge.dev/kept"]
    await client.create(going)
    await client.delete(ControllerRevision, "going", "default")
    async with run(daemonset):
        await client.create(agent_daemonset())
        await asyncio.sleep(5)
        owners = {r.metadata.name: [o.name for o in r.metadata.owner_references] for r in await live_revisions(client)}
        made = set(owners) - {"mine", "other", "going"}
        assert owners["mine"] == ["agent"]
        assert owners["other"] == owners["going"] == []
        (name,) = made
        assert (await client.get(ControllerRevision, name, "default")).revision == 8


@virtual
async def test_the_name_of_a_revision_is_cut(client: Client, run: Run) -> None:
    agent = agent_daemonset()
    agent.metadata.name = "a" * 240
    async with run(daemonset):
        await client.create(agent)
        await asyncio.sleep(5)
        (revision,) = await live_revisions(client)
    digest = revision.metadata.labels["controller-revision-hash"]
    assert revision.metadata.name == "a" * 223 + f"-{digest}"


@virtual
@pytest.mark.parametrize("state", ["replaced", "deleting"])
async def test_the_live_owner_is_asked_before_a_revision_is_adopted(client: Client, state: str) -> None:
    """The cache may be behind: another object has the name, or the owner is being deleted."""
    await client.create(agent_daemonset())
    live = to_dict(await client.get(DaemonSet, "agent", "default"))
    live["metadata"] |= {"uid": "other"} if state == "replaced" else {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    meta = ObjectMeta(name="lost", namespace="default", labels={"app": "web"})
    await client.create(ControllerRevision(metadata=meta, data={"other": 1}, revision=7))
    interposed = Interposed(client)
    answer = Response(200, body=msgspec.json.encode(live))
    interposed.rules.append(lambda call: answer if reads(call, "agent") else None)
    async with running(interposed, daemonset):
        await asyncio.sleep(5)
        assert (await client.get(ControllerRevision, "lost", "default")).metadata.owner_references == []
        interposed.rules.clear()
        await asyncio.sleep(60)
        owners = (await client.get(ControllerRevision, "lost", "default")).metadata.owner_references
        assert [owner.name for owner in owners] == ["agent"]
