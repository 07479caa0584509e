"""Configurations for the time of a run: made when webhooks are served, removed before they no longer are."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.client import Client, MergePatch, NotFound
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.runtime.webhooks.places import Serving

REVIEW_VERSIONS = ["v1"]


@asynccontextmanager
async def installed(at_work: Serving, url: str, authority: bytes) -> AsyncIterator[None]:
    """Inside the block the API server calls the webhooks at `url`, whose certificate is of this authority (PEM)."""
    bundle = base64.b64encode(authority).decode()
    async with AsyncExitStack() as stack:
        for webhook in at_work.webhooks.routes.values():
            if webhook.definition:
                config = {"url": url + webhook.path, "caBundle": bundle}
                await stack.enter_async_context(_converted(at_work.client, webhook.definition, config))
        yield


@asynccontextmanager
async def _converted(client: Client, definition: str, config: dict[str, Any]) -> AsyncIterator[None]:
    """Inside the block a definition has its conversion here; afterwards it is as before."""
    before = (await client.get(CustomResourceDefinition, definition)).spec.conversion
    webhook = {"clientConfig": {**config, "service": None}, "conversionReviewVersions": REVIEW_VERSIONS}
    await _patch(client, definition, {"strategy": "Webhook", "webhook": webhook})
    try:
        yield
    finally:
        from konverge.objects.codec import to_dict

        await _patch(client, definition, None)
        if before is not None:
            await _patch(client, definition, to_dict(before))


async def _patch(client: Client, definition: str, conversion: dict[str, Any] | None) -> None:
    try:
        await client.patch(CustomResourceDefinition, definition, MergePatch({"spec": {"conversion": conversion}}))
    except NotFound:
        return
