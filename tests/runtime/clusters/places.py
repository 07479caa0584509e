"""Several embedded clusters on one loop, a provider that a test drives, and clients that can be cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.apiserver import ApiServer
from konverge.client import Client, ConnectionLost, NotConnected, Static
from konverge.client.call import Call
from konverge.client.wrappers import Wrapper
from konverge.objects.kinds.core_v1 import ConfigMap, Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime import Context
from konverge.runtime.clusters.providers import Connection, Known
from konverge.wire.message import Response, Stream
from tests.runtime.objects import SPACE


class Cut(Wrapper):
    """A caller whose server is elsewhere, and can be away; watches that run are cut off then."""

    near = False

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._gone = asyncio.Event()

    @property
    def away(self) -> bool:
        return self._gone.is_set()

    @away.setter
    def away(self, value: bool) -> None:
        (self._gone.set if value else self._gone.clear)()

    async def call(self, call: Call) -> Response:
        self._check()
        return await self._inner.call(call)

    async def stream(self, call: Call) -> Stream:
        self._check()
        return _CutStream(await self._inner.stream(call), self._gone)

    def _check(self) -> None:
        if self.away:
            raise NotConnected("the server is away")


class _CutStream:
    def __init__(self, inner: Stream, gone: asyncio.Event) -> None:
        self._inner = inner
        self._gone = gone
        self.status, self.headers = inner.status, inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        while True:
            chunk, gone = asyncio.ensure_future(anext(chunks, None)), asyncio.ensure_future(self._gone.wait())
            try:
                await asyncio.wait({chunk, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    raise ConnectionLost("the server went away")
                data = chunk.result()
                if data is None:
                    return
            finally:
                for task in (chunk, gone):
                    task.cancel()
                await asyncio.wait({chunk, gone})
            yield data

    async def read(self) -> bytes:
        return await self._inner.read()

    async def aclose(self) -> None:
        await self._inner.aclose()


class Place:
    """One cluster."""

    def __init__(self, name: str, server: ApiServer, client: Client) -> None:
        self.name = name
        self.server = server
        self.client = client
        """The user's: always connected."""
        self.cut = Cut(client.caller)

    def connect(self) -> Client:
        """The operator's client."""
        client = Client.__new__(Client)
        client._use_caller(self.cut, self.client.mapper)
        client.server = self.name
        return client

    async def create(self, name: str, **data: str) -> None:
        await self.client.create(Secret(metadata=ObjectMeta(name=name, namespace=SPACE), string_data=data))

    async def maps(self) -> dict[str, str]:
        items = (await self.client.list(ConfigMap, SPACE)).items
        return {item.metadata.name: item.data["from"] for item in items if "from" in (item.data or {})}


class Driven:
    """A provider that says what the test says."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.error: Exception | None = None
        self._changed = asyncio.Event()

    def say(self, *places: Place, version: int = 1, **more: Any) -> None:
        self.known = {place.name: Connection(place.connect, version) for place in places} | more
        self._changed.set()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._changed.set()

    async def clusters(self, home: Client) -> AsyncIterator[Known]:
        while True:
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            yield dict(self.known)
            await self._changed.wait()
            self._changed.clear()


class Copying:
    """A reconciler that makes a ConfigMap which says the cluster, beside each Secret."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []

    async def __call__(self, ctx: Context[Secret]) -> None:
        self.runs.append((ctx.cluster, ctx.request.name))
        meta = ObjectMeta(name=ctx.request.name)
        await ctx.apply(ConfigMap(metadata=meta, data={"from": ctx.cluster or "home"}))


@asynccontextmanager
async def places(*names: str) -> AsyncIterator[list[Place]]:
    async with AsyncExitStack() as stack:
        made = []
        for name in names:
            server = await stack.enter_async_context(ApiServer())
            client = await stack.enter_async_context(
                Client(server.transport, credentials=Static.bearer(server.token), server=name)
            )
            made.append(Place(name, server, client))
        yield made
