"""A simulated cluster with the WebApp operator on it, in virtual time; its requests are noted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from konverge.client import Call, Client, MergePatch, Recording
from konverge.objects import ObjectMeta
from konverge.objects.kinds.apps_v1 import Deployment
from konverge.objects.kinds.core_v1 import Event, Service
from konverge.operators.webapp import WebApp, WebAppSpec, controllers
from konverge.operators.webapp.operator import OPERATOR
from konverge.runtime import Manager
from konverge.sim.cluster import Cluster

SPACE = "default"
NAME = "shop"


@dataclass
class World:
    """The cluster, its operator and the requests that the operator made."""

    cluster: Cluster
    manager: Manager
    recording: Recording

    @property
    def client(self) -> Client:
        return self.cluster.client

    def writes(self) -> list[Call]:
        """What the operator wrote since the last time this was asked; events tell, they are not counted."""
        writes = [call for call in self.recording.writes if call.resource != Event.resource]
        self.recording.calls.clear()
        return writes

    async def create(self, **spec: Any) -> WebApp:
        desired = WebAppSpec(**({"image": "nginx:1.20", "replicas": 2} | spec))
        await self.client.create(WebApp(metadata=ObjectMeta(name=NAME, namespace=SPACE), spec=desired))
        await self.cluster.settle()
        return await self.app()

    async def change(self, **spec: Any) -> WebApp:
        await self.client.patch(WebApp, NAME, MergePatch({"spec": spec}), SPACE)
        await self.cluster.settle()
        return await self.app()

    async def app(self) -> WebApp:
        return await self.client.get(WebApp, NAME, SPACE)

    async def deployment(self) -> Deployment:
        return await self.client.get(Deployment, NAME, SPACE)

    async def service(self) -> Service:
        return await self.client.get(Service, NAME, SPACE)

    async def events(self) -> list[tuple[str, str]]:
        """Reason and message of the Events of the WebApp, in order."""
        result = await self.client.list(Event, SPACE, field_selector="involvedObject.kind=WebApp")
        in_order = sorted(result, key=lambda event: int(event.metadata.resource_version))
        return [(event.reason or "", event.message or "") for event in in_order]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with Cluster() as cluster:
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await cluster.settle()
        recording = Recording(cluster.client)
        manager = Manager(recording, name=OPERATOR.identity)
        for controller in controllers():
            manager.add(controller)
        async with manager.running():
            yield World(cluster, manager, recording)


def reported(calls: list[Call]) -> list[str]:
    """Calls as text: `patch deployments`, `patch webapps/status`."""
    return [
        "/".join(filter(None, (f"{call.verb} {call.resource.plural if call.resource else ''}", call.subresource)))
        for call in calls
    ]
