"""The requests of the garbage collector: each about one object, identified by coordinates and uid.

Upstream: pkg/controller/garbagecollector/operations.go, patch.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from konverge.client import Client, Conflict, MalformedAnswer, MergePatch, NotFound
from konverge.client.call import Call
from konverge.client.options import Propagation
from konverge.client.read_verbs import METADATA_ONLY
from konverge.kube.gc.metadata import Identity, Metadata, read_metadata
from konverge.objects.resource import Resource


class UnservedKind(Exception):
    """The server serves no such kind at the moment: whether an object of it exists is not known."""


class NamespacedOwner(Exception):
    """A cluster-scoped object refers to an owner in a namespace, without saying in which: it is left alone."""


class Operations:
    """`kinds` gives the resource of an apiVersion and kind, or None if it is not served."""

    def __init__(self, client: Client, kinds: Callable[[str, str], Resource | None]) -> None:
        self._client = client
        self._kinds = kinds

    # upstream: apiResource, resourceDefaultNamespace
    def locate(self, identity: Identity) -> tuple[Resource, str]:
        """The resource and the namespace of an object; the namespace is empty for a cluster-scoped kind."""
        resource = self._kinds(identity.api_version, identity.kind)
        if resource is None:
            raise UnservedKind(f"the server serves no kind {identity.kind} in {identity.api_version}")
        if resource.namespaced and not identity.namespace:
            raise NamespacedOwner
        return resource, identity.namespace if resource.namespaced else ""

    # upstream: getObject
    async def live(self, identity: Identity) -> Metadata | None:
        """The object as the server has it, or None if the server says that it has none of this name and uid."""
        body = await self._get(identity)
        if body is None:
            return None
        try:
            live = read_metadata(body)
        except msgspec.DecodeError as error:
            raise MalformedAnswer(f"the answer about {identity} cannot be read: {error}") from error
        return live if live.uid == identity.uid else None

    async def _get(self, identity: Identity) -> bytes | None:
        resource, namespace = self.locate(identity)
        call = Call("get", resource, namespace, identity.name, accept=METADATA_ONLY)
        try:
            return (await self._client.caller.call(call)).body
        except NotFound as error:
            if error.kind_missing:  # the path is not served; that says nothing about the object
                raise UnservedKind(str(error)) from error
            return None

    # upstream: deleteObject
    async def delete(self, identity: Identity, live: Metadata, policy: Propagation) -> bool:
        """Delete the object if its owners are still those that were checked; returns whether it was still there."""
        resource, namespace = self.locate(identity)
        try:
            await self._client.delete(
                resource, live.name, namespace, uid=live.uid, if_version=live.version, propagation=policy
            )
        except NotFound:
            return False
        except Conflict:
            current = await self.live(identity)
            if current is None:
                return False
            if current.owners != live.owners or current.version == live.version:
                raise
            # Changes that do not concern its owners must not keep it alive for ever.
            with contextlib.suppress(NotFound):
                await self._client.delete(resource, live.name, namespace, uid=live.uid, propagation=policy)
        return True

    async def drop_references(self, identity: Identity, uids: set[str]) -> None:
        """Remove the references to these owners."""
        live = await self._metadata(identity) if uids else None
        if live is not None:
            present = live.get("ownerReferences") or []
            kept = [reference for reference in present if reference["uid"] not in uids]
            if len(kept) != len(present):
                await self._patch(identity, live, {"ownerReferences": kept or None})

    async def unblock(self, identity: Identity) -> None:
        """No owner waits for this object any more. Upstream: unblockOwnerReferencesStrategicMergePatch."""
        live = await self._metadata(identity)
        if live is not None:
            references = [
                {**reference, "blockOwnerDeletion": False} if reference.get("blockOwnerDeletion") else reference
                for reference in live.get("ownerReferences") or []
            ]
            await self._patch(identity, live, {"ownerReferences": references})

    # upstream: removeFinalizer
    async def drop_finalizer(self, identity: Identity, finalizer: str) -> None:
        live = await self._metadata(identity)
        if live is not None:
            present = live.get("finalizers") or []
            if finalizer in present:
                kept = [name for name in present if name != finalizer]
                await self._patch(identity, live, {"finalizers": kept or None})

    async def _metadata(self, identity: Identity) -> dict[str, Any] | None:
        """The whole metadata of exactly this object, for a patch that replaces a list in it."""
        body = await self._get(identity)
        if body is None:
            return None
        metadata: dict[str, Any] = msgspec.json.decode(body, type=dict[str, Any])["metadata"]
        return metadata if metadata["uid"] == identity.uid else None

    async def _patch(self, identity: Identity, live: dict[str, Any], metadata: dict[str, Any]) -> None:
        """Guarded by the version that was read: after another client's change it is a Conflict, and tried again."""
        resource, namespace = self.locate(identity)
        guarded = {**metadata, "uid": identity.uid, "resourceVersion": live["resourceVersion"]}
        with contextlib.suppress(NotFound):
            await self._client.patch(resource, identity.name, MergePatch({"metadata": guarded}), namespace)
