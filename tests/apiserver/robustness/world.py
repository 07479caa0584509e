"""A server that lives, dies and lives again, and clients that note all they ask and hear."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from konverge.apiserver import ApiServer
from konverge.apiserver.storage.database import Damaged
from konverge.apiserver.storage.folder import FolderError
from konverge.wire.errors import WireError
from konverge.wire.message import Response
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.apiserver.robustness.disk import SimulatedDisk
from tests.apiserver.robustness.linearizability import NEVER, Operation
from tests.apiserver.robustness.model import (
    CONFLICT,
    DELETED,
    EXISTS,
    MISSING,
    NOT_STORED,
    Create,
    Delete,
    Get,
    List,
    Listed,
    Object,
    Update,
    Written,
)

KEYS = ("a", "b", "c", "d")
_REFUSALS = {(409, "AlreadyExists"): EXISTS, (409, "Conflict"): CONFLICT, (404, "NotFound"): MISSING}


class Died(Exception):
    """The server died before it answered."""


class World:
    """Where clients find the server of the moment."""

    def __init__(self) -> None:
        self.history: list[Operation] = []
        self.lives = 0
        self._api: Api | None = None
        self._changed = asyncio.Condition()
        self._death: asyncio.Future[None]
        self._ticks = itertools.count(1)
        self._noted = asyncio.Event()

    async def born(self, api: Api) -> None:
        """A server answers."""
        self.lives += 1
        async with self._changed:
            self._death = asyncio.get_running_loop().create_future()
            self._api = api
            self._changed.notify_all()

    def died(self) -> None:
        """It answers no more: whoever waits for an answer gets none."""
        self._api = None
        self._death.set_result(None)

    async def with_server(self, act: Callable[[Api], Awaitable[Any]]) -> Any:
        """Do something with the server of the moment. Raises Died if it dies meanwhile."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._api is not None)
        assert self._api is not None
        death = self._death
        task = asyncio.ensure_future(act(self._api))
        await asyncio.wait((task, death), return_when=asyncio.FIRST_COMPLETED)
        if death.done():
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
            raise Died
        try:
            return task.result()
        except WireError as error:
            raise Died from error

    async def ask(self, request: Any, act: Callable[[Api], Awaitable[Any]]) -> Any:
        """Ask, and note the answer: None where it is not known."""
        called, answer = next(self._ticks), None
        try:
            answer = await self.with_server(act)
        except Died:
            pass
        finally:  # also when the client is cancelled: the server may have it all the same
            self.history.append(Operation(called, NEVER if answer is None else next(self._ticks), request, answer))
            self._noted.set()
        return answer

    async def until(self, operations: int) -> None:
        """Until so many operations are noted."""
        while len(self.history) < operations:
            self._noted.clear()
            await self._noted.wait()


class SimulatedWorld(World):
    """A server in this process, on a simulated disk and virtual time."""

    def __init__(self, folder: Path, disk: SimulatedDisk) -> None:
        super().__init__()
        self.folder, self.disk = folder, disk
        self._server: ApiServer

    async def start(self) -> None:
        """Start a server on what is on disk; where the disk refuses, again a second later."""
        while True:
            try:
                self._server = ApiServer(data_dir=self.folder, disk=self.disk.process())
                await self._server.start()
            except Damaged:
                raise  # no fault of these tests damages what was synced
            except FolderError:
                self.disk.kill()
                await asyncio.sleep(1)
            else:
                break
        await self.born(Api(self._server))

    def die(self, *, power: bool) -> None:
        """End the server as kill -9 or a power cut does, whatever it is doing."""
        (self.disk.lose_power if power else self.disk.kill)()
        self.died()
        _abandon(self._server)

    async def stop(self) -> None:
        """End the server as SIGTERM does."""
        if self._api is not None:
            self.died()
            await self._server.stop()
            self.disk.kill()


def _abandon(server: ApiServer) -> None:
    """Take from a dead server what the operating system takes from a dead process: timers, locks, descriptors."""
    server._expiry.stop()
    for stream in tuple(server.streams):
        stream.end()
    journal = server._journal
    assert journal is not None
    journal._recovery.cancel()
    journal._witness.close()
    journal._folder.close()


class Client:
    """Writes and reads a few ConfigMaps at random; what it saw last it uses as the expected revision."""

    def __init__(self, world: World, name: str, seed: float, rate: float = 10) -> None:
        self._world, self._name, self._rate = world, name, rate
        self._rng = random.Random(seed)
        self._seen: dict[str, int] = {}
        self._values = itertools.count(1)

    async def run(self, operations: int) -> None:
        for _ in range(operations):
            await asyncio.sleep(self._rng.expovariate(self._rate))
            choose = self._rng.choices(
                (self._create, self._update, self._delete, self._get, self._list), weights=(5, 6, 3, 3, 3)
            )[0]
            await choose(self._rng.choice(KEYS))

    def _value(self) -> tuple[str, dict[str, Any]]:
        value = f"{self._name}-{next(self._values)}"
        return value, {"value": value, "more": "x" * self._rng.choice((0, 100, 5000))}

    async def _create(self, key: str) -> None:
        value, data = self._value()
        body = {"metadata": {"name": key}, "data": data}
        self._note(key, await self._write(Create(key, value), "POST", CONFIG_MAPS, body))

    async def _update(self, key: str) -> None:
        value, data = self._value()
        expected = self._expected(key)
        body = {"metadata": {"name": key, "resourceVersion": str(expected or "")}, "data": data}
        self._note(key, await self._write(Update(key, value, expected), "PUT", f"{CONFIG_MAPS}/{key}", body))

    async def _delete(self, key: str) -> None:
        expected = self._expected(key)
        body = {"preconditions": {"resourceVersion": str(expected)}} if expected else None
        await self._write(Delete(key, expected), "DELETE", f"{CONFIG_MAPS}/{key}", body)

    def _expected(self, key: str) -> int:
        return self._seen.get(key, 0) if self._rng.random() < 0.7 else 0

    def _note(self, key: str, answer: Any) -> None:
        if isinstance(answer, Written | Object):
            self._seen[key] = answer.revision

    async def _write(self, request: Any, method: str, path: str, body: Any) -> Any:
        async def act(api: Api) -> Any:
            return _written(request, await api.send(method, path, body))

        return await self._world.ask(request, act)

    async def _get(self, key: str) -> None:
        async def act(api: Api) -> Any:
            response = await api.send("GET", f"{CONFIG_MAPS}/{key}")
            return _object(json.loads(response.body)) if response.status == 200 else _refused(response)

        self._note(key, await self._world.ask(Get(key), act))

    async def _list(self, key: str) -> None:
        """Whole or in pages; the pages are those of one moment, that of the first."""
        limit = self._rng.choice((0, 0, 1, 2))

        async def act(api: Api) -> Any:
            return await listed(api, limit)

        answer = await self._world.ask(List(), act)
        if answer is not None:
            self._seen |= {name: item.revision for name, item in answer.objects.items()}


async def listed(api: Api, limit: int = 0) -> Listed | None:
    """None where the server fails."""
    objects: dict[str, Object] = {}
    query: dict[str, Any] = {"limit": limit} if limit else {}
    revision = 0
    while True:
        response = await api.send("GET", CONFIG_MAPS, query=query)
        if response.status == 410 and revision:
            return None  # the history of the first page is gone
        if response.status >= 500:
            return None
        page = json.loads(response.body)
        assert response.status == 200, page
        at = int(page["metadata"]["resourceVersion"])
        assert revision in (0, at), "the pages of a list are of different revisions"
        revision = at
        for item in page["items"]:
            assert int(item["metadata"]["resourceVersion"]) <= revision, "an item is newer than its list"
            objects[item["metadata"]["name"]] = _object(item)
        if not (token := page["metadata"].get("continue")):
            return Listed(revision, {name: item for name, item in objects.items() if name in KEYS})
        query = {"limit": limit, "continue": token}


def _object(item: dict[str, Any]) -> Object:
    return Object(int(item["metadata"]["resourceVersion"]), item.get("data", {}).get("value", ""))


def _written(request: Any, response: Response) -> Any:
    if response.status >= 300:
        return _refused(response)
    return DELETED if isinstance(request, Delete) else Written(_object(json.loads(response.body)).revision)


def _refused(response: Response) -> str | None:
    """A refusal says something about the state; an error of the server that it took no effect, or nothing."""
    if response.status == 503:
        assert response.headers.get("retry-after"), "a client would not send it again"
        return NOT_STORED
    if response.status >= 500:
        return None
    status = json.loads(response.body)
    return _REFUSALS[response.status, status["reason"]]
