"""The reflector: keeps one `Watching` fed, for as long as it runs.

It never stalls silently. Every watch has a server-side time limit with jitter, so that a fleet does not reconnect at
once, and a client-side one, so that a connection that died silently is noticed; a caller that misses an event can
`restart_watch` at once. Every failure leads to one of three next steps: resume from the last version, list again, or
wait and try the same. Nothing but cancellation ends it.

Upstream: Reflector (client-go's tools/cache/reflector.go).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from math import inf

import msgspec

from konverge import clock
from konverge.cache.deep import cut_below
from konverge.cache.record import Key, number
from konverge.cache.store import SLICE, Change
from konverge.cache.watch_state import WatchError, Watching
from konverge.client.call import Call, Caller
from konverge.client.errors import (
    UNREADABLE,
    ApiStatusError,
    BadRequest,
    ClientError,
    Expired,
    Invalid,
    MalformedAnswer,
    NotFound,
    TimedOut,
    TooManyRequests,
)
from konverge.objects.resource import Resource
from konverge.wire.errors import WireError
from konverge.wire.message import Stream
from konverge.wire.stream import ResponseStream

# Upstream: defaultBackoffInit, defaultBackoffMax, defaultBackoffReset. At worst one list per 30 s and reflector when a
# server is down; a watch that lasted for two minutes counts as healthy and starts from the first delay again.
FIRST_DELAY = 0.8
MAX_DELAY = 30.0
HEALTHY_AFTER = 120.0
JITTER = 0.5
"""The largest random share that is added to a delay; half of upstream's defaultBackoffJitter."""

WATCH_SECONDS = (300, 600)
"""The time limit of a watch, chosen at random. Upstream: defaultMinWatchTimeout, defaultMaxWatchTimeout."""
NEAR_WATCH_SECONDS = (86_400, 172_800)
"""In one process the end of a stream is always noticed: it need not be renewed, and no bookmark is needed as a sign of
life."""
GRACE = 5.0
"""A stream that outlives the server's own limit by this many seconds is dead."""
BOOKMARK_SILENCE = 150.0
"""Servers that send bookmarks do so every minute (upstream: defaultBookmarkFrequency). Two missing ones: it is dead."""
LEEWAY = 30.0
"""Seconds more until that is noticed, so that not every event has to move the timer."""
MIN_AGE = 3.0
"""Seconds that a connection is given to deliver what is missed before it can be restarted."""
BATCH_PAUSE = 0.05
"""Seconds between two reads while all handlers are busy: events would only wait in their queues, and a packet for each
change costs several times what the change itself does."""
PAGE = 500
"""Objects in one page of a list. Upstream: defaultPageSize (client-go's tools/pager)."""

PARTIAL_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
PARTIAL_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


class Restart(Enum):
    """Why a watch was restarted; counted by reason."""

    TIMEOUT = "timeout"
    EXPIRED = "expired"
    SILENT = "silent"
    ERROR = "error"


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What a reflector watches."""

    resource: Resource
    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False

    def query(self) -> dict[str, str]:
        query = {}
        if self.label_selector:
            query["labelSelector"] = self.label_selector
        if self.field_selector:
            query["fieldSelector"] = self.field_selector
        return query


class Health(msgspec.Struct):
    """What a reflector reports about itself: for readiness messages, metrics and the console."""

    last_event: float = 0.0
    """Loop time of the last sign of life."""
    restarts: dict[Restart, int] = msgspec.field(default_factory=dict.fromkeys(Restart, 0).copy)
    lists: int = 0
    failures: int = 0
    """Failures in a row."""
    error: str = ""
    """The last failure, until the watch works again."""
    missing: bool = False
    """The server does not have this resource: its definition is not installed."""


class _ListMeta(msgspec.Struct, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[msgspec.Raw] | None = None


_list_decoder = msgspec.json.Decoder(_List)


class _ItemMeta(msgspec.Struct, rename="camel", gc=False):
    """The identity and the version of one object."""

    name: str
    uid: str = ""
    resource_version: str = ""
    namespace: str = ""


class _Item(msgspec.Struct, gc=False):
    metadata: _ItemMeta


class _Heads(msgspec.Struct, gc=False):
    metadata: _ListMeta
    items: list[_Item] | None = None


_heads_decoder = msgspec.json.Decoder(_Heads)


class _Numbers(msgspec.Struct, gc=False):
    """A page without its items."""

    metadata: _ListMeta
    items: list[int]


_numbers_decoder = msgspec.json.Decoder(_Numbers)


def _read_page(body: bytes) -> _List:
    try:
        return _list_decoder.decode(body)
    except RecursionError:  # one object is nested too deeply; the others are cut out of the page beside it
        shallow, pieces = cut_below(body, 2)
        page = _numbers_decoder.decode(shallow)
        return _List(page.metadata, [msgspec.Raw(pieces[number]) for number in page.items])


def _read_heads(body: bytes) -> _Heads:
    try:
        return _heads_decoder.decode(body)
    except RecursionError:  # managedFields are nested as deeply as their object
        return _heads_decoder.decode(cut_below(body, 4)[0])


class Reflector:
    """Feeds a store from a list and a watch. `run` never returns; cancel it."""

    def __init__(
        self,
        caller: Caller,
        scope: Scope,
        watching: Watching,
        on_changes: Callable[[list[Change]], None],
        *,
        list_timeout: float = 60.0,
        streaming: bool = True,
        is_busy: Callable[[], bool] = lambda: False,
        on_missing: Callable[[], None] = lambda: None,
        on_health: Callable[[Exception | None], None] = lambda error: None,
    ) -> None:
        self.scope = scope
        self.watching = watching
        self.health = Health()
        self._caller = caller
        self._on_changes = on_changes
        self._list_timeout = list_timeout
        self._streaming = streaming and not caller.near  # in one process a list costs half of a stream that is closed
        self._is_busy = is_busy
        self._on_missing = on_missing
        self._on_health = on_health
        """Called after every failed attempt with its error, and with None when the watch works again."""
        self._failing = False
        self._list_version = "0"  # any state that the server has cached will do; after a 410, only the newest
        self._alarm: asyncio.Timeout | None = None
        """Its time limit ends the watch that is being read."""
        self._began = self._opened = 0.0
        self._restarted = False
        """Whether the present watch was opened by `restart_watch`."""

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        self.health.last_event = loop.time()
        while True:
            self._began = loop.time()
            try:
                await self._list_and_watch()
                self._restarted = False
                self._recovered(Restart.TIMEOUT)
            except (WatchError, Expired) as error:
                if isinstance(error, Expired) or error.expired:
                    self._forget_position()
                    self._recovered(Restart.EXPIRED)
                else:
                    await self._failed(error, error.retry_after)
            except (ClientError, WireError) as error:
                await self._failed(error, (error.retry_after or 0) if isinstance(error, TooManyRequests) else 0)
            except UNREADABLE as error:  # not one object, but the answer itself: a proxy's page, a stream cut in pieces
                self._forget_position()
                await self._failed(MalformedAnswer(f"the answer cannot be read: {error}"), 0)
            except TimeoutError:  # after the wire's errors, some of which are also this
                self._recovered(Restart.SILENT)
            if self.health.failures == 0 and loop.time() - self._began < 1.0:
                # A server that ends every watch at once must not be asked a thousand times a second (upstream:
                # VeryShortWatchError).
                await asyncio.sleep(FIRST_DELAY)

    def restart_watch(self) -> None:
        """An event that should have arrived did not: the connection may have died silently.

        The watch is resumed from its position on a new connection. If that one is restarted as well, the state is
        listed again, and then everything is known that was there before.
        """
        now = asyncio.get_running_loop().time()
        if self._alarm is None or now - self._opened < MIN_AGE:
            return  # the state is being listed, or the back-off of a failure runs, or it is too early to say
        if self._restarted:
            self._forget_position()
        self._restarted = not self._restarted
        self._alarm.reschedule(now)
        self._alarm = None

    def list_again(self) -> None:
        """What the server is asked for has changed: the state is listed again, at once when it is being watched."""
        if self._alarm is not None:
            self._forget_position()
            self._alarm.reschedule(asyncio.get_running_loop().time())
            self._alarm = None

    async def list_versions(self, namespace: str) -> tuple[int, dict[Key, tuple[str, int]]]:
        """What the server has now in a namespace: the version of the list, and uid and version of each object."""
        query = self.scope.query()
        call = Call("list", self.scope.resource, namespace, query=query, accept=PARTIAL_METADATA_LIST)
        try:
            answer = _read_heads((await self._caller.call(call)).body)
        except UNREADABLE as error:
            raise MalformedAnswer(f"the list cannot be read: {error}") from error
        metas = [item.metadata for item in answer.items or ()]
        versions = {Key(meta.namespace, meta.name): (meta.uid, number(meta.resource_version)) for meta in metas}
        return number(answer.metadata.resource_version), versions

    # -------------------------------------------------------------- list and watch

    # upstream: ListAndWatchWithContext
    async def _list_and_watch(self) -> None:
        """The state if it is not known, then its changes until the stream ends."""
        self.watching.reset_stream()
        if self.watching.position:
            await self._watch({"resourceVersion": str(self.watching.resume_from)})
            return
        self.health.lists += 1
        if self._streaming:
            try:
                self.watching.begin_list()
                await self._stream_state({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"})
                if not self.watching.listing:
                    self.watching.reset_stream()  # events after the initial ones come again on the next stream
                    await self._watch({"resourceVersion": str(self.watching.position)})
                return
            except (BadRequest, Invalid):
                # An older server, or one without the feature, refuses; then the state is listed in pages.
                self._streaming = False
        await self._list_in_time()
        await self._watch({"resourceVersion": str(self.watching.position)})

    # upstream: watchList
    async def _stream_state(self, query: dict[str, str]) -> None:
        try:
            await self._watch(query, state_only=True)
        except TimeoutError:
            raise TimedOut(f"no part of the list arrived for {self._list_timeout:g} s: raise LIST_TIMEOUT") from None

    async def _watch(self, query: dict[str, str], *, state_only: bool = False) -> None:
        """Read a stream to its end; with `state_only`, until the initial events have come.

        The state is requested compressed, changes uncompressed: of changes, a server makes each event of a compressed
        stream a gzip file of its own, which costs both sides more than the event; of the state, it sends each event in
        a packet of its own without compression (measured: 22 against 8 µs each for the client).
        """
        near = self._caller.near
        seconds = clock.rng().randint(*(NEAR_WATCH_SECONDS if near else WATCH_SECONDS))
        query = {
            **self.scope.query(),
            "watch": "true",
            "allowWatchBookmarks": "false" if near else "true",
            "timeoutSeconds": str(seconds),
            **query,
        }
        call = Call(
            "watch",
            self.scope.resource,
            self.scope.namespace,
            query=query,
            accept=PARTIAL_METADATA if self.scope.metadata_only else "application/json",
            # A call's limit is for its whole stream; the usual one would end every watch in its second minute.
            timeout=None if near else seconds + 2 * GRACE,
            headers=() if state_only else (("accept-encoding", "identity"),),
        )
        stream = await self._caller.stream(call)
        self.health.missing = False
        if not state_only:
            self.health.error = ""  # it is current: a quiet resource sends nothing for a long time
            if self._failing:
                self._failing = False
                self._on_health(None)
        try:
            await self._read(stream, None if near else seconds + GRACE, state_only=state_only)
        finally:
            await stream.aclose()

    async def _read(self, stream: Stream, limit: float | None, *, state_only: bool) -> None:
        loop = asyncio.get_running_loop()
        # The state is read as fast as it comes: no reconcile runs before it is complete.
        changes = None if state_only or self._caller.near or not isinstance(stream, ResponseStream) else stream
        end = inf if limit is None else loop.time() + limit
        async with asyncio.timeout_at(end if limit else None) as alarm:
            if state_only:
                alarm.reschedule(min(end, loop.time() + self._list_timeout))
            else:
                self._alarm, self._opened = alarm, loop.time()
            try:
                async for chunk in stream:
                    self.health.last_event = loop.time()
                    self.health.error = ""
                    await self._feed(chunk)
                    if state_only and not self.watching.listing:
                        return
                    if state_only:
                        alarm.reschedule(min(end, loop.time() + self._list_timeout))
                    elif self.watching.bookmarks and self._alarm is not None:
                        self._extend(alarm, end)
                    if changes is not None and self._is_busy():
                        await changes.rest(BATCH_PAUSE)
            finally:
                self._alarm = None

    @staticmethod
    def _extend(alarm: asyncio.Timeout, end: float) -> None:
        now, due = asyncio.get_running_loop().time(), alarm.when()
        latest = min(end, now + BOOKMARK_SILENCE + LEEWAY)
        if due is None or due > latest or due < min(end, now + BOOKMARK_SILENCE):
            alarm.reschedule(latest)

    async def _feed(self, chunk: bytes) -> None:
        """Changes are delivered as soon as they are in the store: a watch can only end between two slices."""
        for changes in self.watching.feed(chunk):
            self._on_changes(changes)
            if len(changes) >= SLICE or self.watching.listing:
                await asyncio.sleep(0)

    async def _list_in_time(self) -> None:
        try:
            async with asyncio.timeout(self._list_timeout):
                await self._list()
        except TimeoutError:
            raise TimedOut(f"the list took longer than {self._list_timeout:g} s: raise LIST_TIMEOUT") from None

    async def _list(self) -> None:
        """The state in pages, for servers that cannot stream it. Upstream: list."""
        self.watching.begin_list()
        query = {**self.scope.query(), "limit": str(PAGE), "resourceVersion": self._list_version}
        version = 0
        while True:
            accept = PARTIAL_METADATA_LIST if self.scope.metadata_only else "application/json"
            call = Call("list", self.scope.resource, self.scope.namespace, query=query, accept=accept)
            page = _read_page((await self._caller.call(call)).body)
            self.health.missing = False
            version = version or number(page.metadata.resource_version)
            self._deliver_page(page.items or [])
            if not page.metadata.continue_:
                break
            query = {**self.scope.query(), "limit": str(PAGE), "continue": page.metadata.continue_}
        for changes in self.watching.end_list(version):
            self._on_changes(changes)
            await asyncio.sleep(0)
        self._on_changes([])  # even after an empty list the informer must notice that the cache has synced
        self._list_version = "0"

    def _deliver_page(self, items: list[msgspec.Raw]) -> None:
        self._on_changes(self.watching.add_listed(bytes(item) for item in items))

    # -------------------------------------------------------------- recovery and back-off

    def _forget_position(self) -> None:
        self.watching.position = 0
        self._list_version = ""

    def _recovered(self, why: Restart) -> None:
        self.health.restarts[why] += 1
        self.health.failures = 0
        self.health.error = ""

    async def _failed(self, error: Exception, retry_after: float) -> None:
        if isinstance(error, ApiStatusError) and "Too large resource version" in str(error):
            # We are ahead of a server that was restored or is another replica: only a new list helps (upstream:
            # isTooLargeResourceVersionError).
            self._forget_position()
        self.health.restarts[Restart.ERROR] += 1
        if asyncio.get_running_loop().time() - self._began > HEALTHY_AFTER:
            self.health.failures = 0
        self.health.failures += 1
        self.health.error = str(error)
        self.health.missing = isinstance(error, NotFound)
        if self.health.missing:
            self._on_missing()
        self._failing = True
        self._on_health(error)
        delay = min(FIRST_DELAY * 2.0 ** min(self.health.failures - 1, 10), MAX_DELAY)
        delay *= 1 + JITTER * clock.rng().random()
        await asyncio.sleep(max(delay, retry_after))
