"""A status with fields that the installed definition does not have: the server keeps the rest, and is left in peace."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, MergePatch, NotFound, Recording
from konverge.objects import crd_dict
from konverge.runtime import Context, Controller, Manager, Request, Result
from konverge.runtime.status_merge import SENT_AGAIN_AFTER, Unkept
from tests.runtime.objects import SPACE
from tests.runtime.test_engine import settle
from tests.runtime.test_saving import Thing, thing

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-24", "R-25")]


def earlier() -> dict[str, Any]:
    """The definition of a release that had no `status.count`."""
    definition = crd_dict(Thing)
    for version in definition["spec"]["versions"]:
        del version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["count"]
    return definition


async def looked_at(ctx: Context[Thing]) -> Result:
    """Every ten seconds, as many times as the object is named in its spec."""
    ctx.obj.status.phase = "Up"
    ctx.obj.status.count = 3 + ctx.obj.spec.size
    await ctx.save_status()
    return Result(requeue_after=10.0)


def patches(recording: Recording) -> int:
    sent = sum(call.subresource == "status" for call in recording.writes)
    recording.calls.clear()
    return sent


async def test_a_field_that_is_not_kept_is_sent_once_an_hour(client: Client) -> None:
    await client.create(earlier())
    await settle(2)
    recording = Recording(client)
    async with Manager(recording).add(Controller(Thing, looked_at)).running():
        await client.create(thing())
        await asyncio.sleep(60)
        kept = await client.get(Thing, "a", SPACE)
        assert (kept.status.phase, kept.status.count) == ("Up", 0)
        assert patches(recording) == 2, "one for what is kept, and one that changed nothing"
        await asyncio.sleep(SENT_AGAIN_AFTER - 120)
        assert patches(recording) == 0
        await client.patch(Thing, "a", MergePatch({"spec": {"size": 1}}), SPACE)
        await asyncio.sleep(60)
        assert patches(recording) == 1, "another value is tried at once"
        await asyncio.sleep(SENT_AGAIN_AFTER)
        assert patches(recording) == 1
        await client.apply(crd_dict(Thing), field_manager="admin", force=True)
        await asyncio.sleep(SENT_AGAIN_AFTER)
        assert patches(recording) == 1
        assert (await client.get(Thing, "a", SPACE)).status.count == 4, "a newer definition is found within the hour"


async def test_what_another_takes_away_comes_back(client: Client) -> None:
    await client.create(earlier())
    await settle(2)
    recording = Recording(client)
    async with Manager(recording).add(Controller(Thing, looked_at)).running():
        await client.create(thing())
        await asyncio.sleep(60)
        await client.patch(Thing, "a", MergePatch({"status": {"phase": ""}}), SPACE, subresource="status")
        await asyncio.sleep(20)
        assert (await client.get(Thing, "a", SPACE)).status.phase == "Up"


async def test_a_new_object_of_the_same_name_is_another(client: Client) -> None:
    await client.create(earlier())
    await settle(2)
    recording = Recording(client)
    async with Manager(recording).add(Controller(Thing, looked_at)).running():
        await client.create(thing())
        await asyncio.sleep(60)
        await client.delete(Thing, "a", SPACE)
        await asyncio.sleep(1)
        with pytest.raises(NotFound):
            await client.get(Thing, "a", SPACE)
        patches(recording)
        await client.create(thing())
        await asyncio.sleep(60)
        assert (await client.get(Thing, "a", SPACE)).status.phase == "Up"
        assert patches(recording) == 2


async def test_only_the_same_changes_of_the_same_version_are_known() -> None:
    unkept, key = Unkept(), Request(SPACE, "a")
    unkept.add(key, "5", {"count": 3})
    assert unkept.knows(key, "5", {"count": 3})
    assert not unkept.knows(key, "6", {"count": 3})
    assert not unkept.knows(key, "5", {"count": 4})
    assert not unkept.knows(Request(SPACE, "b"), "5", {"count": 3})
    await asyncio.sleep(SENT_AGAIN_AFTER - 0.5)
    assert unkept.knows(key, "5", {"count": 3})
    await asyncio.sleep(0.5)
    assert not unkept.knows(key, "5", {"count": 3}), "another definition may be there"
    unkept.add(key, "5", {"count": 3})
    assert unkept.knows(key, "5", {"count": 3})
    unkept.forget(key)
    assert not unkept.knows(key, "5", {"count": 3})
    unkept.forget(key)
