"""A kind with a spec, for timers and daemons."""

from __future__ import annotations

import asyncio

from konverge.client import Client, MergePatch
from konverge.objects import CustomResource, Model, crd
from konverge.objects.meta import ObjectMeta
from tests.runtime.objects import SPACE


class FeedSpec(Model):
    url: str = ""
    every: float = 10.0


class FeedStatus(Model):
    seen: int = 0


class Feed(CustomResource[FeedSpec, FeedStatus], group="tasks.konverge.dev", version="v1"):
    """Something to follow."""


def feed(name: str, url: str = "", every: float = 10.0) -> Feed:
    return Feed(metadata=ObjectMeta(name=name, namespace=SPACE), spec=FeedSpec(url=url, every=every))


async def install(client: Client) -> None:
    await client.create(crd(Feed))
    await asyncio.sleep(1)


async def respec(client: Client, name: str, **spec: object) -> None:
    await client.patch(Feed, name, MergePatch({"spec": spec}), SPACE)


def now() -> float:
    return asyncio.get_running_loop().time()
