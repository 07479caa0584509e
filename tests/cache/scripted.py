"""A server that answers a reflector from a script, and records what it was asked and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from konverge.cache import CacheSpec, Informer
from konverge.cache.store import IndexFunction
from konverge.client.call import Call
from konverge.client.errors import ApiStatusError
from konverge.objects.meta import Status
from konverge.objects.resource import Resource
from konverge.wire.message import Headers, Response

CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
FOREVER = 1e9


def line(kind: str, name: str, version: int, **metadata: object) -> bytes:
    meta = {"name": name, "namespace": "shop", "uid": name, "resourceVersion": str(version), **metadata}
    return json.dumps({"type": kind, "object": {"metadata": meta}}).encode() + b"\n"


def end(version: int) -> bytes:
    return line("BOOKMARK", "", version, annotations={"k8s.io/initial-events-end": "true"})


def page(version: int, *names: str, more: str = "") -> bytes:
    items = [{"metadata": {"name": name, "namespace": "shop", "uid": name, "resourceVersion": "1"}} for name in names]
    return json.dumps({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items}).encode()


class Stream:
    """Some lines, each after a pause, and then silence for as long as the script says."""

    status = 200
    headers = Headers()

    def __init__(self, lines: list[tuple[float, bytes]], open_for: float) -> None:
        self._lines = lines
        self._open_for = open_for
        self.closed = False

    async def read(self) -> bytes:
        return b"".join(data for _, data in self._lines)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for pause, data in self._lines:
            await asyncio.sleep(pause)
            yield data
        await asyncio.sleep(self._open_for)

    async def aclose(self) -> None:
        self.closed = True


Lines = bytes | tuple[bytes, float] | list[tuple[float, bytes]]
Answer = Lines | Exception


class Script:
    """A server that answers with these, in order, then with silence; it records what it was asked and when."""

    near = False

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.calls: list[Call] = []
        self.times: list[float] = []
        self.streams: list[Stream] = []

    async def call(self, call: Call) -> Response:
        answer = self._next(call)
        assert isinstance(answer, bytes)
        return Response(200, Headers(), answer)

    async def stream(self, call: Call) -> Stream:
        answer = self._next(call)
        data, open_for = answer if isinstance(answer, tuple) else (answer, FOREVER)
        lines = data if isinstance(data, list) else [(0.0, data)] if data else []
        self.streams.append(Stream(lines, open_for))
        return self.streams[-1]

    def _next(self, call: Call) -> Lines:
        self.calls.append(call)
        self.times.append(asyncio.get_running_loop().time())
        answer = self._answers.pop(0) if self._answers else b""
        if isinstance(answer, Exception):
            raise answer
        return answer

    def queries(self) -> list[dict[str, str]]:
        ignored = ("timeoutSeconds", "allowWatchBookmarks", "watch")
        return [{name: value for name, value in call.query.items() if name not in ignored} for call in self.calls]


def refused(kind: type[ApiStatusError], message: str = "", retry_after: float | None = None) -> ApiStatusError:
    return kind(Status(message=message), retry_after=retry_after)


@asynccontextmanager
async def informed(
    script: Script, indexes: Mapping[str, IndexFunction] | None = None, **spec: Any
) -> AsyncIterator[Informer]:
    informer = Informer(script, CacheSpec(resource=CONFIG_MAPS, **spec), indexes)  # type: ignore[arg-type]
    running = asyncio.create_task(informer.run())
    yield informer
    assert not running.done(), "an informer ends only when it is cancelled"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert all(stream.closed for stream in script.streams)


def names(informer: Informer) -> set[str]:
    return {key.name for key, _ in informer.items()}
