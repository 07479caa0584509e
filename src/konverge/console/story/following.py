"""Follows the members of a family by watches, as the caller, and makes an entry of every change.

A watch per kind, in the namespace of the object. Of what is no member only the head is read, and nothing is kept. It
begins with the first page that looks and ends with the last: all of it lives in one generator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import msgspec

from konverge import clock
from konverge.client import Client, ClientError, Expired, Forbidden, MethodNotAllowed, NotFound, Unauthorized
from konverge.console.story.entries import Entry, Named, of_change, of_event
from konverge.console.story.family import Family, read_head
from konverge.explain.needs import EVENTS, METADATA_ONLY
from konverge.explain.reading import Obj, mapping, text
from konverge.objects.resource import Resource

QUEUE = 1000
"""Entries that wait for a slow reader; then the watches wait."""
PAGE = 500
PAUSE = 2.0
"""Seconds before a watch that failed is tried again."""
_decode = msgspec.json.Decoder(dict[str, Any]).decode


async def follow(client: Client, family: Family) -> AsyncGenerator[Entry, None]:
    """Entries as they come, until the reader stops. Raises Unauthorized."""
    queue: asyncio.Queue[Entry | ClientError] = asyncio.Queue(QUEUE)
    kinds = [resource for resource in await family.kinds(client) if resource != EVENTS]
    followers = [_Follower(client, family, resource, queue) for resource in (*kinds, EVENTS)]
    tasks = [asyncio.create_task(each.run(), name=f"konverge.console.story {each.name}") for each in followers]
    try:
        while True:
            entry = await queue.get()
            if isinstance(entry, ClientError):
                raise entry
            yield entry
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class _Follower:
    """The members of one kind, as they were last seen."""

    def __init__(
        self, client: Client, family: Family, resource: Resource, queue: asyncio.Queue[Entry | ClientError]
    ) -> None:
        self.name = resource.plural
        self._client = client
        self._family = family
        self._resource = resource
        self._queue = queue
        self._namespace = family.root.namespace if resource.namespaced else ""
        # Whether a Secret was written is part of a story, what is in it is not: it is not even read.
        self._partly = not resource.group and resource.kind in METADATA_ONLY
        self._known: dict[str, Obj] = {}
        self._listed = False

    async def run(self) -> None:
        version = ""
        while True:
            try:
                version = version or await self._list()
                version = await self._watch(version)
            except Expired:
                version = ""
            except (Forbidden, NotFound, MethodNotAllowed):
                return  # not theirs to see, or not served any more
            except Unauthorized as error:
                await self._queue.put(error)
                return
            except ClientError:
                await asyncio.sleep(PAUSE)

    async def _list(self) -> str:
        """Everything that is there. What a second list shows, or does not, happened since the first."""
        seen: set[str] = set()
        token = version = ""
        while True:
            listing, raw = await self._client.list_bytes(
                self._resource, self._namespace, metadata_only=self._partly, limit=PAGE, continue_token=token
            )
            for data in raw:
                seen.add(await self._take("ADDED", data, first=not self._listed))
            version, token = listing.resource_version or "", listing.continue_
            if not token:
                break
        for uid in self._known.keys() - seen:
            await self._take("DELETED", msgspec.json.encode(self._known[uid]), first=False)
        self._listed = True
        return version

    async def _watch(self, version: str) -> str:
        """Until the server ends it; the version to go on from."""
        watch = self._client.watch_bytes(
            self._resource, self._namespace, metadata_only=self._partly, resource_version=version
        )
        async with aclosing(watch):
            async for batch in watch:
                for kind, data in batch:
                    version = read_head(data).metadata.resource_version or version
                    if kind != "BOOKMARK":
                        await self._take(kind, data, first=False)
        return version

    async def _take(self, kind: str, data: bytes, *, first: bool) -> str:
        """One object as it is now. Its uid if it is a member."""
        if self._resource == EVENTS:
            if not first and kind != "DELETED":
                await self._take_event(data)
            return ""
        head = self._family.admits(self._resource.group, self._resource.kind, data)
        if head is None:
            return ""
        uid, version, obj = head.metadata.uid, head.metadata.resource_version, _decode(data)
        old = self._known.get(uid)
        new = None if kind == "DELETED" else obj
        if new is None:
            self._known.pop(uid, None)
        else:
            self._known[uid] = new
        if not first and (old is not None or new is not None):
            named = Named.of(self._resource, head.metadata.namespace, head.metadata.name)
            entry = of_change(named, old, new, int(version) if version.isdigit() else 0, clock.now())
            if entry is not None:
                await self._queue.put(entry)
        return uid

    async def _take_event(self, data: bytes) -> None:
        event = _decode(data)
        about = mapping(event, "involvedObject")
        if text(about, "uid") in self._family.uids:
            await self._queue.put(of_event(event))
