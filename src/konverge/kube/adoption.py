"""Claiming: which of the objects that match a selector are ours, which become ours, and which are let go.

The rules of controllerRef: an object with a controller is that controller's; one of ours that no longer matches is
released; an orphan that matches is adopted, unless we are about to go ourselves. Both are patches guarded by the uid,
so a race with another controller or with a deletion loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from konverge.cache.record import Meta, Record
from konverge.cache.store import Change
from konverge.client import Client, Invalid, MergePatch, NotFound
from konverge.objects.codec import to_dict
from konverge.objects.labels import Selector, from_selector
from konverge.objects.meta import Object
from konverge.runtime.context import Caches, Context
from konverge.runtime.owners import controller_of
from konverge.runtime.result import Request

K = TypeVar("K", bound=Object)

ORPHANS = "orphans"


def orphans(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the namespace of an object that nobody controls."""
    return () if any(owner.controller for owner in meta.owner_references) else (meta.namespace,)


def adoptable(change: Change) -> bool:
    """A predicate: the object has no controller now. Asked before anybody decodes the whole of it."""
    return change.new is not None and not any(owner.controller for owner in change.meta.owner_references)


def _anybody(obj: Object) -> bool:
    return True


async def claim(
    ctx: Context[Any],
    kind: type[K],
    selector: Selector,
    *,
    member: Callable[[K], bool] = _anybody,
    finalizer: str = "",
) -> list[K]:
    """Our objects of a kind after adopting and releasing. The kind must be owned, with the `orphans` index.

    `member` is what an object must be beside matching the selector: a StatefulSet's pods have names of its own.
    `finalizer` is given to what is adopted and taken from what is released.
    """
    owner: Object = ctx.obj
    claimed: list[K] = []
    for obj in await ctx.owned(kind):
        reference = controller_of(obj)
        if reference is None or reference.uid != owner.metadata.uid:
            continue
        if selector.matches(obj.metadata.labels) and member(obj):
            claimed.append(obj)
        elif owner.metadata.deletion_timestamp is None:
            await _release(ctx.client, kind, obj, owner, finalizer)
    if owner.metadata.deletion_timestamp is not None:
        return claimed
    for obj in ctx.indexed(kind, ORPHANS, owner.metadata.namespace):
        wanted = selector.matches(obj.metadata.labels) and member(obj)
        if wanted and obj.metadata.deletion_timestamp is None:
            adopted = await _adopt(ctx.client, kind, obj, owner, finalizer)
            if adopted is not None:
                claimed.append(adopted)
    return claimed


def adopters(kind: type[Any]) -> Callable[[Any, Caches], list[Request]]:
    """The `lookup` of a watch: the objects of this kind that might adopt one without a controller."""

    def lookup(obj: Object, caches: Caches) -> list[Request]:
        lister = caches.lister(kind)
        if lister is None or controller_of(obj) is not None or not obj.metadata.labels:
            return []
        return [
            Request(found.metadata.namespace, found.metadata.name)
            for found in lister.list(obj.metadata.namespace)
            if found.spec.selector is not None and from_selector(found.spec.selector).matches(obj.metadata.labels)
        ]

    return lookup


async def _adopt(client: Client, kind: type[K], obj: K, owner: Object, finalizer: str) -> K | None:
    live = await client.get(type(owner), owner.metadata.name, owner.metadata.namespace)
    if live.metadata.uid != owner.metadata.uid or live.metadata.deletion_timestamp is not None:
        return None  # the cache is behind: we are going, or are another by the same name
    reference = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    others = [to_dict(other) for other in obj.metadata.owner_references]
    patch: dict[str, Any] = {"ownerReferences": [*others, reference]}
    if finalizer and finalizer not in obj.metadata.finalizers:
        patch["finalizers"] = [*obj.metadata.finalizers, finalizer]
    return await _patch(client, kind, obj, patch)


async def _release(client: Client, kind: type[K], obj: K, owner: Object, finalizer: str) -> None:
    kept = [to_dict(o) for o in obj.metadata.owner_references if o.uid != owner.metadata.uid]
    patch: dict[str, Any] = {"ownerReferences": kept or None}
    if finalizer in obj.metadata.finalizers:
        patch["finalizers"] = [name for name in obj.metadata.finalizers if name != finalizer] or None
    await _patch(client, kind, obj, patch)


async def _patch(client: Client, kind: type[K], obj: K, metadata: dict[str, Any]) -> K | None:
    patch = MergePatch({"metadata": {"uid": obj.metadata.uid, **metadata}})
    try:
        return await client.patch(kind, obj.metadata.name, patch, obj.metadata.namespace)
    except (NotFound, Invalid):
        return None  # it has gone, or is another by the same name
