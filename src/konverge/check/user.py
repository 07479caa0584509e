"""The user of a run: applies and deletes objects as `kubectl` does, and edits what the operator owns."""

from __future__ import annotations

from typing import Any

from konverge.check.model import Action, Apply, Delete, Edit, Obj
from konverge.client import Client, MergePatch, NotFound
from konverge.sim.cluster import Cluster


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
