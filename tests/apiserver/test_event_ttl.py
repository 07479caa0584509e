"""Events expire after an hour; every write gives them another one."""

from __future__ import annotations

import asyncio

import pytest

from tests.apiserver.api import Api

EVENTS = "/api/v1/namespaces/default/events"


async def create(api: Api, name: str) -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    await api.call("POST", EVENTS, {"metadata": {"name": name}, "involvedObject": about, "reason": "R"})


async def names(api: Api) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.call("GET", EVENTS))["items"]]


@pytest.mark.virtual
@pytest.mark.spec("S-09")
async def test_events_expire_an_hour_after_their_last_write(api: Api) -> None:
    await create(api, "a")
    await create(api, "b")
    await asyncio.sleep(1800)
    await api.patch(f"{EVENTS}/b", {"count": 2})
    await create(api, "c")
    await asyncio.sleep(1801)
    assert await names(api) == ["b", "c"]
    await asyncio.sleep(1800)
    assert await names(api) == []
