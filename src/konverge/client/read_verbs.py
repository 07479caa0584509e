"""The verbs that read: get, list, pages, each, watch, and the variants on bytes for caches."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias, Unpack, cast, overload

import msgspec

from konverge.client.binding import K, Listing, Obj, known
from konverge.client.call import JSON, Call
from konverge.client.errors import UNREADABLE, Expired, MalformedAnswer
from konverge.client.options import GetOptions, ListOptions, WatchOptions
from konverge.client.verbs import Verbs, make_call
from konverge.client.watch import EventReader, RawEvent, WatchEvent
from konverge.objects.codec import decoder
from konverge.objects.meta import ListMeta
from konverge.objects.resource import Resource
from konverge.wire.message import Stream

METADATA_ONLY = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_ONLY_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
WATCH_GRACE = 10.0
"""Seconds that a watch may outlive the `timeout_seconds` it gave the server before it counts as lost."""
PAGE_SIZE = 500
_UNCOMPRESSED = (("accept-encoding", "identity"),)
"""For watches whose events come one by one: newer servers make each of them a gzip file of its own, which saves little
and costs both sides more than the event itself (measured: a third of the client's CPU)."""

RawBatch: TypeAlias = list[RawEvent]
RawItems: TypeAlias = list[bytes]

_decode_raw_list = decoder(Listing[msgspec.Raw]).decode


class Reading(Verbs):
    """The reading half of `Client`."""

    @overload
    async def get(self, kind: type[K], name: str, namespace: str = "", **options: Unpack[GetOptions]) -> K: ...
    @overload
    async def get(self, kind: Resource | str, name: str, namespace: str = "", **options: Unpack[GetOptions]) -> Obj: ...
    async def get(self, kind: Any, name: str, namespace: str = "", **options: Unpack[GetOptions]) -> Any:
        """One object, live from the server. Raises `NotFound`.

        web = await client.get(Deployment, "web", namespace="shop")
        web = await client.get("deploy", "web", namespace="shop")      # a dict
        """
        binding = known(kind) or await self._bind(kind)
        response = await self.caller.call(make_call("get", binding.resource, namespace, name, options))
        return binding.decode(response.body)

    async def get_bytes(
        self, kind: Any, name: str, namespace: str = "", *, metadata_only: bool = False, **options: Unpack[GetOptions]
    ) -> bytes:
        """Like `get`, for those who read little of the answer: the object as JSON, not decoded."""
        binding = known(kind) or await self._bind(kind)
        call = make_call("get", binding.resource, namespace, name, options)
        if metadata_only:
            call.accept = METADATA_ONLY
        return (await self.caller.call(call)).body

    @overload
    async def list(self, kind: type[K], namespace: str = "", **options: Unpack[ListOptions]) -> Listing[K]: ...
    @overload
    async def list(self, kind: Resource | str, namespace: str = "", **options: Unpack[ListOptions]) -> Listing[Obj]: ...
    async def list(self, kind: Any, namespace: str = "", **options: Unpack[ListOptions]) -> Listing[Any]:
        """All objects in one answer (or one page of them, with `limit`). Without a namespace: of all namespaces.

        pods = await client.list(Pod, "shop", label_selector="app=web")
        """
        binding = known(kind) or await self._bind(kind)
        response = await self.caller.call(make_call("list", binding.resource, namespace, "", options))
        return binding.decode_list(response.body)

    @overload
    def pages(
        self, kind: type[K], namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[Listing[K], None]: ...
    @overload
    def pages(
        self, kind: Resource | str, namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[Listing[Obj], None]: ...
    async def pages(
        self, kind: Any, namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[Listing[Any], None]:
        """The list page by page, `limit` objects each (500 unless said).

        All pages show one moment. When the server no longer has that moment (a slow reader), `Expired` is raised; with
        `consistent=False` the iteration goes on from the same place at the present moment instead.

            async for page in client.pages(Pod, limit=1000): ...
        """
        options.setdefault("limit", PAGE_SIZE)
        while True:
            try:
                page = await self.list(kind, namespace, **options)
            except Expired as error:
                if consistent or not error.continue_token or not options.get("continue_token"):
                    raise
                options["continue_token"] = error.continue_token
                continue
            yield page
            if not page.metadata.continue_:
                return
            options["continue_token"] = page.metadata.continue_
            # The token holds the version; the server refuses a second one.
            options.pop("resource_version", None)
            options.pop("resource_version_match", None)

    @overload
    def each(
        self, kind: type[K], namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[K, None]: ...
    @overload
    def each(
        self, kind: Resource | str, namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[Obj, None]: ...
    async def each(
        self, kind: Any, namespace: str = "", *, consistent: bool = True, **options: Unpack[ListOptions]
    ) -> AsyncGenerator[Any, None]:
        """Every object, fetched in pages.

        async for pod in client.each(Pod, label_selector="app=web"): ...
        """
        async with aclosing(self.pages(kind, namespace, consistent=consistent, **options)) as pages:
            async for page in pages:
                for item in page.items:
                    yield item

    @overload
    def watch(
        self, kind: type[K], namespace: str = "", **options: Unpack[WatchOptions]
    ) -> AsyncGenerator[WatchEvent[K], None]: ...
    @overload
    def watch(
        self, kind: Resource | str, namespace: str = "", **options: Unpack[WatchOptions]
    ) -> AsyncGenerator[WatchEvent[Obj], None]: ...
    async def watch(
        self, kind: Any, namespace: str = "", **options: Unpack[WatchOptions]
    ) -> AsyncGenerator[WatchEvent[Any], None]:
        """Changes as they happen, until the server ends the watch. Raises `Expired` when the version is too old.

        Ends with the loop that reads it; use `contextlib.aclosing` to end it at a certain place.

            async for event in client.watch(Pod, "shop", resource_version=pods.metadata.resource_version):
                print(event.type, event.object.metadata.name)
        """
        binding = known(kind) or await self._bind(kind)
        stream, request = await self._open_watch(binding.resource, namespace, options)
        try:
            reader = EventReader(stream, request)
            while (events := await reader.events(binding)) is not None:
                for event in events:
                    yield event
                events = ()  # gone before the next are made, so that these are made in memory that the cache still has
        finally:
            await stream.aclose()

    async def watch_bytes(
        self, kind: Any, namespace: str = "", *, metadata_only: bool = False, **options: Unpack[WatchOptions]
    ) -> AsyncGenerator[RawBatch, None]:
        """Like `watch`, for caches: batches of `(type, JSON of the object)`, as they came off the wire, not decoded."""
        binding = known(kind) or await self._bind(kind)
        accept = METADATA_ONLY if metadata_only else JSON
        stream, request = await self._open_watch(binding.resource, namespace, options, accept)
        try:
            reader = EventReader(stream, request)
            while batch := await reader.raw():
                yield batch
        finally:
            await stream.aclose()

    async def list_bytes(
        self, kind: Any, namespace: str = "", *, metadata_only: bool = False, **options: Unpack[ListOptions]
    ) -> tuple[ListMeta, RawItems]:
        """Like `list`, for caches: the metadata, and each object as JSON. Each piece of bytes stands on its own."""
        binding = known(kind) or await self._bind(kind)
        call = make_call("list", binding.resource, namespace, "", options)
        if metadata_only:
            call.accept = METADATA_ONLY_LIST
        body = (await self.caller.call(call)).body
        try:
            listing = _decode_raw_list(body)
        except UNREADABLE as error:
            raise MalformedAnswer(f"the answer is not a list: {error}") from error
        # A Raw is a window into the whole answer and would keep all of it alive.
        return listing.metadata, [bytes(item) for item in listing.items]

    async def _open_watch(
        self, resource: Resource, namespace: str, options: WatchOptions, accept: str = JSON
    ) -> tuple[Stream, str]:
        options.setdefault("bookmarks", True)
        call = make_call("watch", resource, namespace, "", options)
        call.query["watch"] = "1"
        call.accept = accept
        if not _begins_with_state(call.query):
            call.headers = _UNCOMPRESSED
        if "timeout" not in options:
            limit = options.get("timeout_seconds")
            call.timeout = limit + WATCH_GRACE if limit else None
        return await self.caller.stream(call), _named(call)


def _begins_with_state(query: Mapping[str, str]) -> bool:
    """Whether a watch begins with the events of all that is there, in bulk, rather than from a certain version on."""
    return query.get("resourceVersion", "0") == "0" or query.get("sendInitialEvents") == "true"


def _named(call: Call) -> str:
    return f"watch {cast(Resource, call.resource).path(call.namespace)}"
