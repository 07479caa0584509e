"""A network between a manager and its API server that a test can cut."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.wire.errors import ConnectFailed, ConnectionLost
from konverge.wire.message import Headers, Request, Response, Stream
from tests.cache.test_informer import Canned

EXPIRED = {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410, "reason": "Expired", "message": "too old",
}  # fmt: skip


class Network:
    """`cut` ends every stream and refuses what comes, until `mend`."""

    def __init__(self, server: ApiServer) -> None:
        self._inner = server.transport
        self._broken = asyncio.Event()
        self._away = False
        self._expired = 0
        self.client = Client(self, credentials=Static.bearer(server.token))

    def cut(self) -> None:
        self._away = True
        self._broken.set()
        self._broken = asyncio.Event()

    def mend(self, *, forgetful: int = 0) -> None:
        """`forgetful` watches are refused as too old: their changes are never sent, and the state is listed."""
        self._away = False
        self._expired = forgetful

    async def send(self, request: Request) -> Response:
        if self._away:
            raise ConnectFailed("refused")
        return await self._inner.send(request)

    async def stream(self, request: Request) -> Stream:
        if self._away:
            raise ConnectFailed("refused")
        if self._expired and "watch=" in request.target and "resourceVersion=" in request.target:
            self._expired -= 1
            return Canned(Response(410, Headers.of({"Content-Type": "application/json"}), json.dumps(EXPIRED).encode()))
        return _Breaking(await self._inner.stream(request), self._broken)


class _Breaking:
    """A stream that ends with the network."""

    def __init__(self, inner: Stream, broken: asyncio.Event) -> None:
        self._inner, self._broken = inner, broken
        self.status, self.headers = inner.status, inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        chunks = aiter(self._inner)
        breaking = asyncio.ensure_future(self._broken.wait())
        try:
            while True:
                reading = asyncio.ensure_future(anext(chunks, None))  # type: ignore[arg-type]
                try:
                    await asyncio.wait([reading, breaking], return_when=asyncio.FIRST_COMPLETED)
                    if self._broken.is_set():
                        raise ConnectionLost("cut")
                finally:
                    if not reading.done():
                        reading.cancel()
                        await asyncio.wait([reading])
                    if not reading.cancelled():
                        reading.exception()  # when both ended at once, that of the network counts
                chunk = reading.result()
                if chunk is None:
                    return
                yield chunk
        finally:
            breaking.cancel()
            await asyncio.wait([breaking])

    async def aclose(self) -> None:
        await self._inner.aclose()
