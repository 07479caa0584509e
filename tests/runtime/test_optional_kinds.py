"""Kinds that a cluster may not have: a controller starts without them, and works with them once they are installed."""

from __future__ import annotations

import asyncio

import pytest

from konverge.apiserver import ApiServer
from konverge.client import Client
from konverge.objects import CustomResource, Model, ObjectMeta, crd
from konverge.objects.kinds.core_v1 import Secret
from konverge.runtime import Context, Controller, Manager, Request, Result, Use, Watches
from konverge.runtime.caches import CacheNotSynced
from konverge.runtime.config import CacheSettings, Configuration
from tests.runtime.objects import SPACE, secret

pytestmark = pytest.mark.virtual


class LampSpec(Model):
    colour: str = ""


class LampStatus(Model):
    pass


class Lamp(CustomResource[LampSpec, LampStatus], group="tests.konverge.dev", version="v1"):
    """Something that others may install."""


class Rounds:
    """A reconciler that notes what it could see of lamps."""

    def __init__(self) -> None:
        self.seen: list[bool] = []
        self.colours: list[str] = []

    async def __call__(self, ctx: Context[Secret]) -> Result:
        served = ctx.serves(Lamp)
        self.seen.append(served)
        if served:
            self.colours += [lamp.spec.colour for lamp in await ctx.list(Lamp)]
        return Result(requeue_after=30)


def of_lamp(lamp: Lamp) -> list[Request]:
    return [Request(SPACE, "a")]


def controller(rounds: Rounds) -> Controller[Secret]:
    return Controller(Secret, rounds, watches=[Watches(Lamp, requests=of_lamp, optional=True)])


async def test_a_controller_starts_without_an_optional_kind_and_finds_it_when_it_is_installed(client: Client) -> None:
    await client.create(secret("a"))
    rounds = Rounds()
    async with Manager(client).add(controller(rounds)).running() as manager:
        assert manager.caches.unsynced == []
        await asyncio.sleep(5)
        assert rounds.seen == [False]
        await client.create(crd(Lamp))
        await asyncio.sleep(120)
        assert rounds.seen[-1]
        await client.create(Lamp(metadata=ObjectMeta(name="l", namespace=SPACE), spec=LampSpec(colour="red")))
        await asyncio.sleep(1)
        assert rounds.colours[-1] == "red"


async def test_an_optional_kind_that_is_installed_from_the_start_is_never_seen_missing(client: Client) -> None:
    await client.create(crd(Lamp))
    await asyncio.sleep(1)
    await client.create(secret("a"))
    rounds = Rounds()
    async with Manager(client).add(controller(rounds)).running():
        await asyncio.sleep(5)
    assert rounds.seen == [True]


async def test_a_kind_that_is_not_optional_is_waited_for(server: ApiServer, client: Client) -> None:
    config = Configuration(cache=CacheSettings(sync_timeout=30))
    needing = Controller(Secret, Rounds(), name="needs", uses=[Use(Lamp, cached=True)])
    manager = Manager(client, config=config).add(controller(Rounds())).add(needing)
    with pytest.raises(CacheNotSynced) as caught:
        await manager.serve(asyncio.Event())
    assert "lamps.tests.konverge.dev" in str(caught.value)
