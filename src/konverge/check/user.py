"""The user of a run: applies and deletes objects as `kubectl` does, and edits what the operator owns."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from konverge.check.model import Action, Apply, Delete, Edit, Obj, Step
from konverge.client import Client, MergePatch, NotFound
from konverge.objects import Resource
from konverge.sim.cluster import Cluster

_LOOK_EVERY = 0.5


class User:
    """Acts through the administrator's client."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Client = cluster.client

    async def do(self, action: Action) -> None:
        """Raises ClientError when the API server refuses."""
        match action:
            case Apply():
                await self._apply(action.object)
            case Delete():
                resource = await self._client.mapper.kind(action.api_version, action.kind)
                try:
                    await self._client.delete(resource, action.name, action.namespace)
                except NotFound:
                    return

    async def until_gone(self, step: Step, seconds: float) -> None:
        """Wait for what a step deletes, as `kubectl delete` does, and not for ever."""
        deleted = [action for action in step.actions if isinstance(action, Delete)]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for action in deleted:
                    resource = await self._client.mapper.kind(action.api_version, action.kind)
                    while await self._is_there(resource, action):  # noqa: ASYNC110 - of a server that is asked
                        await asyncio.sleep(_LOOK_EVERY)

    async def _is_there(self, resource: Resource, action: Delete) -> bool:
        try:
            await self._client.get(resource, action.name, action.namespace)
        except NotFound:
            return False
        return True

    async def _apply(self, obj: Obj) -> None:
        """By server-side apply, forced: fields that the user no longer names are removed, as with `kubectl apply`."""
        resource = await self._client.mapper.kind(obj["apiVersion"], obj["kind"])
        await self._client.apply(obj, field_manager="user", force=True, resource=resource)

    async def edit(self, edit: Edit) -> str:
        """A change by another client. Says what was done."""
        ref = edit.ref
        resource = await self._client.mapper.find(ref.resource.partition("/")[2] + _group(ref.resource))
        if edit.patch is None:
            try:
                await self._client.delete(resource, ref.name, ref.namespace)
            except NotFound:
                return f"{ref} was gone already"
            return f"{ref} is deleted by another client"
        body: dict[str, Any] = edit.patch
        await self._client.patch(resource, ref.name, MergePatch(body), ref.namespace, subresource=edit.subresource)
        return f"{ref} is changed by another client"


def _group(resource: str) -> str:
    group = resource.partition("/")[0]
    return f".{group}" if group else ""
