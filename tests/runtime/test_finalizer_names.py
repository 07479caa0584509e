"""A finalizer with a name of its own, and one that was renamed: no clean-up is lost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.client import Client, NotFound
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.runtime import Context, Controller, Manager, Reconciler
from konverge.runtime.rbac import permissions
from tests.runtime.objects import SPACE, secret

pytestmark = [pytest.mark.virtual, pytest.mark.spec("R-60", "R-21")]

NEW, OLD, OTHER = "example.com/new", "example.com/old", "other.dev/hold"


class Cleaning(Reconciler[Secret]):
    def __init__(self) -> None:
        self.cleaned: list[str] = []
        self.reconciled: list[str] = []

    async def reconcile(self, ctx: Context[Secret]) -> None:
        self.reconciled.append(ctx.request.name)

    async def cleanup(self, ctx: Context[Secret]) -> None:
        self.cleaned.append(ctx.request.name)


async def note(ctx: Context[Secret]) -> None: ...


async def made(client: Client, *finalizers: str) -> Secret:
    obj = secret("a")
    obj.metadata.finalizers = list(finalizers)
    return await client.create(obj)


async def finalizers(client: Client) -> list[str]:
    return (await client.get(Secret, "a", SPACE)).metadata.finalizers


async def is_gone(client: Client) -> bool:
    try:
        await client.get(Secret, "a", SPACE)
    except NotFound:
        return True
    return False


async def test_the_name_does_not_follow_the_controllers(client: Client) -> None:
    await made(client)
    async with Manager(client).add(Controller(Secret, Cleaning(), name="first", finalizer=NEW)).running():
        await asyncio.sleep(1)
    assert await finalizers(client) == [NEW]
    renamed = Cleaning()
    async with Manager(client).add(Controller(Secret, renamed, name="second", finalizer=NEW)).running():
        await asyncio.sleep(1)
        await client.delete(Secret, "a", SPACE)
        await asyncio.sleep(1)
    assert renamed.cleaned == ["a"]
    assert await is_gone(client)


async def test_an_earlier_name_is_replaced_in_one_write(client: Client) -> None:
    before = await made(client, OTHER, OLD)
    cleaning = Cleaning()
    controller = Controller(Secret, cleaning, finalizer=NEW, old_finalizers=(OLD,))
    async with Manager(client).add(controller).running():
        await asyncio.sleep(1)
        after = await client.get(Secret, "a", SPACE)
        assert after.metadata.finalizers == [OTHER, NEW]
        assert int(after.metadata.resource_version) == int(before.metadata.resource_version) + 1
    assert cleaning.reconciled == ["a"]


async def test_an_object_deleted_under_the_earlier_name_is_cleaned_up(client: Client) -> None:
    await made(client, OLD)
    await client.delete(Secret, "a", SPACE)
    cleaning = Cleaning()
    controller = Controller(Secret, cleaning, finalizer=NEW, old_finalizers=(OLD,))
    async with Manager(client).add(controller).running():
        await asyncio.sleep(1)
    assert cleaning.cleaned == ["a"]
    assert cleaning.reconciled == []
    assert await is_gone(client)


@pytest.mark.parametrize("options", [{"finalizer": OLD}, {"old_finalizers": (OLD,)}])
@pytest.mark.parametrize("deleted", [False, True])
async def test_a_controller_without_a_clean_up_lets_objects_go(
    client: Client, options: dict[str, Any], deleted: bool
) -> None:
    await made(client, OLD)
    if deleted:
        await client.delete(Secret, "a", SPACE)
    async with Manager(client).add(Controller(Secret, note, **options)).running():
        await asyncio.sleep(1)
        if not deleted:
            assert await finalizers(client) == []
    assert await is_gone(client) is deleted


async def test_a_controller_without_finalizers_touches_none(client: Client) -> None:
    await made(client, OLD)
    async with Manager(client).add(Controller(Secret, note)).running():
        await asyncio.sleep(1)
    assert await finalizers(client) == [OLD]


@pytest.mark.parametrize(
    "name", ["clean-up", "example.com/", "/x", "a/b/c", "Example.com/x", "example.com/" + "x" * 64]
)
def test_what_the_server_would_refuse_is_refused_at_once(name: str) -> None:
    for options in ({"finalizer": name}, {"old_finalizers": (name,)}):
        with pytest.raises(ValueError, match="cannot be a finalizer"):
            Controller(Secret, Cleaning(), **options)  # type: ignore[arg-type]
    if "/" not in name:
        with pytest.raises(ValueError, match="cannot be a finalizer"):
            Controller(Secret, Cleaning(), name="not a name")


def test_two_clean_ups_of_one_kind_have_two_finalizers() -> None:
    manager = Manager().add(Controller(Secret, Cleaning(), name="one", finalizer=NEW))
    with pytest.raises(ValueError, match="the same finalizer"):
        manager.add(Controller(Secret, Cleaning(), name="two", old_finalizers=(NEW,)))
    manager.add(Controller(ConfigMap, Cleaning(), name="three", finalizer=NEW))  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"finalizer": OLD}, {"old_finalizers": (OLD,)}])
def test_who_takes_finalizers_off_may_write_them(options: dict[str, Any]) -> None:
    granted = {(p.resource, p.verb) for p in permissions([Controller(Secret, note, **options)])}
    assert {("secrets", "patch"), ("secrets/finalizers", "update")} <= granted
    assert ("secrets", "patch") not in {(p.resource, p.verb) for p in permissions([Controller(Secret, note)])}


def test_a_controller_that_does_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="does nothing"):
        Controller(Secret)
