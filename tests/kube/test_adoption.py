"""Claiming objects: what is adopted, what is released, and what neither concerns."""

from __future__ import annotations

from typing import Any, cast

import pytest

from konverge import Context, ObjectMeta
from konverge.client import Client, MergePatch
from konverge.kube import replicaset
from konverge.kube.adoption import claim
from konverge.objects import LabelSelector
from konverge.objects.kinds.apps_v1 import ReplicaSet, ReplicaSetSpec
from konverge.objects.kinds.core_v1 import Pod
from konverge.objects.labels import from_selector
from konverge.objects.meta import OwnerReference
from konverge.runtime.owners import controller_reference, is_controlled_by
from tests.kube.interposed import Interposed
from tests.kube.objects import WEB, template
from tests.kube.triggers import Triggers

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-33")]

TRACKED = "tests.konverge.dev/tracked"
OTHER = "tests.konverge.dev/other"


def owner(name: str = "web", namespace: str = "default") -> ReplicaSet:
    spec = ReplicaSetSpec(replicas=1, selector=WEB, template=template())
    return ReplicaSet(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def pod(name: str, *owners: OwnerReference, labels: dict[str, str] | None = None, finalizers: Any = ()) -> Pod:
    meta = ObjectMeta(name=name, namespace="default", labels={"app": "web"} if labels is None else labels)
    meta.owner_references, meta.finalizers = list(owners), list(finalizers)
    return Pod(metadata=meta, spec=template().spec)


def reference(uid: str, *, controller: bool) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="ConfigMap", name=uid, uid=uid, controller=controller)


class Cache:
    """What a controller's cache has when it reconciles this owner."""

    def __init__(self, client: Client, obj: ReplicaSet, *pods: Pod) -> None:
        self.client, self.obj, self._pods = client, obj, pods

    async def owned(self, kind: type[Pod]) -> list[Pod]:
        return [pod for pod in self._pods if is_controlled_by(pod, self.obj)]

    def indexed(self, kind: type[Pod], index: str, value: str) -> list[Pod]:
        assert (index, value) == ("orphans", "default")
        return [pod for pod in self._pods if not any(owner.controller for owner in pod.metadata.owner_references)]

    async def claimed(self, **options: Any) -> list[str]:
        claimed = await claim(cast("Context[Any]", self), Pod, from_selector(WEB), **options)
        return [pod.metadata.name for pod in claimed]


async def stored(client: Client, *pods: Pod) -> list[Pod]:
    return [await client.create(pod) for pod in pods]


async def owners_of(client: Client, name: str) -> list[str]:
    return [owner.name for owner in (await client.get(Pod, name, "default")).metadata.owner_references]


async def test_orphans_that_match_are_adopted_beside_their_other_owners(client: Client) -> None:
    web = await client.create(owner())
    pods = await stored(
        client,
        pod("a", reference("note", controller=False), finalizers=[OTHER]),
        pod("b", finalizers=[TRACKED]),
        pod("c", reference("taken", controller=True)),
        pod("d", labels={"app": "other"}),
        pod("e"),
    )
    interposed = Interposed(client)
    cache = Cache(interposed, web, *pods)
    assert await cache.claimed(finalizer=TRACKED, member=lambda pod: pod.metadata.name != "e") == ["a", "b"]
    assert interposed.writes() == [("patch", "a"), ("patch", "b")]
    assert await owners_of(client, "a") == ["note", "web"]
    adopted = await client.get(Pod, "a", "default")
    assert adopted.metadata.owner_references[1] == controller_reference(web)
    assert adopted.metadata.finalizers == [OTHER, TRACKED]
    assert (await client.get(Pod, "b", "default")).metadata.finalizers == [TRACKED]


async def test_ours_that_no_longer_match_are_released_with_what_others_added(client: Client) -> None:
    web = await client.create(owner())
    ours, note = controller_reference(web), reference("note", controller=False)
    pods = await stored(
        client,
        pod("a", ours),
        pod("b", ours, note, labels={}, finalizers=[OTHER, TRACKED]),
        pod("c", ours, labels={}, finalizers=[TRACKED]),
        pod("d", ours, labels={}, finalizers=[OTHER]),
        pod("e", ours),
    )
    interposed = Interposed(client)
    cache = Cache(interposed, web, *pods)
    assert await cache.claimed(finalizer=TRACKED, member=lambda pod: pod.metadata.name != "e") == ["a"]
    written = {call.name for call in interposed.calls if b"finalizers" in (call.body or b"")}
    assert written == {"b", "c"}  # the others may have got more in the meantime
    assert await owners_of(client, "a") == ["web"]
    assert await owners_of(client, "b") == ["note"]
    finalizers = [(await client.get(Pod, name, "default")).metadata.finalizers for name in "bcd"]
    assert finalizers == [[OTHER], [], [OTHER]]
    for name in "cde":
        assert await owners_of(client, name) == []


async def test_an_owner_reference_that_does_not_control_claims_nothing(client: Client) -> None:
    web = await client.create(owner())
    weak = controller_reference(web)
    weak.controller = False
    pods = await stored(client, pod("a", weak, reference("taken", controller=True)))
    interposed = Interposed(client)
    assert await Cache(interposed, web, *pods).claimed() == []
    assert interposed.calls == []


async def test_an_owner_that_is_being_deleted_neither_adopts_nor_releases(client: Client) -> None:
    web = await client.create(owner())
    ours = controller_reference(web)
    pods = await stored(client, pod("a", ours), pod("b", ours, labels={}), pod("c"))
    web.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    interposed = Interposed(client)
    assert await Cache(interposed, web, *pods).claimed() == ["a"]
    assert interposed.calls == []


@pytest.mark.parametrize("state", ["deleting", "replaced", "current"])
async def test_the_live_owner_is_asked_before_an_adoption(client: Client, state: str) -> None:
    """The cache may be behind: the owner is being deleted, or another object has its name."""
    web = await client.create(owner())
    if state == "deleting":
        finalizers = MergePatch({"metadata": {"finalizers": [OTHER]}})
        await client.patch(ReplicaSet, "web", finalizers, "default")
    if state != "current":
        await client.delete(ReplicaSet, "web", "default")
    if state == "replaced":
        await client.create(owner())
    pods = await stored(client, pod("a"))
    claimed = await Cache(client, web, *pods).claimed()
    assert claimed == (["a"] if state == "current" else [])
    assert await owners_of(client, "a") == (["web"] if state == "current" else [])


async def test_pods_that_are_gone_replaced_or_going_are_not_adopted(client: Client) -> None:
    web = await client.create(owner())
    replaced, gone, going = await stored(client, pod("replaced"), pod("gone"), pod("going"))
    for name in ("replaced", "gone"):
        await client.delete(Pod, name, "default", grace_period=0)
    await client.create(pod("replaced"))
    going.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert await Cache(client, web, replaced, gone, going).claimed() == []
    assert await owners_of(client, "replaced") == []
    assert await owners_of(client, "going") == []


def test_an_orphan_leads_to_the_sets_of_its_namespace_that_select_it() -> None:
    (sets, _) = replicaset.controllers()
    other = owner("other")
    other.spec.selector = LabelSelector(match_labels={"app": "other"})
    cached = [owner(), other, owner("far", "elsewhere")]
    trigger = Triggers(sets)
    web = {"replicaset default/web"}
    orphan, labelled = pod("a"), pod("a", labels={"app": "web", "more": "1"})
    assert trigger.of(None, orphan, cached=cached) == web
    assert trigger.of(orphan, labelled, cached=cached) == web
    assert trigger.of(pod("a", reference("taken", controller=True)), orphan, cached=cached) == web
    assert trigger.of(None, pod("a", reference("note", controller=False)), cached=cached) == web
    assert trigger.of(orphan, pod("a", reference("taken", controller=True)), cached=cached) == set()
    assert trigger.of(orphan, None, cached=cached) == set()
    everything = owner("all")
    everything.spec.selector = LabelSelector()
    assert trigger.of(None, pod("a", labels={}), cached=[everything]) == set()
