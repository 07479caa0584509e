"""A small client for tests of the API server: requests in process, JSON in and out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from konverge.apiserver import ApiServer
from konverge.wire.message import Headers, Request, Response, Stream

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Api:
    """Speaks to a server as its administrator."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def request(self, method: str, path: str, body: Any = None, *, query: Any = None, **headers: str) -> Request:
        fields = {"authorization": f"Bearer {self.server.token}", "user-agent": "test/1.0"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        target = f"{path}?{urlencode(query, doseq=True)}" if query else path
        return Request(method, target, Headers.of(fields), data)

    async def send(self, method: str, path: str, body: Any = None, **more: Any) -> Response:
        await asyncio.sleep(0)  # each request in a turn of its own, as on a socket
        return await self.server.transport.send(self.request(method, path, body, **more))

    async def call(self, method: str, path: str, body: Any = None, *, expect: int = 0, **more: Any) -> Any:
        """The decoded answer; its status must be the expected one (any success without)."""
        response = await self.send(method, path, body, **more)
        answer = json.loads(response.body)
        good = response.status == expect if expect else response.status < 300
        assert good, f"{method} {path} answered {response.status}: {answer}"
        return answer

    async def create(self, name: str, path: str = CONFIG_MAPS, **parts: Any) -> Any:
        labels = parts.pop("labels", None)
        metadata = {"name": name, **({"labels": labels} if labels else {}), **parts.pop("metadata", {})}
        return await self.call("POST", path, {"metadata": metadata, **parts})

    async def patch(self, path: str, change: Any, **more: Any) -> Any:
        return await self.call("PATCH", path, change, content_type=MERGE, **more)

    @asynccontextmanager
    async def watch(self, path: str = CONFIG_MAPS, **query: Any) -> AsyncIterator[Watch]:
        stream = await self.server.transport.stream(self.request("GET", path, query={"watch": "true", **query}))
        assert stream.status == 200
        try:
            yield Watch(stream)
        finally:
            await stream.aclose()


class Watch:
    """The events of a watch, one by one."""

    def __init__(self, stream: Stream) -> None:
        self._lines = self._split(stream)

    async def _split(self, stream: Stream) -> AsyncIterator[Any]:
        buffer = b""
        async for chunk in stream:
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                yield json.loads(line)

    async def next(self) -> Any:
        async with asyncio.timeout(60):
            return await anext(self._lines)

    async def take(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    async def until_end(self) -> None:
        """Read on until the server ends it, and keep nothing."""
        async for _ in self._lines:
            pass

    async def rest(self, *, within: float = 60) -> list[Any]:
        async with asyncio.timeout(within):
            return [event async for event in self._lines]
