"""The stand-in for MySQL."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.sim.applications.support import running, simulated

pytestmark = pytest.mark.spec("K-67")

ANSWER = {"query": "*from mysql_servers*", "columns": ["status"], "rows": [["ONLINE"], ["SHUNNED"]]}
RULES = {
    "servers": [
        {"kind": "mysql", "server": "db", "labels": {"kind": "db"}, "with": {"version": "8.0.1", "answers": [ANSWER]}},
        {"kind": "mysql", "server": "proxy", "labels": {"kind": "proxy"}, "with": {"before": "db"}},
    ]
}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "shop", "uid": "u", "controller": True}


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def packet(self) -> bytes:
        head = await self._reader.readexactly(4)
        return await self._reader.readexactly(int.from_bytes(head[:3], "little"))

    def send(self, number: int, data: bytes) -> None:
        self._writer.write(len(data).to_bytes(3, "little") + bytes((number,)) + data)

    async def query(self, text: str) -> list[list[str]] | str:
        """The rows of an answer; `ok`, or an error's text."""
        self.send(0, b"\x03" + text.encode())
        first = await self.packet()
        if first[0] == 0:
            return "ok"
        if first[0] == 0xFF:
            return first[9:].decode()
        for _ in range(first[0] + 1):
            await self.packet()
        rows = []
        while (line := await self.packet())[0] != 0xFE:
            row, place = [], 0
            while place < len(line):
                row.append(line[place + 1 : place + 1 + line[place]].decode())
                place += 1 + line[place]
            rows.append(row)
        return rows


@asynccontextmanager
async def connected(address: str, port: int = 3306) -> AsyncIterator[tuple[Connection, str]]:
    """A connection, and the version that the server greets with."""
    reader, writer = await asyncio.open_connection(address, port)
    try:
        connection = Connection(reader, writer)
        greeting = await connection.packet()
        assert greeting[0] == 10
        assert greeting.endswith(b"mysql_native_password\0")
        connection.send(1, struct.pack("<IIB23x", 0x00088208, 1 << 24, 33) + b"root\0\0mysql\0")
        assert (await connection.packet())[0] == 0
        yield connection, greeting[1 : greeting.index(b"\0")].decode()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_queries_are_answered_and_changes_are_kept_for_all_servers() -> None:
    async with simulated(RULES) as (cluster, applications):
        one = (await running(cluster, "db-0", owner=OWNER, labels={"kind": "db"})).status.pod_ip or ""
        proxy = (await running(cluster, "proxy-0", owner=OWNER, labels={"kind": "proxy"})).status.pod_ip or ""
        async with connected(one) as (connection, version):
            assert version == "8.0.1"
            assert await connection.query("select @@VERSION;") == [["8.0.1"]]
            assert await connection.query("SELECT @@hostname hostname") == [["db-0"]]
            assert await connection.query("SELECT status\n FROM mysql_servers WHERE 1") == [["ONLINE"], ["SHUNNED"]]
            assert await connection.query("SELECT * FROM nothing") == []
            shown = await connection.query("SHOW GLOBAL STATUS LIKE 'wsrep_local_state_comment'")
            assert shown == [["wsrep_local_state_comment", "Synced"]]
            assert await connection.query("CREATE USER IF NOT EXISTS 'op'@'%' IDENTIFIED BY 'first'") == "ok"
            assert await connection.query("ALTER USER 'op'@'%' IDENTIFIED BY 'second'") == "ok"
            assert await connection.query("SET GLOBAL READ_ONLY=1") == "ok"
        async with connected(proxy, 33062) as (connection, _):
            assert await connection.query("SELECT @@hostname") == [["db-0"]]
            assert await connection.query("select @@read_only") == [["1"]]
        (entry,) = applications.export().values()
        assert entry["state"]["users"] == {"op": "second"}


async def test_faults_are_errors_and_empty_answers() -> None:
    async with simulated(RULES) as (cluster, applications):
        address = (await running(cluster, "db-0", owner=OWNER, labels={"kind": "db"})).status.pod_ip or ""
        for fault, answer in (("error", "the stand-in was asked to fail"), ("wrong", []), ("", [["db-0"]])):
            applications.servers["db"].fault = fault
            async with connected(address) as (connection, _):
                assert await connection.query("SELECT @@hostname") == answer


async def test_what_is_no_text_query_is_refused() -> None:
    async with simulated(RULES) as (cluster, _):
        address = (await running(cluster, "db-0", owner=OWNER, labels={"kind": "db"})).status.pod_ip or ""
        async with connected(address) as (connection, _):
            connection.send(0, b"\x0e")
            assert (await connection.packet())[0] == 0
            connection.send(0, b"\x16SELECT ?")
            assert b"text queries alone" in await connection.packet()
