"""The WebApp operator on the real kube-apiserver: what it writes and repairs there is what it writes on ours."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge.client import Client, JsonPatch, MergePatch, NotFound, Recording, load_config
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Service
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from tests.operators.webapp.test_drift import DEPLOYMENT, SERVICE, essence, reach
from tests.real.clients.waiting import LIMIT
from tools.control_plane import ControlPlane

SPACE, NAME = "default", "shop"


async def until(true: Callable[[], Awaitable[Any]], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + LIMIT
    while not await true():
        assert asyncio.get_running_loop().time() < deadline, f"{what} did not come"
        await asyncio.sleep(0.05)


@pytest.mark.spec("A-08", "A-09")
@pytest.mark.limit(600)
async def test_drift_is_repaired_and_a_refusal_is_shown_on_the_real_server(real_server: ControlPlane) -> None:
    async with Client.connect(load_config(kubeconfig=str(real_server.kubeconfig))) as client:
        for definition in OPERATOR.definitions():
            await client.create(definition)
        manager = Manager(Recording(client), name=OPERATOR.identity)
        for controller in controllers():
            manager.add(controller)
        async with manager.running():
            spec = WebAppSpec(image="nginx:1.20", replicas=2, env={"A": "1", "EMPTY": ""})
            await client.create(WebApp(metadata=ObjectMeta(name=NAME, namespace=SPACE), spec=spec))

            async def app() -> WebApp:
                return await client.get(WebApp, NAME, SPACE)

            async def synced() -> bool:
                return (await app()).status.observed_generation == 1

            await until(synced, "the first sync")
            before = essence(await client.get(Deployment, NAME, SPACE)), reach(await client.get(Service, NAME, SPACE))

            async def as_before() -> bool:
                now = essence(await client.get(Deployment, NAME, SPACE)), reach(await client.get(Service, NAME, SPACE))
                return now == before

            for changes, said in DEPLOYMENT:
                await client.patch(Deployment, NAME, JsonPatch(changes), SPACE)
                await until(as_before, said)
            for change, said in SERVICE:
                await client.patch(Service, NAME, MergePatch({"spec": change}), SPACE)
                await until(as_before, said)
            await client.patch(WebApp, NAME, MergePatch({"spec": {"env": {"A=B": "x"}}}), SPACE)

            async def refused() -> bool:
                return any(entry.reason == "Invalid" for entry in (await app()).status.conditions)

            await until(refused, "the refusal")
            assert (await app()).status.observed_generation == 2
            await client.delete(WebApp, NAME, SPACE)

            async def gone() -> bool:
                try:
                    await app()
                except NotFound:
                    return True
                return False

            await until(gone, "the end")
            for kind in (Deployment, Service):
                with pytest.raises(NotFound):
                    await client.get(kind, NAME, SPACE)
