"""The stand-in for ZooKeeper: its tree, its protocol, its four-letter words."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.sim.applications.kinds.znodes import BAD_VERSION, NO_NODE, NODE_EXISTS, NOT_EMPTY, Tree, ZkError
from tests.sim.applications.support import running, simulated

pytestmark = pytest.mark.spec("K-67")

RULES = {"servers": [{"kind": "zookeeper", "image": "app:*"}]}
CREATE, DELETE, EXISTS, GET, SET, CHILDREN, PING, CLOSE = 1, 2, 3, 4, 5, 8, 11, -11


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


class Client:
    """A client of a few lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._number = 0

    async def frame(self, data: bytes) -> bytes:
        self._writer.write(struct.pack(">i", len(data)) + data)
        size = int.from_bytes(await self._reader.readexactly(4), "big")
        return await self._reader.readexactly(size)

    async def ask(self, operation: int, body: bytes = b"") -> tuple[int, bytes]:
        """Error and body of an answer."""
        self._number += 1
        answer = await self.frame(struct.pack(">ii", self._number, operation) + body)
        number, _, error = struct.unpack_from(">iqi", answer)
        assert number == self._number
        return error, answer[16:]

    async def create(self, path: str, data: str) -> int:
        acl = struct.pack(">ii", 1, 31) + text("world") + text("anyone")
        return (await self.ask(CREATE, text(path) + text(data) + acl + struct.pack(">i", 0)))[0]


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(address, 2181)
    client = Client(reader, writer)
    try:
        answer = await client.frame(struct.pack(">iqiq", 0, 0, 5000, 0) + struct.pack(">i", 16) + bytes(16))
        assert struct.unpack_from(">ii", answer) == (0, 5000)
        yield client
    finally:
        writer.close()
        await writer.wait_closed()


async def word(address: str | None, name: str) -> str:
    reader, writer = await asyncio.open_connection(address, 2181)
    writer.write(name.encode())
    answer = (await reader.read()).decode()
    writer.close()
    await writer.wait_closed()
    return answer


OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "zk", "uid": "u", "controller": True}


async def test_what_is_written_to_one_server_is_read_from_another() -> None:
    async with simulated(RULES) as (cluster, _):
        pods = [await running(cluster, name, owner=OWNER) for name in ("zk-0", "zk-1")]
        async with connected(pods[0].status.pod_ip) as client:
            assert await client.create("/a/b", "x") == NO_NODE
            assert await client.create("/a", "") == 0
            assert await client.create("/a/b", "size=3") == 0
            assert await client.create("/a/b", "") == NODE_EXISTS
            error, stat = await client.ask(EXISTS, text("/a/b") + b"\0")
            assert (error, struct.unpack_from(">i", stat, 32)[0]) == (0, 0)
            assert (await client.ask(SET, text("/a/b") + text("size=4") + struct.pack(">i", 7)))[0] == BAD_VERSION
            assert (await client.ask(SET, text("/a/b") + text("size=4") + struct.pack(">i", 0)))[0] == 0
            assert (await client.ask(PING))[0] == 0
            assert (await client.ask(CLOSE))[0] == 0
        async with connected(pods[1].status.pod_ip) as client:
            error, answer = await client.ask(GET, text("/a/b") + b"\0")
            assert (error, answer[4:10]) == (0, b"size=4")
            assert struct.unpack_from(">i", answer, 10 + 32)[0] == 1
            assert await client.ask(CHILDREN, text("/a") + b"\0") == (0, struct.pack(">i", 1) + text("b"))
            assert (await client.ask(DELETE, text("/a") + struct.pack(">i", -1)))[0] == NOT_EMPTY
            assert (await client.ask(DELETE, text("/a/b") + struct.pack(">i", -1)))[0] == 0
            assert (await client.ask(EXISTS, text("/a/b") + b"\0"))[0] == NO_NODE


async def test_words_say_who_leads() -> None:
    async with simulated(RULES) as (cluster, applications):
        first = await running(cluster, "zk-0", owner=OWNER)
        assert await word(first.status.pod_ip, "ruok") == "imok"
        assert "Mode: standalone" in await word(first.status.pod_ip, "srvr")
        second = await running(cluster, "zk-1", owner=OWNER)
        assert "zk_server_state\tleader\n" in await word(first.status.pod_ip, "mntr")
        assert "Mode: follower" in await word(second.status.pod_ip, "stat")
        applications.servers["zookeeper"].fault = "error"
        assert "not currently serving" in await word(first.status.pod_ip, "ruok")


async def test_under_faults_requests_fail_or_show_nothing() -> None:
    async with simulated(RULES) as (cluster, applications):
        pod = await running(cluster, "zk-0", owner=OWNER)
        async with connected(pod.status.pod_ip) as client:
            await client.create("/a", "")
        for fault, code in (("error", -1), ("wrong", NO_NODE), ("", 0)):
            applications.servers["zookeeper"].fault = fault
            async with connected(pod.status.pod_ip) as client:
                assert (await client.ask(EXISTS, text("/a") + b"\0"))[0] == code


def test_the_tree_counts_versions_and_numbers_sequences() -> None:
    state: dict[str, Any] = {}
    tree = Tree(state)
    tree.create("/q", b"")
    assert [tree.create("/q/n-", b"", 2) for _ in range(2)] == ["/q/n-0000000000", "/q/n-0000000001"]
    assert Tree(state).children("/") == ["q", "zookeeper"]
    for path in ("q", "/", "/q/"):
        with pytest.raises(ZkError):
            tree.create(path, b"")
