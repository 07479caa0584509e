"""Definitions of custom kinds, and when their kinds can be used.

kube-apiserver says that a definition is established before all of it knows: what answers requests learns of it by a
watch of its own, and answers 404 until then.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from konverge.client.client import Client
from konverge.client.errors import ApiStatusError, NotFound
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.objects.resource import Resource

ASK_EVERY = 0.05


async def until_served(client: Client, name: str) -> None:
    """Wait until the server has established a definition and answers requests for its kind."""
    definition = await _established(client, name)
    while not await is_served(client, definition):  # noqa: ASYNC110 - the server sends no event of it
        await asyncio.sleep(ASK_EVERY)


async def _established(client: Client, name: str) -> CustomResourceDefinition:
    while True:  # a server may end a watch at any time
        async with aclosing(client.watch(CustomResourceDefinition, field_selector=f"metadata.name={name}")) as events:
            async for event in events:
                if event.type != "BOOKMARK" and _is_established(event.object):
                    return event.object


def _is_established(definition: CustomResourceDefinition) -> bool:
    conditions = {condition.type: condition.status for condition in definition.status.conditions}
    return conditions.get("Established") == "True"


async def is_served(client: Client, definition: CustomResourceDefinition) -> bool:
    """Whether the server answers requests for the kind of an established definition, if only by a refusal: who may
    define a kind need not be allowed to read its objects."""
    spec = definition.spec
    # The stored one, if possible: the conversion webhook may not be there yet.
    versions = sorted(spec.versions, key=lambda version: not version.storage)
    version = next((version.name for version in versions if version.served), "")
    try:
        if version:
            kind = Resource(spec.group, version, spec.names.kind, spec.names.plural, spec.scope == "Namespaced")
            await client.list(kind, limit=1)
    except NotFound:
        return False
    except ApiStatusError:
        return True
    return True
