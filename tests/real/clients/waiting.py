"""Waits for what other programs do to objects, by watching: no sleeping, and nothing between two looks is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

from konverge.client import Client
from konverge.objects.resource import Resource

Objects = dict[str, dict[str, Any]]
LIMIT = 120.0
"""Seconds: a real controller manager takes ten to start, and several times that on a busy machine."""


async def until(client: Client, resource: Resource, namespace: str, holds: Callable[[Objects], Any]) -> Objects:
    """The objects by name, as soon as the condition holds."""
    listing = await client.list(resource, namespace)
    objects: Objects = {obj["metadata"]["name"]: obj for obj in listing.items}
    if holds(objects):
        return objects
    version = listing.metadata.resource_version
    try:
        async with (
            asyncio.timeout(LIMIT),
            aclosing(client.watch(resource, namespace, resource_version=version)) as events,
        ):
            async for event in events:
                _take(objects, event.type, event.object)
                if holds(objects):
                    return objects
    except TimeoutError:
        pass
    raise AssertionError(
        f"{resource.plural} in {namespace or 'the cluster'}: the condition was not met; there is {objects}"
    )


def _take(objects: Objects, type_: str, obj: dict[str, Any]) -> None:
    if type_ == "DELETED":
        objects.pop(obj["metadata"]["name"], None)
    elif type_ != "BOOKMARK":
        objects[obj["metadata"]["name"]] = obj
