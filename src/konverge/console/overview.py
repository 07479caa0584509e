"""`/console/v1/overview`: how many objects of each kind there are, which are not ready, and for which causes.

Objects are counted without reading them: a list with one item says how many remain. What is judged is what
`konverge why` reads, once for all who look: a person who waits for the page does not cost the cluster more.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial

import msgspec

from konverge import clock
from konverge.client import Client, ClientError, Unauthorized
from konverge.client.discovery import Served
from konverge.console.answers import json_answer
from konverge.console.call import Call
from konverge.console.views import HEALTHS, Kinds, View, explained, said
from konverge.explain import Answer, Explainer, Gatherer, Health, World, grouped
from konverge.explain.needs import NOT_IN_OVERVIEWS
from konverge.wire.message import Response

PARALLEL = 16
FRESH = 2.0
"""Seconds for which an overview is shown again to the same caller; and never less than five times what it cost."""
SHOWN = 200
"""Causes that are shown."""
_KEPT = "overview"


class _Kept(msgspec.Struct, frozen=True):
    view: View
    until: float


async def overview(call: Call) -> Response:
    """The whole cluster, as far as the caller may read it."""
    kept = call.session.kept
    lock = kept.setdefault("overview lock", asyncio.Lock())
    async with lock:
        known = kept.get(_KEPT)
        if not isinstance(known, _Kept) or known.until < clock.monotonic():
            began = clock.monotonic()
            view = await _read(call.client)
            cost = clock.monotonic() - began
            known = kept[_KEPT] = _Kept(view, clock.monotonic() + max(FRESH, 5 * cost))
    return json_answer(known.view)


async def _read(client: Client) -> View:
    served = await _listed(client)
    gatherer = Gatherer(client)
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(_counts(client, served), name="konverge.console.counts")
        asking = group.create_task(gatherer.sick(), name="konverge.console.sick")
    counts, answers = counting.result(), asking.result()
    healths = await gatherer.aside(partial(_healths, Explainer(gatherer.world)))
    kinds = Kinds(gatherer)
    groups = grouped(answers)[:SHOWN]
    return {
        "namespaces": sorted(ref.name for ref in gatherer.world.of_kind("Namespace")),
        "kinds": [_kind(entry, counts, healths) for entry in served],
        "problems": [
            {
                **await explained(first, kinds),
                "health": HEALTHS[first.worst],  # the list goes by causes, and has the sickest first
                "others": _others(members, gatherer.world),
            }
            for first, members in groups
        ],
        **said(unread=gatherer.unread),
    }


def _others(members: list[Answer], world: World) -> int:
    """How many more objects have the same cause; what another of them owns does not count."""
    refs = {answer.ref for answer in members}
    return sum(refs.isdisjoint(world.owners(ref)) for ref in refs) - 1


async def _listed(client: Client) -> list[Served]:
    every = await client.mapper.all()
    chosen = {
        (entry.resource.group, entry.resource.kind): entry
        for entry in every
        if entry.preferred and {"list", "get"} <= set(entry.verbs)
    }
    return sorted(chosen.values(), key=lambda entry: (entry.resource.group, entry.resource.kind))


async def _counts(client: Client, served: list[Served]) -> dict[tuple[str, str], int | None]:
    slots = asyncio.Semaphore(PARALLEL)

    async def count(entry: Served) -> int | None:
        async with slots:
            try:
                listing, items = await client.list_bytes(entry.resource, metadata_only=True, limit=1)
            except Unauthorized:
                raise
            except ClientError:
                return None  # not theirs to list, or its server is away
        return len(items) + (listing.remaining_item_count or 0)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(count(entry), name=f"count {entry.resource.plural}") for entry in served]
    return {_key(entry): task.result() for entry, task in zip(served, tasks, strict=True)}


def _healths(explainer: Explainer) -> Counter[tuple[str, str, str]]:
    healths: Counter[tuple[str, str, str]] = Counter()
    for ref in explainer.world:
        if ref.kind in NOT_IN_OVERVIEWS:
            continue
        health = explainer.health(ref)
        if health not in (Health.READY, Health.UNKNOWN):
            healths[ref.group, ref.kind, HEALTHS[health]] += 1
    return healths


def _kind(entry: Served, counts: dict[tuple[str, str], int | None], healths: Counter[tuple[str, str, str]]) -> View:
    resource = entry.resource
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "resource": resource.plural,
        "namespaced": resource.namespaced,
        "group": resource.group,
        "shortNames": list(entry.short_names),
        "verbs": list(entry.verbs),
        "subresources": list(entry.subresources),
        "count": counts[_key(entry)],
        "broken": healths[resource.group, resource.kind, "broken"],
        "waiting": healths[resource.group, resource.kind, "waiting"],
    }


def _key(entry: Served) -> tuple[str, str]:
    return entry.resource.group, entry.resource.kind
