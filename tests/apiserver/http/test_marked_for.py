"""The moment between the two writes that delete a pod without grace, where a server is told to have one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.apiserver import ApiServer
from konverge.apiserver.config import Config
from tests.apiserver.api import Api, Watch

pytestmark = pytest.mark.virtual

MOMENT = 0.5
PODS = "/api/v1/namespaces/default/pods"
POD = f"{PODS}/p"
SPEC = {"containers": [{"name": "c", "image": "i"}]}


@asynccontextmanager
async def marked() -> AsyncIterator[tuple[Api, Watch, asyncio.Task[Any]]]:
    """A pod that was marked just now, a watch that comes to its removal, and the request that deletes it."""
    config = Config(marked_for=MOMENT, disabled_admission=frozenset({"ServiceAccount"}))
    async with ApiServer(config=config) as server:
        api = Api(server)
        await api.create("p", PODS, spec=SPEC)
        async with api.watch(PODS, resourceVersion=str(server.store.revision)) as watch:
            deleting = asyncio.create_task(api.call("DELETE", POD))
            event = await watch.next()
            assert (event["type"], event["object"]["metadata"]["deletionGracePeriodSeconds"]) == ("MODIFIED", 0)
            yield api, watch, deleting


async def test_who_looks_when_a_pod_is_marked_finds_it() -> None:
    async with marked() as (api, watch, deleting):
        began = asyncio.get_running_loop().time()
        assert "deletionTimestamp" in (await api.call("GET", POD))["metadata"]
        assert (await watch.next())["type"] == "DELETED"
        assert asyncio.get_running_loop().time() - began == pytest.approx(MOMENT)
        assert (await deleting)["metadata"]["name"] == "p"
        await api.call("GET", POD, expect=404)


async def test_the_pod_goes_even_if_the_request_ends() -> None:
    async with marked() as (_, watch, deleting):
        deleting.cancel()
        assert (await watch.next())["type"] == "DELETED"


async def test_a_write_removes_the_pod_too() -> None:
    """An update of an object that nothing holds any more is what removes it, on the real server as well."""
    async with marked() as (api, watch, deleting):
        await api.patch(POD, {"metadata": {"labels": {"new": "yes"}}})
        assert (await watch.next())["type"] == "DELETED"
        assert (await deleting)["metadata"]["name"] == "p"


async def test_of_two_requests_both_succeed_and_one_removes() -> None:
    async with marked() as (api, watch, deleting):
        await api.call("DELETE", POD)
        again = await api.create("p", PODS, spec=SPEC)
        assert [(await watch.next())["type"] for _ in range(2)] == ["DELETED", "ADDED"]
        assert (await deleting)["metadata"]["uid"] != again["metadata"]["uid"]
        assert (await api.call("GET", POD))["metadata"]["uid"] == again["metadata"]["uid"], "the new pod is another one"
