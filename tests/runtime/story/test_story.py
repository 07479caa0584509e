"""The story of a reconcile on an embedded API server: why it ran, what it read and wrote, how it ended."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import pytest

from konverge.client import AlreadyExists, Client, Invalid, JsonPatch, MergePatch, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, Controller, Manager, Result, TerminalError, Use
from konverge.runtime.story.model import ReconcileStory, Write
from konverge.runtime.story.ring import StoryLimits
from tests.runtime.objects import SPACE, config_map, secret

pytestmark = pytest.mark.virtual

PASSWORD = "cGFzc3dvcmQtMTIz"


async def settle(seconds: float = 1.0) -> None:
    await asyncio.sleep(seconds)


async def stories(client: Client, reconcile: Any, **options: Any) -> list[ReconcileStory]:
    """What the operator did with a ConfigMap that was there when it started; the latest first."""
    await client.create(config_map("a", color="red"))
    manager = Manager(client, name="teller").add(Controller(ConfigMap, reconcile, name="maps", **options))
    async with manager.running():
        await settle()
        return manager.story.reconciles(kind="ConfigMap", namespace=SPACE, name="a")


def writing(manager: Manager) -> list[ReconcileStory]:
    """Those that wrote something, the latest first."""
    return [story for story in manager.story.reconciles(kind="ConfigMap", namespace=SPACE, name="a") if story.writes]


def changes(write: Write) -> list[str]:
    return [str(change) for change in write.changes]


@pytest.mark.spec("R-87")
async def test_a_reason_names_the_field_with_its_old_and_new_value(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    await client.create(config_map("a", color="red"))
    manager = Manager(client).add(Controller(ConfigMap, reconcile))
    async with manager.running():
        await settle()
        await client.patch(ConfigMap, "a", MergePatch({"data": {"color": "blue", "size": "1"}}), SPACE)
        await settle()
        latest, first = manager.story.reconciles(kind="configmaps", name="a", namespace=SPACE)
    assert [cause.type for cause in first.reasons] == ["listed"]
    (cause,) = latest.reasons
    assert (cause.type, cause.kind, cause.namespace, cause.name) == ("updated", "ConfigMap", SPACE, "a")
    assert [str(change) for change in cause.fields] == ["data.color red → blue", "data.size = 1"]
    assert latest.began > first.began
    assert latest.number > first.number


@pytest.mark.spec("R-87")
async def test_an_object_that_is_created_is_named_also_when_it_is_refused(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        for meta in (ObjectMeta(name="made"), ObjectMeta(name="made"), ObjectMeta(generate_name="Made-")):
            meta.namespace = SPACE
            with suppress(AlreadyExists, Invalid):
                await ctx.client.create(Secret(metadata=meta))

    (story,) = await stories(client, reconcile, namespaces=(SPACE,))
    assert [(write.name, write.status) for write in story.writes] == [("made", 201), ("made", 409), ("Made-", 422)]


@pytest.mark.spec("R-87")
async def test_it_has_what_was_read_from_the_cache_and_live(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "a":
            await ctx.get(Secret, "key")
            await ctx.list(Secret)
            with pytest.raises(NotFound):
                await ctx.client.get(ConfigMap, "elsewhere", SPACE)

    await client.create(secret("key"))
    latest = (await stories(client, reconcile, uses=[Use(Secret, cached=True)]))[0]
    assert [(read.source, read.kind, read.name, read.count) for read in latest.reads] == [
        ("cache", "Secret", "key", None),
        ("cache", "Secret", "", 1),
        ("live", "ConfigMap", "elsewhere", None),
    ]
    assert "not found" in latest.reads[2].error


@pytest.mark.spec("R-87")
async def test_each_write_has_its_difference_and_its_version(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> Result | None:
        if ctx.request.name != "a":
            return None
        child = ConfigMap(metadata=ObjectMeta(name="child"), data={"color": ctx.obj.data["color"]})
        await ctx.apply(child)
        ctx.event("Applied", "the child is there")
        return Result(requeue_after=30)

    manager = Manager(client, name="teller").add(Controller(ConfigMap, reconcile, name="maps", owns=[ConfigMap]))
    await client.create(config_map("a", color="red"))
    async with manager.running():
        await settle()
        await client.patch(ConfigMap, "a", MergePatch({"data": {"color": "blue"}}), SPACE)
        await settle()
        changed, made = writing(manager)
        child = await client.get(ConfigMap, "child", SPACE)
        assert manager.story.latest("ConfigMap", "child", SPACE) is not None
    (write,) = made.writes
    assert (write.method, write.kind, write.name, write.status) == ("PATCH", "ConfigMap", "child", 201)
    assert "data.color = red" in changes(write)
    (write,) = changed.writes
    assert changes(write) == ["data.color red → blue"]
    assert write.resource_version == child.metadata.resource_version
    assert (changed.outcome, changed.requeue_after) == ("requeueAfter", 30)
    assert [(event.type, event.reason, event.name) for event in changed.events] == [("Normal", "Applied", "a")]


async def test_a_field_that_an_apply_gives_up_is_part_of_the_difference(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "a":
            data = {"color": "red", "size": "1"} if ctx.obj.data["color"] == "red" else {"color": "red"}
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name="child"), data=data))

    manager = Manager(client, name="teller").add(Controller(ConfigMap, reconcile, name="maps", owns=[ConfigMap]))
    await client.create(config_map("a", color="red"))
    async with manager.running():
        await settle()
        await client.patch(ConfigMap, "a", MergePatch({"data": {"color": "blue"}}), SPACE)
        await settle()
        (write,) = writing(manager)[0].writes
    assert changes(write) == ["data.size removed"]


async def test_a_second_write_of_an_object_shows_its_own_difference(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if "done" not in ctx.obj.data:
            await ctx.client.patch(ConfigMap, "a", MergePatch({"data": {"color": "blue"}}), SPACE)
            await ctx.client.patch(ConfigMap, "a", MergePatch({"data": {"done": "1"}}), SPACE)

    first = (await stories(client, reconcile))[-1]
    assert [changes(write) for write in first.writes] == [["data.color red → blue"], ["data.done = 1"]]


async def test_a_created_object_is_named_by_the_answer(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "a":
            await ctx.client.create(Secret(metadata=ObjectMeta(generate_name="made-", namespace=SPACE)))

    await client.create(config_map("a"))
    manager = Manager(client).add(Controller(ConfigMap, reconcile))
    async with manager.running():
        await settle()
        (made,) = [one for one in (await client.list(Secret, SPACE)).items if one.metadata.name.startswith("made-")]
        story = manager.story.latest("Secret", made.metadata.name, SPACE)
    assert story is not None
    (write,) = story.writes
    assert (write.method, write.name) == ("POST", made.metadata.name)
    assert write.resource_version == made.metadata.resource_version


@pytest.mark.spec("R-88")
async def test_the_content_of_secrets_is_shown_nowhere(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        labels = {"app": "shop"}
        meta = ObjectMeta(name="made", namespace=SPACE, labels=labels)
        await ctx.client.create(Secret(metadata=meta, data={"p": PASSWORD}))
        await ctx.client.patch(Secret, "made", MergePatch({"data": {"p": None, "q": PASSWORD}}), SPACE)
        await ctx.client.patch(Secret, "made", JsonPatch([{"op": "add", "path": "/data/r", "value": PASSWORD}]), SPACE)
        await ctx.client.patch(
            Secret, "made", JsonPatch([{"op": "replace", "path": "/data", "value": {"s": PASSWORD}}]), SPACE
        )
        await ctx.apply(Secret(metadata=ObjectMeta(name="kept"), data={"p": PASSWORD}))
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": PASSWORD}}
        await ctx.client.create(review)

    story = (await stories(client, reconcile, owns=[Secret]))[0]
    assert len(story.writes) == 6, story.error
    assert all(write.changes for write in story.writes)
    assert "metadata.labels.app = shop" in changes(story.writes[0])
    page = json.dumps([str(write) for write in story.writes]) + str(story)
    assert PASSWORD not in page
    assert "password-123" not in page


@pytest.mark.spec("R-88")
async def test_a_changed_secret_is_a_reason_without_its_content(client: Client) -> None:
    async def reconcile(ctx: Context[Secret]) -> None: ...

    class Credentials(Secret):
        """Another class for the same resource."""

    await client.create(secret("a", p="another"))
    manager = Manager(client).add(Controller(Credentials, reconcile, name="secrets"))
    async with manager.running():
        await settle()
        await client.patch(Secret, "a", MergePatch({"data": {"p": PASSWORD, "q": PASSWORD}}), SPACE)
        await settle()
        text = manager.story.json().decode()
        latest = manager.story.latest("Secret", "a", SPACE)
    assert latest is not None
    assert [change.path for change in latest.reasons[0].fields] == ["data.p", "data.q"]
    assert PASSWORD not in text


@pytest.mark.spec("R-87")
async def test_an_error_has_the_line_it_came_from_and_holds_no_frames(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        raise TerminalError("no such colour")

    manager = Manager(client).add(Controller(ConfigMap, reconcile))
    await client.create(config_map("a"))
    async with manager.running():
        await settle()
        story = manager.story.latest("ConfigMap", "a", SPACE)
        entries = [entry for _, ring, _ in manager.story._rings.values() for entry in ring]
    assert story is not None
    assert (story.outcome, story.error) == ("error", "no such colour")
    assert story.place.startswith("test_story.py:")
    assert all(isinstance(entry.error, str) for entry in entries)


async def test_a_refused_write_says_what_was_asked_and_what_the_server_said(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "a":
            await ctx.client.patch(ConfigMap, "a", MergePatch({"data": {"bad key": "1"}}), SPACE)

    latest = (await stories(client, reconcile))[-1]
    (write,) = latest.writes
    assert write.status == 422
    assert "bad key" in write.error
    assert changes(write) == ["data.bad key = 1"]
    assert latest.outcome == "error"


async def test_an_object_that_is_gone_has_a_story_too(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    await client.create(config_map("a"))
    manager = Manager(client).add(Controller(ConfigMap, reconcile))
    async with manager.running():
        await settle()
        await client.delete(ConfigMap, "a", SPACE)
        await settle()
        latest = manager.story.latest("ConfigMap", "a", SPACE)
    assert latest is not None
    assert latest.outcome == "gone"
    assert [cause.type for cause in latest.reasons] == ["deleted"]


async def test_what_runs_now_is_said_and_filters_choose(client: Client) -> None:
    release = asyncio.Event()

    async def reconcile(ctx: Context[ConfigMap]) -> None:
        if ctx.request.name == "slow":
            await release.wait()

    manager = Manager(client, name="teller").add(Controller(ConfigMap, reconcile, name="maps"))
    async with manager.running():
        for name in ("a", "b", "slow"):
            await client.create(config_map(name))
        await settle(5)
        page = manager.story.page(namespace=SPACE)
        assert {story.name for story in page.reconciles} == {"a", "b"}
        assert [(running.name, running.seconds >= 4) for running in page.running] == [("slow", True)]
        assert [story.name for story in manager.story.reconciles(name="b")] == ["b"]
        assert manager.story.reconciles(kind="Secret") == []
        assert manager.story.reconciles(controller="other") == []
        assert manager.story.reconciles(namespace="elsewhere") == []
        limited = manager.story.page(namespace=SPACE, limit=1)
        assert (len(limited.reconciles), limited.left_out) == (1, 1)
        release.set()
        await settle()
    assert manager.story.page().running == []


async def test_a_manager_bound_to_a_client_keeps_its_limits_and_has_a_story_of_its_own(client: Client) -> None:
    async def reconcile(ctx: Context[ConfigMap]) -> None: ...

    declared = Manager(story=StoryLimits(reconciles=2)).add(Controller(ConfigMap, reconcile))
    bound = declared.bound_to(client)
    async with bound.running():
        for name in ("a", "b", "c"):
            await client.create(config_map(name))
        await settle()
        assert len(bound.story) == 2
    assert len(declared.story) == 0
