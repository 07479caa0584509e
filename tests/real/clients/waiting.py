"""Waits for what other programs do to objects, by watching: no sleeping, and nothing between two looks is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

from konverge.client import Client, NotFound
from konverge.objects.resource import Resource
from konverge.runtime.rbac import Permission, missing_permissions

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


async def until_served(client: Client, resource: Resource) -> None:
    """What answers requests learns of a definition by a watch of its own: it may be established and not there yet."""
    async with asyncio.timeout(LIMIT):
        while True:
            try:
                await client.list(resource, limit=1)
            except NotFound:
                continue
            return


async def until_allowed(client: Client, needed: Sequence[Permission]) -> None:
    """The authorizer of the real server learns of roles and bindings a moment after they were made: the account of this
    client asks it until it has."""
    async with asyncio.timeout(LIMIT):
        while await missing_permissions(client, needed):
            pass


def _take(objects: Objects, type_: str, obj: dict[str, Any]) -> None:
    if type_ == "DELETED":
        objects.pop(obj["metadata"]["name"], None)
    elif type_ != "BOOKMARK":
        objects[obj["metadata"]["name"]] = obj
