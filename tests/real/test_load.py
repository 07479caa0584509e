"""Load and abuse of a server process over sockets: many watches and connections, slow readers, malformed requests.

The limits of file descriptors are raised as far as the system lets us; a test that needs more is skipped and says so.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.real.raw_sockets import Connection, Server, running

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCHES = 2500
CONNECTIONS = 10_000
"""The server's limit; the first that are beyond it get a 503."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(tmp_path) as server:
        yield server


@asynccontextmanager
async def connected(server: Server, count: int) -> AsyncIterator[list[Connection]]:
    opened: list[Connection] = []
    try:
        while len(opened) < count:
            some = await asyncio.gather(*(server.open() for _ in range(min(250, count - len(opened)))))
            opened += some
            await asyncio.gather(*(connection.ask("GET", "/version") for connection in some))  # idle, but not suspect
        yield opened
    finally:
        await asyncio.gather(*(connection.close() for connection in opened))


def config_map(name: str, size: int = 10) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"payload": "x" * size}}


@pytest.mark.spec("S-15")
@pytest.mark.blocking
async def test_the_server_holds_thousands_of_idle_watches(server: Server) -> None:
    before = server.megabytes
    async with connected(server, WATCHES) as watchers, connected(server, 1) as (client,):
        for watcher in watchers:
            watcher.send("GET", f"{CONFIG_MAPS}?watch=1")
        assert {await watcher.head() for watcher in watchers} == {200}
        assert (await client.ask("GET", CONFIG_MAPS))[0] == 200
        assert server.megabytes - before < WATCHES * 0.05
        await client.ask("POST", CONFIG_MAPS, config_map("new"))

        async def hears(watcher: Connection) -> str:
            async for event in watcher.events():
                if event["object"]["metadata"]["name"] == "new":
                    return str(event["type"])
            return "nothing"

        assert set(await asyncio.gather(*map(hears, watchers))) == {"ADDED"}


@pytest.mark.spec("S-15")
@pytest.mark.blocking
async def test_a_watcher_that_never_reads_is_ended_alone(server: Server) -> None:
    """It is ended; the other watcher gets every event; the memory kept for the slow one is bounded."""
    updates, size = 600, 50_000
    slow = await server.open(receive_buffer=4096)
    async with connected(server, 2) as (client, quick):
        for watcher in (slow, quick):
            watcher.send("GET", f"{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Dbig")
        assert await quick.head() == 200
        await client.ask("POST", CONFIG_MAPS, config_map("big", size))
        before = server.megabytes

        async def writes() -> None:
            for number in range(updates):
                obj = config_map("big", size)
                obj["data"]["number"] = str(number)
                assert (await client.ask("PUT", f"{CONFIG_MAPS}/big", obj))[0] == 200

        async def hears() -> list[str]:
            seen = []
            async for event in quick.events():
                seen.append(event["object"]["data"].get("number", ""))
                if seen[-1] == str(updates - 1):
                    break
            return seen

        _, seen = await asyncio.gather(writes(), hears())
        assert seen == ["", *map(str, range(updates))]
        kept = updates * size / 2**20  # the history has the old states
        assert server.megabytes - before < kept + 40
        assert await slow.head() == 200
        late = [event async for event in slow.events()]  # what was on its way, then the end
        assert 0 < len(late) < updates
    await slow.close()


@pytest.mark.spec("S-15")
@pytest.mark.blocking
@pytest.mark.limit(600)
async def test_the_server_holds_ten_thousand_connections(server: Server) -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit < CONNECTIONS + 500:
        pytest.skip(f"needs {CONNECTIONS + 500} file descriptors, the limit here is {limit} (ulimit -Hn)")
    async with connected(server, CONNECTIONS) as opened:
        for connection in (opened[0], opened[CONNECTIONS // 2], opened[-1]):
            assert (await connection.ask("GET", CONFIG_MAPS))[0] == 200
        beyond = await server.open()
        assert (await beyond.ask("GET", CONFIG_MAPS))[0] == 503
        await beyond.close()
        assert (await opened[0].ask("POST", CONFIG_MAPS, config_map("still-served")))[0] == 201
    status = 503
    while status == 503:  # the others' connections are on their way out
        later = await server.open()
        status, _ = await later.ask("GET", CONFIG_MAPS)
        await later.close()
    assert status == 200


MALFORMED = (
    b"\0" * 100,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200),  # TLS to a server without
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n" + b"x" * 100_000,
    b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 400 + b"\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\na: " + b"b" * 100_000 + b"\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
    b"GET / HTTP/1.1\nhost: x\n\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nhost: x\r\n\r\n",
    b"\r\n" * 10_000,
)


@pytest.mark.spec("S-15")
@pytest.mark.blocking
async def test_malformed_requests_are_refused_without_harm(server: Server) -> None:
    """Each gets a refusal or the end of its connection; those who behave are served all the while."""

    async def answer_to(request: bytes) -> bytes:
        connection = await server.open()
        connection.writer.write(request)
        connection.writer.write_eof()
        try:
            return await connection.reader.read()
        except OSError:
            return b""
        finally:
            await connection.close()

    async with connected(server, 1) as (client,):
        for _ in range(3):
            asked = asyncio.create_task(client.ask("GET", CONFIG_MAPS))
            answers = await asyncio.gather(*map(answer_to, MALFORMED))
            assert (await asked)[0] == 200
            statuses = {int(answer.split()[1]) for answer in answers if answer}
            assert statuses <= {400, 401, 403, 404, 405, 413, 414, 431, 501, 505}, statuses


@pytest.mark.spec("S-15")
@pytest.mark.blocking
async def test_large_lists_and_collections_leave_room_for_others(server: Server) -> None:
    """A client that asks for small things goes on while others list and delete everything."""
    async with connected(server, 12) as clients:
        for start in range(0, 6000, len(clients)):
            objects = [config_map(f"c{start + n:05}", 2000) for n in range(len(clients))]
            made = await asyncio.gather(*(c.ask("POST", CONFIG_MAPS, o) for c, o in zip(clients, objects, strict=True)))
            assert {status for status, _ in made} == {201}
        small, *large = clients
        between = 0

        async def lists(client: Connection, query: str) -> None:
            client.send("GET", f"{CONFIG_MAPS}?{query}")
            assert await client.head() == 200
            while (size := int(await client.reader.readline(), 16)) > 0:
                await client.reader.readexactly(size + 2)
            await client.reader.readline()

        async def deletes(client: Connection) -> None:
            client.send("DELETE", CONFIG_MAPS)
            assert await client.head() == 200

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(lists(client, "labelSelector=!nothing")) for client in large[:5]]
            tasks += [group.create_task(lists(client, "")) for client in large[5:10]]
            while not all(task.done() for task in tasks):
                assert (await small.ask("GET", f"{CONFIG_MAPS}/c00001"))[0] == 200
                between += 1
        assert between > 5
        task = asyncio.create_task(deletes(large[10]))
        between = 0
        while not task.done():
            assert (await small.ask("GET", "/api/v1/namespaces/default"))[0] == 200
            between += 1
        await task
        assert between > 5
