"""The stand-in for redis and its sentinels."""

from __future__ import annotations

import asyncio

import pytest

from tests.sim.applications.support import delete, running, simulated

pytestmark = pytest.mark.spec("K-67")

RULES = {
    "servers": [
        {"kind": "redis", "labels": {"kind": "redis"}, "with": {"follows": "127.0.0.1 6379", "failover": True}},
        {
            "kind": "redis",
            "server": "sentinel",
            "labels": {"kind": "sentinel"},
            "ports": [26379],
            "with": {"role": "sentinel"},
        },
    ]
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "cache", "uid": "u", "controller": True}


async def ask(address: str | None, *words: str, port: int = 6379) -> str:
    """A command, and its answer as one text."""
    reader, writer = await asyncio.open_connection(address, port)
    writer.write(f"*{len(words)}\r\n".encode() + b"".join(f"${len(w)}\r\n{w}\r\n".encode() for w in words))
    writer.write(b"QUIT\r\n")
    answer = (await reader.read()).decode().removesuffix("+OK\r\n")
    writer.close()
    await writer.wait_closed()
    return answer


async def test_servers_follow_whom_they_are_told_and_sentinels_count_them() -> None:
    async with simulated(RULES) as (cluster, applications):
        labels = {"kind": "redis"}
        one = (await running(cluster, "r-0", owner=OWNER, labels=labels)).status.pod_ip or ""
        two = (await running(cluster, "r-1", owner=OWNER, labels=labels)).status.pod_ip or ""
        watcher = (await running(cluster, "s-0", owner=OWNER, labels={"kind": "sentinel"})).status.pod_ip or ""
        assert "role:master" in await ask(one, "INFO", "replication")
        assert "master_host:127.0.0.1\r\n" in await ask(two, "INFO", "replication")
        assert "status=odown" in await ask(watcher, "INFO", "sentinel", port=26379)
        assert await ask(two, "SLAVEOF", one, "6379") == "+OK\r\n"
        shown = await ask(two, "INFO", "replication")
        assert f"master_host:{one}\r\n" in shown
        assert "master_link_status:up" in shown
        assert "connected_slaves:1" in await ask(one, "INFO", "replication")
        assert await ask(watcher, "SENTINEL", "MONITOR", "mymaster", one, "6379", "2", port=26379) == "+OK\r\n"
        assert f"status=ok,address={one}:6379,slaves=1,sentinels=1" in await ask(
            watcher, "INFO", "sentinel", port=26379
        )
        assert (await ask(watcher, "SENTINEL", "master", "mymaster", port=26379)).split("\r\n")[8] == one
        await ask(one, "CONFIG", "SET", "maxmemory", "1")
        assert await ask(one, "CONFIG", "GET", "maxmemory") == "*2\r\n$9\r\nmaxmemory\r\n$1\r\n1\r\n"

        await delete(cluster, applications, "r-0")
        assert "role:master" in await ask(two, "INFO", "replication")  # the sentinels failed over
        assert f"address={two}:6379,slaves=0" in await ask(watcher, "INFO", "sentinel", port=26379)

        applications.servers["redis"].fault = "error"
        assert (await ask(two, "PING")).startswith("-ERR")
        applications.servers["redis"].fault = "wrong"
        assert "role:slave" in await ask(two, "INFO", "replication")


async def test_a_recreated_server_starts_from_its_configuration() -> None:
    async with simulated(RULES) as (cluster, applications):
        labels = {"kind": "redis"}
        await running(cluster, "r-0", owner=OWNER, labels=labels)
        await running(cluster, "r-1", owner=OWNER, labels=labels)
        await delete(cluster, applications, "r-1")
        again = (await running(cluster, "r-1", owner=OWNER, labels=labels)).status.pod_ip
        assert "master_host:127.0.0.1\r\n" in await ask(again, "INFO", "replication")
        assert await ask(again, "PING") == "+PONG\r\n"
        assert (await ask(again, "FLY")).startswith("-ERR unknown command")
