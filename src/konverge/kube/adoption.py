"""Claiming: which of the objects that match a selector are ours, which are adopted, and which are released.

The rules of controller references: an object with a controller belongs to that controller; one of ours that no longer
matches is released; an orphan that matches is adopted, unless its new owner is being deleted. Both are patches guarded
by the uid, so a race with another controller or with a deletion loses nothing.

Upstream: PodControllerRefManager and its siblings (pkg/controller/controller_ref_manager.go).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from konverge.cache.record import Meta, Record
from konverge.cache.store import Change
from konverge.client import Client, Invalid, MergePatch, NotFound
from konverge.kube.listers import declared
from konverge.objects.codec import to_dict
from konverge.objects.labels import Selector, from_selector
from konverge.objects.meta import Object
from konverge.runtime.context import Caches, Context
from konverge.runtime.owners import controller_reference
from konverge.runtime.predicates import ChangePredicate
from konverge.runtime.result import Request

K = TypeVar("K", bound=Object)

ORPHANS = "orphans"


def orphans(record: Record, meta: Meta) -> Iterable[str]:
    """An index function: the namespace of an object without a controller."""
    return () if any(owner.controller for owner in meta.owner_references) else (meta.namespace,)


@ChangePredicate
def adoptable(change: Change) -> bool:
    """A predicate: the object has no controller now. It reads metadata only, so it is cheaper than a full decode."""
    return change.new is not None and not any(owner.controller for owner in change.meta.owner_references)


def _any_object(obj: Object) -> bool:
    return True


async def claim(
    ctx: Context[Any],
    kind: type[K],
    selector: Selector,
    *,
    member: Callable[[K], bool] = _any_object,
    finalizer: str = "",
) -> list[K]:
    """The owner's objects of a kind, after adopting and releasing. The kind must be owned, with the `orphans` index.

    `member` is a further condition beside the selector: a StatefulSet's pods must have names of the set.
    `finalizer` is added to what is adopted and removed from what is released.

    Upstream: ClaimObject.
    """
    owner: Object = ctx.obj
    claimed: list[K] = []
    for obj in await ctx.owned(kind):
        if selector.matches(obj.metadata.labels) and member(obj):
            claimed.append(obj)
        elif owner.metadata.deletion_timestamp is None:
            await _release(ctx.client, kind, obj, owner, finalizer)
    if owner.metadata.deletion_timestamp is not None:
        return claimed
    for obj in ctx.indexed(kind, ORPHANS, owner.metadata.namespace):
        matches = selector.matches(obj.metadata.labels) and member(obj)
        if matches and obj.metadata.deletion_timestamp is None:
            adopted = await _adopt(ctx.client, kind, obj, owner, finalizer)
            if adopted is not None:
                claimed.append(adopted)
    return claimed


def adopters(
    kind: type[Any], read_selector: Callable[[Any], Selector] = from_selector
) -> Callable[[Any, Caches], list[Request]]:
    """The `lookup` of a watch whose predicate is `adoptable`: the objects of this kind that might adopt another."""

    def lookup(obj: Object, caches: Caches) -> list[Request]:
        if not obj.metadata.labels:
            return []
        return [
            Request(owner.metadata.namespace, owner.metadata.name)
            for owner in declared(caches, kind).list(obj.metadata.namespace)
            if read_selector(owner.spec.selector).matches(obj.metadata.labels)
        ]

    return lookup


async def _adopt(client: Client, kind: type[K], obj: K, owner: Object, finalizer: str) -> K | None:
    # upstream: RecheckDeletionTimestamp
    live = await client.get(type(owner), owner.metadata.name, owner.metadata.namespace)
    if live.metadata.uid != owner.metadata.uid or live.metadata.deletion_timestamp is not None:
        return None  # the cache is behind: the owner is being deleted, or another one has its name
    references = [*obj.metadata.owner_references, controller_reference(owner)]
    patch: dict[str, Any] = {"ownerReferences": [to_dict(reference) for reference in references]}
    if finalizer and finalizer not in obj.metadata.finalizers:
        patch["finalizers"] = [*obj.metadata.finalizers, finalizer]
    return await _patch(client, kind, obj, patch)


async def _release(client: Client, kind: type[K], obj: K, owner: Object, finalizer: str) -> None:
    kept = [to_dict(reference) for reference in obj.metadata.owner_references if reference.uid != owner.metadata.uid]
    patch: dict[str, Any] = {"ownerReferences": kept}
    if finalizer in obj.metadata.finalizers:
        patch["finalizers"] = [name for name in obj.metadata.finalizers if name != finalizer]
    await _patch(client, kind, obj, patch)


async def _patch(client: Client, kind: type[K], obj: K, metadata: dict[str, Any]) -> K | None:
    patch = MergePatch({"metadata": {"uid": obj.metadata.uid, **metadata}})
    try:
        return await client.patch(kind, obj.metadata.name, patch, obj.metadata.namespace)
    except (NotFound, Invalid):
        return None  # it is gone, or another object has its name
