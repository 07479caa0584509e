"""Configurations for the time of a run: made when webhooks are served, removed before they no longer are."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.client import (
    Client,
    ClientError,
    Conflict,
    ConnectionFailed,
    InternalError,
    JsonPatch,
    NotFound,
    ServerTimeout,
    TooManyRequests,
    Unavailable,
)
from konverge.objects import CustomResource, crd_dict
from konverge.objects.codec import to_dict
from konverge.objects.kinds.admissionregistration_v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from konverge.objects.kinds.apiextensions_v1 import CustomResourceDefinition
from konverge.runtime.webhooks.configurations import REVIEW_VERSIONS, VALIDATING, Obj, configurations, url_target
from konverge.runtime.webhooks.places import Serving
from konverge.runtime.webhooks.registry import Webhook

SUFFIX = "-local"
"""Of their names: those of an installed operator are others, and stay as they are."""
REMOVED_WITHIN = 10.0
"""Seconds. An API server that is away must not hold up the end of the process."""

ATTEMPTS = 5
"""Of a patch that fails for reasons that pass."""
PAUSE = 0.5
"""Seconds before the second attempt; twice as many before each further one. After a conflict there is none."""
_PASSING = (Conflict, ConnectionFailed, InternalError, ServerTimeout, TooManyRequests, Unavailable)

_NO_CONVERSION: Obj = {"strategy": "None"}

_log = logging.getLogger("konverge.webhooks")


@asynccontextmanager
async def installed(at_work: Serving, url: str, authority: bytes) -> AsyncIterator[None]:
    """Inside the block the API server calls the webhooks at `url`, whose certificate is of this authority (PEM)."""
    target = url_target(url, base64.b64encode(authority).decode())
    routes = at_work.webhooks.routes.values()
    async with AsyncExitStack() as stack:
        for webhook in routes:
            if webhook.definition:
                await stack.enter_async_context(_converted(at_work.client, webhook, target(webhook.path)))
        for configuration in configurations(routes, at_work.name + SUFFIX, target):
            await stack.enter_async_context(_applied(at_work, configuration))
        yield


@asynccontextmanager
async def _applied(at_work: Serving, configuration: Obj) -> AsyncIterator[None]:
    """Inside the block there is a configuration; one that a process left behind when it was killed is replaced."""
    await _tried(lambda: at_work.client.apply(configuration, field_manager=at_work.name, force=True))
    try:
        yield
    finally:
        await _at_the_end(configuration["metadata"]["name"], _removed(at_work.client, configuration))


async def _removed(client: Client, configuration: Obj) -> None:
    """Remove a configuration, unless another process of the same operator has taken it over since."""
    kind = ValidatingWebhookConfiguration if configuration["kind"] == VALIDATING else MutatingWebhookConfiguration
    name = configuration["metadata"]["name"]
    live = to_dict(await client.get(kind, name))
    if _urls(live) == _urls(configuration):
        await client.delete(kind, name, if_version=live["metadata"]["resourceVersion"])


def _urls(configuration: Obj) -> list[Any]:
    return [entry["clientConfig"].get("url") for entry in configuration.get("webhooks", ())]


@asynccontextmanager
async def _converted(client: Client, webhook: Webhook, config: Obj) -> AsyncIterator[None]:
    """Inside the block a definition has its conversion here; afterwards it is as before."""
    definition = webhook.definition
    before = await _conversion(client, definition)
    if _url(before):  # of a process that was killed: there is nothing to go back to
        kinds = [kind for kind in webhook.kinds if issubclass(kind, CustomResource)]
        before = crd_dict(*kinds)["spec"].get("conversion") or _NO_CONVERSION
    conversion = {"clientConfig": config, "conversionReviewVersions": REVIEW_VERSIONS}
    await _patch(client, definition, {"strategy": "Webhook", "webhook": conversion})
    try:
        yield
    finally:
        await _at_the_end(definition, _put_back(client, definition, before, config["url"]))


async def _put_back(client: Client, definition: str, before: Obj, url: str) -> None:
    if _url(await _conversion(client, definition)) == url:  # else another process has taken it over
        await _patch(client, definition, before)


async def _conversion(client: Client, definition: str) -> Obj:
    live = await client.get(CustomResourceDefinition.resource, definition)
    conversion: Obj = live["spec"].get("conversion") or _NO_CONVERSION
    return conversion


def _url(conversion: Obj) -> Any:
    return (conversion.get("webhook") or {}).get("clientConfig", {}).get("url")


async def _patch(client: Client, definition: str, conversion: Obj) -> None:
    operation = {"op": "add", "path": "/spec/conversion", "value": conversion}
    await _tried(lambda: client.patch(CustomResourceDefinition, definition, JsonPatch([operation])))


async def _tried(patch: Callable[[], Awaitable[object]]) -> None:
    """A patch without a version meets a conflict, too, where others write often, and an API server may be between two
    leaders of its store: no reason for an operator to end. What is written is the same however often it is written."""
    for attempt in range(ATTEMPTS - 1):
        try:
            await patch()
        except _PASSING as error:
            if not isinstance(error, Conflict):
                _log.warning("not installed yet, trying again: %s", error)
                await asyncio.sleep(PAUSE * 2**attempt)
            continue
        return
    await patch()


async def _at_the_end(what: str, work: Any) -> None:
    try:
        async with asyncio.timeout(REMOVED_WITHIN):
            await work
    except NotFound:
        return
    except (ClientError, TimeoutError) as error:
        _log.warning("%s could not be removed: %s; remove it, or writes wait for a webhook that is gone", what, error)
