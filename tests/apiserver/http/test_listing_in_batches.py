"""Work on many objects is done in many turns of the loop, so that other requests do not wait for it.

The tests count turns and not time, so that a slow machine changes nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.http.listing import BATCH
from konverge.apiserver.storage import Store
from tests.apiserver.api import CONFIG_MAPS, Api

OBJECTS = 12 * BATCH
META = "application/json;as={form};g=meta.k8s.io;v=v1"


def put(store: Store, name: str, size: int = 500) -> None:
    obj = {
        "metadata": {"name": name, "namespace": "default", "uid": "u", "labels": {"a": "b"}},
        "data": {"x": "y" * size},
    }
    store.put(store.table("/configmaps"), obj, expected=None)


@pytest.fixture
async def full() -> AsyncIterator[Api]:
    async with ApiServer() as server:
        for number in range(OBJECTS):
            put(server.store, f"c{number:05}")
            if number % BATCH == 0:
                await asyncio.sleep(0)
        yield Api(server)


async def counted(work: Coroutine[Any, Any, Any]) -> tuple[int, Any]:
    """How often other tasks ran meanwhile, and the result."""
    count, ended = 0, False

    async def others() -> None:
        nonlocal count
        while not ended:
            await asyncio.sleep(0)
            count += 1

    beside = asyncio.create_task(others())
    result = await work
    ended = True
    await beside
    return count, result


async def drained(api: Api, path: str, **headers: str) -> bytes:
    stream = await api.server.transport.stream(api.request("GET", path, **headers))
    return b"".join([chunk async for chunk in stream])


@pytest.mark.spec("S-15")
@pytest.mark.parametrize(
    ("query", "accept"),
    [
        ("", "application/json"),
        ("?labelSelector=a%3Dnothing", "application/json"),
        ("?labelSelector=a%3Db", META.format(form="Table")),
        ("", META.format(form="Table")),
        ("", META.format(form="PartialObjectMetadataList")),
    ],
)
async def test_a_list_is_made_in_many_turns(full: Api, query: str, accept: str) -> None:
    count, body = await counted(drained(full, CONFIG_MAPS + query, accept=accept))
    assert count >= OBJECTS // BATCH - 1
    listed = json.loads(body)
    assert len(listed.get("items", listed.get("rows"))) == (0 if "nothing" in query else OBJECTS)


@pytest.mark.spec("S-15")
async def test_a_watch_sends_its_state_and_missed_events_in_many_turns(full: Api) -> None:
    version = full.server.store.revision
    for query in (
        {},
        {"resourceVersion": str(version - OBJECTS + 1)},
        {"resourceVersion": "1", "labelSelector": "a=c"},
    ):
        count, _ = await counted(
            drained(full, f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1&" + "&".join(f"{k}={v}" for k, v in query.items()))
        )
        assert count >= OBJECTS // BATCH - 1


@pytest.mark.spec("S-15")
async def test_a_collection_is_deleted_in_many_turns(full: Api) -> None:
    count, _ = await counted(full.call("DELETE", CONFIG_MAPS))
    assert count >= OBJECTS // BATCH
    assert (await full.call("GET", CONFIG_MAPS))["items"] == []
