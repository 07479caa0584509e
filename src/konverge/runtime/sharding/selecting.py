"""Caches that hold a replica's own share: lists and watches ask the server for the namespaces of our slots alone.

The server selects by ranges of a hash of the namespace (KEP-5866, the feature gate ShardedListAndWatch). A server
without it ignores the parameter and shows everything; then it is not sent again, and the gates of the queues alone make
the share. Selected are the kinds that a controller reconciles and owns: their objects live in the namespace of the key.
Kinds that are watched or read are left whole, because a reconciler may look at any of them. What a cache does not show
(`Informer.shows`) is read live: a reconciler may look into another namespace, and a task into all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

import msgspec

from konverge.cache.informer import Informer
from konverge.cache.record import Key
from konverge.client import Client, ConnectionLost, NotFound
from konverge.client.call import Call, Caller
from konverge.objects.resource import Resource
from konverge.runtime.declared import DeclaredCaches
from konverge.runtime.sharding.rendezvous import NAMESPACE_SLOTS, shard_selector, slot_of_namespace
from konverge.wire.message import Response, Stream

NOTHING = "shardRange(object.metadata.namespace, '0x0000000000000000', '0x0000000000000001')"
"""A share without slots: a range that no namespace falls into but by a chance of 1 to 2⁶⁴."""
RELIST = 0.5
"""Seconds after which a cache that has not begun to list again is asked once more."""


class _ShardInfo(msgspec.Struct):
    selector: str = ""


class _Metadata(msgspec.Struct, rename="camel"):
    shard_info: _ShardInfo | None = None


class _Answer(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class SelectedShare:
    """What lists and watches of some kinds ask for."""

    def __init__(self) -> None:
        self.selector = NOTHING
        self.share: frozenset[int] = frozenset()
        self.resources: frozenset[Resource] = frozenset()
        self.works: bool | None = None
        """Whether the server selects; None before it was asked."""

    async def begin(self, client: Client, caches: Sequence[DeclaredCaches]) -> None:
        """Ask the server whether it selects, before the caches fill."""
        await self._ask(client, caches)
        if self.works:
            for informer in _informers(caches):
                if informer.spec.resource in self.resources:
                    informer.shows = _within(self.share)

    async def _ask(self, client: Client, caches: Sequence[DeclaredCaches]) -> None:
        self.resources = selectable(caches)
        for resource in sorted(self.resources, key=str):
            query = {"limit": "1", "shardSelector": NOTHING}
            try:
                body = (await client.caller.call(Call("list", resource, query=query))).body
            except NotFound:
                continue  # its definition is not installed: another kind can say it
            self.works = msgspec.json.decode(body, type=_Answer).metadata.shard_info is not None
            return

    def client(self, inner: Client) -> Client:
        return _SelectingClient(inner, self)

    def query(self, call: Call) -> dict[str, str]:
        """What to add to the query of a list or a watch."""
        selects = self.works and call.resource in self.resources and not call.namespace
        return {"shardSelector": self.selector} if selects and call.verb in ("list", "watch") else {}

    async def cover(self, share: frozenset[int], informers: Iterable[Informer]) -> None:
        """Show these slots, and no others, from now on; wait until the caches do."""
        selector = shard_selector(share) or NOTHING
        if not self.works or selector == self.selector:
            return
        kept = self.share & share
        self.selector, self.share = selector, share
        narrow = [informer for informer in informers if informer.shows is not None]
        for informer in narrow:
            informer.shows = _within(kept)
        for informer in narrow:
            await _listed_again(informer)
            informer.shows = _within(share)


def _within(share: frozenset[int]) -> Callable[[str], bool]:
    """The namespaces of these slots, for `Informer.shows`."""
    everything = len(share) == NAMESPACE_SLOTS
    return lambda namespace: slot_of_namespace(Key(namespace, "")) in share if namespace else everything


async def _listed_again(informer: Informer) -> None:
    """Wait until the cache shows what is asked for now. One whose kind is not installed has nothing to show; when the
    kind comes, it asks for the share of then (see `_SelectingCalls`)."""
    mark = informer.mark("")
    while not informer.missing:
        for reflector in informer.reflectors:
            reflector.list_again()
        with suppress(TimeoutError):
            async with asyncio.timeout(RELIST):
                await informer.wait_for_list(mark)
                return


def selectable(caches: Iterable[DeclaredCaches]) -> frozenset[Resource]:
    """The kinds whose objects are needed only in the namespaces of our keys."""
    own: set[Resource] = set()
    others: set[Resource] = set()
    for declared in caches:
        narrow = [
            i for i in (declared.primary, *declared.owned) if i.spec.resource.namespaced and not i.spec.namespaces
        ]
        own |= {informer.spec.resource for informer in narrow}
        others |= {informer.spec.resource for informer in _informers([declared]) if informer not in narrow}
    return frozenset(own - others)


def _informers(caches: Iterable[DeclaredCaches]) -> Iterator[Informer]:
    return (informer for declared in caches for informers in declared.by_resource.values() for informer in informers)


class _SelectingClient(Client):
    def __init__(self, inner: Client, share: SelectedShare) -> None:
        self._use_caller(_SelectingCalls(inner.caller, share), inner.mapper)


class _SelectingCalls:
    def __init__(self, inner: Caller, share: SelectedShare) -> None:
        self._inner = inner
        self._share = share

    @property
    def near(self) -> bool:
        return self._inner.near

    async def call(self, call: Call) -> Response:
        more = self._share.query(call)
        if not more:
            return await self._inner.call(call)
        call.query = call.query | more
        response = await self._inner.call(call)
        if more != self._share.query(call):
            raise _outdated()
        return response

    async def stream(self, call: Call) -> Stream:
        more = self._share.query(call)
        if not more:
            return await self._inner.stream(call)
        call.query = call.query | more
        stream = await self._inner.stream(call)
        if more != self._share.query(call):
            await stream.aclose()
            raise _outdated()
        return stream


def _outdated() -> ConnectionLost:
    """A cache whose kind was just installed must not begin with what we had when it asked."""
    return ConnectionLost("our share has changed since this was asked for")
