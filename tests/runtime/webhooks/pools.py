"""A kind and admission functions on it, for tests."""

from __future__ import annotations

from typing import Any

from konverge.client import Client
from konverge.objects import CustomResource, Model, NoStatus, ObjectMeta, crd
from konverge.runtime import Manager
from konverge.runtime.webhooks import InProcess, Webhook, Webhooks

SPACE = "default"


class PoolSpec(Model):
    least: int = 1
    most: int = 3
    owner: str = ""
    tags: list[str] = []


class Pool(CustomResource[PoolSpec, NoStatus], group="tests.konverge.dev", version="v1"):
    """A pool of something."""


def pool(name: str = "p", *, labels: dict[str, str] | None = None, **spec: Any) -> Pool:
    return Pool(metadata=ObjectMeta(name=name, namespace=SPACE, labels=labels or {}), spec=PoolSpec(**spec))


async def install(client: Client) -> None:
    """The definition of Pool."""
    await client.create(crd(Pool))


def manager(client: Client, transports: Any, *webhooks: Webhook, name: str = "pools") -> Manager:
    """Serves webhooks to an API server in this process."""
    served = Webhooks(place=InProcess(transports=transports)).add_all(webhooks)
    return Manager(client, name=name, webhooks=served)
