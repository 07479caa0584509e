"""Watches as messages of a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from konverge.wire.websocket_frames import Opcode
from tests.apiserver.api import CONFIG_MAPS, Api
from tests.wire.websocket_client import Talker, talking

pytestmark = pytest.mark.spec("S-06", "S-57")


@asynccontextmanager
async def watching(api: Api, query: str, *protocols: str) -> AsyncIterator[Talker]:
    url = urlsplit(await api.server.listen())
    token = f"authorization: Bearer {api.server.token}\r\n"
    async with talking(url.port or 0, f"{CONFIG_MAPS}?watch=true&{query}", *protocols, extra=token) as talker:
        yield talker


async def event(talker: Talker) -> tuple[str, str]:
    opcode, data = await talker.receive()
    assert opcode is Opcode.TEXT
    assert data.endswith(b"}\n"), "as kube-apiserver writes them"
    made: Any = json.loads(data)
    return made["type"], made["object"]["metadata"]["name"]


async def test_each_event_is_a_message(api: Api) -> None:
    """Also those of the present state, which are written at once."""
    for name in "ab":
        await api.create(name)
    async with watching(api, "labelSelector=!x") as talker:
        assert talker.status == 101
        assert [await event(talker) for _ in range(2)] == [("ADDED", "a"), ("ADDED", "b")]
        await api.call("DELETE", f"{CONFIG_MAPS}/a")
        assert await event(talker) == ("DELETED", "a")
        talker.send(b"nobody listens to this")
        await api.create("c")
        assert await event(talker) == ("ADDED", "c")


async def test_a_watch_that_ends_closes(api: Api) -> None:
    async with watching(api, "resourceVersion=0&timeoutSeconds=1") as talker:
        assert (await talker.receive())[0] is Opcode.CLOSE


async def test_a_client_that_goes_ends_its_watch(api: Api) -> None:
    async with watching(api, "resourceVersion=0") as talker:
        await api.create("a")
        await event(talker)
        assert api.server.streams
    while api.server.streams:
        await asyncio.sleep(0)


async def test_the_token_is_no_subprotocol(api: Api) -> None:
    async with watching(api, "", "base64url.bearer.authorization.k8s.io.eA", "mine") as talker:
        assert talker.status == 101
        assert "sec-websocket-protocol: mine" in talker.head.lower()


async def test_a_refusal_is_an_answer(api: Api) -> None:
    async with watching(api, "fieldSelector=spec.no=1") as talker:
        assert talker.status == 400
