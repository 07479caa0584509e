"""Scripted exec, over WebSockets and over SPDY, which older clients speak."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from konverge.sim.cluster import Cluster
from konverge.wire import spdy
from tests.sim.applications.support import running, simulated
from tests.sim.conftest import SPACE
from tests.sim.processes.test_sessions import asked, outcome, session
from tests.wire.test_spdy import Peer

pytestmark = pytest.mark.spec("K-61")

RULES = {
    "exec": [
        {"image": "app:*", "command": "sh -c *status*", "stdout": "up\n", "stderr": "hm\n", "exit": 4},
        {"image": "app:*", "command": "join", "answers": [{"stdout": "joining"}, {"stdout": "joined"}]},
        {"image": "app:*", "container": "other", "command": "*", "stdout": "never"},
    ]
}


async def ran(cluster: Cluster, *command: str) -> tuple[str, str, int]:
    """Output, errors and exit code of a command in the pod `web`, by WebSocket."""
    async with session(cluster, "web", "exec", asked(list(command), "stdout", "stderr")) as talker:
        assert talker.status == 101, talker.head
        result, status = await outcome(talker)
    return result.get(1, b"").decode(), result.get(2, b"").decode(), _code(status)


def _code(status: dict[str, Any]) -> int:
    return 0 if status["status"] == "Success" else int(status["details"]["causes"][0]["message"])


async def ran_by_spdy(cluster: Cluster, *command: str, ask: str = "v4.channel.k8s.io") -> tuple[str, str, int]:
    """The same as client-go did it before 0.29."""
    url = urlsplit(await cluster.listen())
    reader, writer = await asyncio.open_connection("127.0.0.1", url.port)
    query = urlencode(asked(list(command), "stdout", "stderr"))
    writer.write(
        f"POST /api/v1/namespaces/{SPACE}/pods/web/exec?{query} HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n"
        f"authorization: Bearer {cluster.server.token}\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n"
        f"x-stream-protocol-version: {ask}\r\n\r\n".encode()
    )
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert head.startswith("HTTP/1.1 101"), head
        assert "x-stream-protocol-version: v4.channel.k8s.io" in head
        peer = Peer()
        for number, name in enumerate(("error", "stdout", "stderr")):
            writer.write(peer.syn(2 * number + 1, {"streamtype": name}))
        streams = await _streams(reader, 3)
    finally:
        writer.close()
        await writer.wait_closed()
    return streams[3].decode(), streams[5].decode(), _code(json.loads(streams[1]))


async def _streams(reader: asyncio.StreamReader, count: int) -> dict[int, bytes]:
    """Data by stream, until all have ended."""
    texts: dict[int, bytes] = {}
    ended: set[int] = set()
    session = spdy.Session()
    while len(ended) < count:
        data = await reader.read(65536)
        assert data, "the connection ended before its streams"
        for event in session.feed(data):
            if isinstance(event, spdy.Data):
                texts[event.stream] = texts.get(event.stream, b"") + event.data
                ended |= {event.stream} if event.final else set()
    return texts


@pytest.mark.parametrize("run", [ran, ran_by_spdy])
async def test_a_command_is_answered_by_the_first_rule_that_matches(run: Any) -> None:
    async with simulated(RULES) as (cluster, _):
        await running(cluster, "web")
        assert await run(cluster, "sh", "-c", "the status please") == ("up\n", "hm\n", 4)


async def test_answers_go_by_occurrence_in_each_pod() -> None:
    async with simulated(RULES) as (cluster, applications):
        await running(cluster, "web")
        assert [(await ran(cluster, "join"))[0] for _ in range(3)] == ["joining", "joined", "joined"]
        before = applications.export()
    async with simulated(RULES) as (cluster, applications):
        applications.restore(before)
        await running(cluster, "web")
        assert (await ran(cluster, "join"))[0] == "joined"


async def test_a_command_without_a_rule_is_refused_and_says_what_to_write() -> None:
    async with simulated(RULES) as (cluster, _):
        await running(cluster, "web")
        async with session(cluster, "web", "exec", asked(["reboot"], "stdout")) as talker:
            assert talker.status == 400
        with pytest.raises(AssertionError, match="400"):
            await ran_by_spdy(cluster, "reboot")


async def test_only_containers_that_run_answer() -> None:
    async with simulated(RULES) as (cluster, _):
        await running(cluster, "web", lambda pod: pod.status.container_statuses, behaviour="slow-start 1h")
        async with session(cluster, "web", "exec", asked(["join"], "stdout")) as talker:
            assert talker.status == 400


async def test_a_stream_protocol_that_is_not_spoken_is_refused() -> None:
    async with simulated(RULES) as (cluster, _):
        await running(cluster, "web")
        with pytest.raises(AssertionError, match="400"):
            await ran_by_spdy(cluster, "join", ask="channel.k8s.io")
