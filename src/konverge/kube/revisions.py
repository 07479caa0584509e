"""ControllerRevisions: the templates that a StatefulSet or a DaemonSet had, for going back to them.

A revision holds a patch that restores its template. Equal templates share one revision: rolling back gives the old
revision the highest number again. They are written by PUT: the server compares their data as bytes, and a patch would
encode it again, with another order and other escapes.

Upstream: pkg/controller/history/controller_history.go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable
from typing import Any

import msgspec

from konverge.client import AlreadyExists, NotFound
from konverge.kube.adoption import ORPHANS
from konverge.kube.hashing import hash_of
from konverge.objects.codec import from_dict, to_dict
from konverge.objects.kinds.apps_v1 import ControllerRevision
from konverge.objects.kinds.core_v1 import PodTemplateSpec
from konverge.objects.labels import Selector
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context, TransientError, set_controller_reference

POD_LABEL = "controller-revision-hash"
"""The label of a pod that names its revision."""

_LONGEST_PREFIX = 223  # upstream: ControllerRevisionName
_MOST_COLLISIONS = 50  # a bound on the loop; two collisions in a row are already unlikely


def data_of(template: PodTemplateSpec) -> dict[str, Any]:
    """The patch that restores this template, in the order in which the server would encode it. Upstream: getPatch."""
    data = {"spec": {"template": {**to_dict(template), "$patch": "replace"}}}
    ordered_data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(data, order="sorted"))
    return ordered_data


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The template that a revision holds."""
    held = dict(revision.data.get("spec", {}).get("template", {}))
    held.pop("$patch", None)
    return from_dict(PodTemplateSpec, held)


def number(revision: ControllerRevision) -> int:
    return revision.revision or 0


def ordered(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Oldest first. Upstream: SortControllerRevisions."""
    return sorted(revisions, key=lambda rev: (number(rev), rev.metadata.creation_timestamp or "", rev.metadata.name))


async def history(ctx: Context[Any], selector: Selector) -> list[ControllerRevision]:
    """The revisions of the object, oldest first; matching orphans are adopted."""
    owned = [
        revision for revision in await ctx.owned(ControllerRevision)
        if selector.matches(revision.metadata.labels)
    ]  # fmt: skip
    orphaned: list[ControllerRevision] = []
    if ctx.obj.metadata.deletion_timestamp is None:
        orphaned = [
            revision for revision in ctx.indexed(ControllerRevision, ORPHANS, ctx.request.namespace)
            if revision.metadata.deletion_timestamp is None and selector.matches(revision.metadata.labels)
        ]  # fmt: skip
    return ordered([*owned, *[await _adopt(ctx, revision) for revision in orphaned]])


async def _adopt(ctx: Context[Any], revision: ControllerRevision) -> ControllerRevision:
    live = await ctx.client.get(type(ctx.obj), ctx.request.name, ctx.request.namespace)
    if live.metadata.uid != ctx.obj.metadata.uid or live.metadata.deletion_timestamp is not None:
        raise TransientError(f"{ctx.request} is being deleted or was recreated: it adopts no revision")
    set_controller_reference(ctx.obj, revision)
    return await _write(ctx, revision, {"ownerReferences": to_dict(revision.metadata)["ownerReferences"]})


# upstream: getStatefulSetRevisions, constructHistory
async def current(
    ctx: Context[Any],
    template: PodTemplateSpec,
    known: list[ControllerRevision],
    hash_label: str,
    collisions: int | None,
) -> tuple[ControllerRevision, int | None]:
    """The revision of a template, created or renumbered where needed; and the number of collisions so far."""
    data = data_of(template)
    same = [revision for revision in known if revision.data == data]
    highest = max((number(revision) for revision in known), default=0)
    if not same:
        return await _create(ctx, template, data, highest + 1, hash_label, collisions)
    latest = same[-1]
    if known[-1].data == data or number(latest) == highest:
        return latest, collisions
    return await _write(ctx, latest, {}, number=highest + 1), collisions


async def _create(
    ctx: Context[Any],
    template: PodTemplateSpec,
    data: dict[str, Any],
    revision: int,
    label: str,
    collisions: int | None,
) -> tuple[ControllerRevision, int | None]:
    """Named by the hash of the data; if other data has that name, the collision is counted and the next one is tried.

    Upstream: CreateControllerRevision.
    """
    for _ in range(_MOST_COLLISIONS):
        digest = hash_of(data, collisions)
        desired = ControllerRevision(
            metadata=ObjectMeta(
                name=f"{ctx.request.name[:_LONGEST_PREFIX]}-{digest}",
                namespace=ctx.request.namespace,
                labels={**template.metadata.labels, label: digest},
                annotations=dict(ctx.obj.metadata.annotations),
            ),
            data=data,
            revision=revision,
        )
        set_controller_reference(ctx.obj, desired)
        try:
            return await ctx.client.create(desired), collisions
        except AlreadyExists:
            live = await ctx.client.get(ControllerRevision, desired.metadata.name, ctx.request.namespace)
            if live.data == data:
                # It was created before: the cache was behind, or it belongs to a deleted owner of that name.
                return live, collisions
            collisions = (collisions or 0) + 1
    raise TransientError(f"no free name for a revision of {ctx.request} after {_MOST_COLLISIONS} collisions")


async def _write(
    ctx: Context[Any], revision: ControllerRevision, metadata: dict[str, Any], *, number: int | None = None
) -> ControllerRevision:
    live = await ctx.client.get(ControllerRevision.resource, revision.metadata.name, ctx.request.namespace)
    live["metadata"].update(metadata)
    if number is not None:
        live["revision"] = number
    return from_dict(ControllerRevision, await ctx.client.update(live))


# upstream: truncateHistory, cleanupHistory
async def forget(
    ctx: Context[Any], old: list[ControllerRevision], limit: int | None, *, but: Container[str] = ()
) -> None:
    """Delete revisions beyond the limit, oldest first; those named in `but` count and stay."""
    excess = max(0, len(old) - (10 if limit is None else limit))
    idle = [revision for revision in old if revision.metadata.name not in but]
    for revision in idle[:excess]:
        with contextlib.suppress(NotFound):
            await ctx.client.delete(ControllerRevision, revision.metadata.name, ctx.request.namespace)
