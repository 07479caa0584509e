"""`/console/v1/story` and `/console/v1/story/stream`: the past of an object and of all that belongs to it, and now.

Of the history of a server in this process a caller sees what they may watch: each kind is asked for, as the caller.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from math import inf
from typing import Any

import msgspec

from konverge import clock
from konverge.client import Client, ClientError, NotFound, Unauthorized
from konverge.console.answers import json_answer
from konverge.console.bounds import Bound
from konverge.console.call import Call
from konverge.console.messages import in_messages
from konverge.console.rights import may
from konverge.console.story.entries import Entry, Named, of_change, of_event, of_managers, of_reconcile, ordered
from konverge.console.story.family import Family, read_head
from konverge.console.story.following import follow
from konverge.console.story.history import Change, History, Reconciles
from konverge.console.story.series import State, series
from konverge.explain import Ref
from konverge.explain.needs import EVENTS
from konverge.explain.reading import Obj, moment, text
from konverge.objects.codec import from_json, to_json
from konverge.objects.resource import Resource
from konverge.runtime.story.model import ReconcileStory
from konverge.wire import websocket
from konverge.wire.message import Headers, Response, Sink

MOST = 500
"""Entries of an answer."""
LOOKED_AT = 20_000
"""Changes of the history that are looked at for one answer, the latest first."""
KEPT = 2000
"""Entries that are kept of one story that a caller has followed."""
STORIES = 20
STREAMS = 8
"""Stories that one caller may follow at a time: each is a watch for every kind of its members."""
RECONCILES = 100
_EVENTS_READ = 1000
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Teller:
    """Tells stories, from what this console has."""

    def __init__(self, history: History | None = None, reconciles: Reconciles | None = None) -> None:
        self.history = history
        self._reconciles = reconciles
        self._bound = Bound(STREAMS, "stories")

    @property
    def revisions(self) -> dict[str, int] | None:
        """The revisions whose state can be shown, where that is known."""
        if self.history is None:
            return None
        return {"oldest": self.history.oldest, "newest": self.history.newest}

    async def story(self, call: Call) -> Response:
        """The past, as far as it is known."""
        since = call.query.get("since", "")
        family = await Family.read(call.client, call.ref)
        kinds = await family.kinds(call.client)
        changes = await self._changes(call.client, family, kinds, int(since) if since.isdigit() else 0)
        if not family.members and not changes:
            raise NotFound(_missing(call.ref))
        stories = await self._reconciles(call.ref, RECONCILES) if self._reconciles is not None else []
        shown = await _shown_kinds(call.client, stories, call.ref)
        stories = [story for story in stories if (story.api_version, story.kind) in shown]
        entries = list(_followed(call).get(call.ref, ()))
        entries += [entry for change in changes if (entry := change.entry) is not None]
        entries += _said(family, kinds, before=int(changes[0].time) if changes else inf)
        entries += await _events(call.client, family)
        entries += [of_reconcile(story, shown[story.api_version, story.kind], shown) for story in stories]
        after = moment({"since": since}, "since") or 0.0
        chosen = ordered((entry for entry in entries if entry.seconds >= after), MOST)
        plots = series(*_states(changes, family), stories, clock.now())
        return json_answer({"entries": chosen, "series": plots, "revisions": self.revisions})

    async def stream(self, call: Call) -> Response:
        """Entries as they come: as messages of a WebSocket, or as server-sent events."""
        family = await Family.read(call.client, call.ref)
        if not family.members:
            raise NotFound(_missing(call.ref))

        async def entries() -> AsyncGenerator[bytes, None]:
            kept = _kept_of(call)
            with self._bound.enter(call.session):
                async with aclosing(follow(call.client, family)) as followed:
                    async for entry in followed:
                        kept.append(entry)
                        yield to_json(entry)

        if websocket.is_asked_for(call.request):

            @asynccontextmanager
            async def pieces() -> AsyncIterator[AsyncIterator[bytes]]:
                async with aclosing(entries()) as source:
                    yield source

            return in_messages(call.request, pieces)
        fields = Headers.of({"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        return Response(200, fields, producer=lambda sink: _as_events(sink, entries()))

    # -------------------------------------------------------------- the history

    async def _changes(self, client: Client, family: Family, kinds: list[Resource], since: int) -> list[_Told]:
        """The changes of the family that the caller may see, the earliest first."""
        if self.history is None:
            return []
        allowed = {(kind.group, kind.plural): kind for kind in kinds if await _may_watch(client, kind, family.root)}
        looked_at: list[tuple[Change, Resource]] = []
        for number, change in enumerate(self.history.changes(since)):
            if number >= LOOKED_AT:
                break
            resource = allowed.get((change.group, change.plural))
            if resource is not None and change.namespace in ("", family.root.namespace):
                looked_at.append((change, resource))
        told = []
        for change, resource in reversed(looked_at):  # an owner is created before what it owns
            data = change.new or change.old
            if data is not None and family.admits(resource.group, resource.kind, data) is not None:
                told.append(_Told(change, resource))
        return told[-2 * MOST :]


class _Told:
    """A change that belongs to the story, decoded once."""

    def __init__(self, change: Change, resource: Resource) -> None:
        self.time = change.time
        self.resource = resource
        self.old = None if change.old is None else _decode(change.old)
        self.new = None if change.new is None else _decode(change.new)
        self.uid = read_head(change.new or change.old or b"{}").metadata.uid
        named = Named.of(resource, change.namespace, change.name)
        self.entry = of_change(named, self.old, self.new, change.revision, change.time)


def _states(changes: list[_Told], family: Family) -> tuple[list[State], list[State]]:
    """The states of the object itself and of its pods, in the order of time, from before the first change on."""
    root, pods = _timeline(changes, family, family.root.kind), _timeline(changes, family, "Pod")
    uid = text(family.world.get(family.root), "metadata", "uid")
    return [state for state in root if not uid or state.uid == uid], pods


def _timeline(changes: list[_Told], family: Family, kind: str) -> list[State]:
    chosen = [change for change in changes if change.resource.kind == kind]
    begin = min((change.time for change in changes), default=clock.now())
    first: dict[str, Obj | None] = {}
    for change in chosen:
        first.setdefault(change.uid, change.old)
    for ref in family.members:
        if ref.kind == kind:
            obj = family.world.get(ref)
            first.setdefault(text(obj, "metadata", "uid"), obj)
    states = [State(begin, uid, obj) for uid, obj in first.items() if obj is not None]
    return states + [State(change.time, change.uid, change.new) for change in chosen]


# ------------------------------------------------------------------ what any server says


def _said(family: Family, kinds: list[Resource], before: float) -> list[Entry]:
    """What the members say of their own past, before the history begins."""
    by_kind = {(resource.group, resource.kind): resource for resource in kinds}
    entries: list[Entry] = []
    for ref in family.members:
        resource = by_kind.get((ref.group, ref.kind))
        obj = family.world.get(ref)
        if resource is not None and obj is not None:
            named = Named.of(resource, ref.namespace, ref.name)
            entries += [entry for entry in of_managers(named, obj) if entry.seconds < before]
    return entries


async def _events(client: Client, family: Family) -> list[Entry]:
    try:
        _, raw = await client.list_bytes(EVENTS, family.root.namespace, limit=_EVENTS_READ)
    except Unauthorized:
        raise
    except ClientError:
        return []
    events = (from_json(dict[str, Any], data) for data in raw)
    return [of_event(event) for event in events if text(event, "involvedObject", "uid") in family.uids]


async def _shown_kinds(client: Client, stories: list[ReconcileStory], root: Ref) -> dict[tuple[str, str], Resource]:
    """Of the kinds in reconciles, by apiVersion and kind, those that the caller may watch."""
    named = {(story.api_version, story.kind) for story in stories}
    named |= {(write.api_version, write.kind) for story in stories for write in story.writes}
    shown: dict[tuple[str, str], Resource] = {}
    for api_version, kind in sorted(named):
        try:
            resource = await client.mapper.kind(api_version, kind)
        except Unauthorized:
            raise
        except ClientError:
            continue
        if await _may_watch(client, resource, root):
            shown[api_version, kind] = resource
    return shown


async def _may_watch(client: Client, resource: Resource, root: Ref) -> bool:
    """Whether the cluster lets the caller watch a kind."""
    attributes = {"verb": "watch", "group": resource.group, "resource": resource.plural}
    if resource.namespaced:
        attributes["namespace"] = root.namespace
    return await may(client, resourceAttributes=attributes)


def _missing(ref: Ref) -> Any:
    from konverge.objects.meta import Status

    return Status(code=404, reason="NotFound", message=f"{ref} does not exist, and nothing is known of its past")


# ------------------------------------------------------------------ what was followed


def _followed(call: Call) -> OrderedDict[Ref, deque[Entry]]:
    kept = call.session.kept.setdefault("stories", OrderedDict())
    assert isinstance(kept, OrderedDict)
    return kept


def _kept_of(call: Call) -> deque[Entry]:
    """Where the entries of a story are kept for the same caller's next look."""
    stories = _followed(call)
    kept = stories.setdefault(call.ref, deque(maxlen=KEPT))
    stories.move_to_end(call.ref)
    while len(stories) > STORIES:
        stories.popitem(last=False)
    return kept


async def _as_events(sink: Sink, entries: AsyncGenerator[bytes, None]) -> None:
    """Server-sent events. The JSON is on one line, so it needs no splitting."""
    async with aclosing(entries):
        sink.write(b": story\n\n")
        await sink.drain()
        async for entry in entries:
            sink.write(b"data: %b\n\n" % entry)
            await sink.drain()
