"""A Nacos on simulated servers, and what tests do with its content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import MergePatch, NotFound
from konverge.objects import from_dict
from konverge.operators.nacos.content.api import ConfigKey, ContentApi, StoredConfig, Tokens
from konverge.operators.nacos.content.kinds import KINDS
from konverge.operators.nacos.server import HttpNacosServers, Identity
from konverge.runtime import find_condition
from konverge.sim.nacos import SimulatedNacos
from tests.operators.nacos.world import SPACE, STANDALONE, World, a_simulated_world

SECOND: dict[str, Any] = {**STANDALONE, "image": "nacos/nacos-server:v2.4.3"}
THIRD: dict[str, Any] = {**STANDALONE, "image": "nacos/nacos-server:v3.0.3"}
APP = ConfigKey("public", "DEFAULT_GROUP", "app.yaml")
_BY_KIND = {kind.resource.kind: kind for kind in KINDS}


class ContentWorld:
    """Content of the Nacos `nacos`, as users declare it and as its servers have it."""

    def __init__(self, world: World, simulated: SimulatedNacos) -> None:
        self.world = world
        self.simulated = simulated

    async def create(self, kind: str, name: str, *, where: str = SPACE, **spec: Any) -> Any:
        body = {
            "apiVersion": "nacos.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": where},
            "spec": {"nacosRef": {"name": "nacos"}, **spec},
        }
        cls = _BY_KIND[kind]
        return from_dict(cls, await self.world.client.create(body, resource=cls.resource))

    async def config(self, name: str = "app", **spec: Any) -> Any:
        given = {"dataId": "app.yaml", "type": "yaml", "content": "a: 1"}
        return await self.create("NacosConfig", name, **{**given, **spec})

    async def change(self, kind: str, name: str, **spec: Any) -> None:
        await self.world.client.patch(_BY_KIND[kind], name, MergePatch({"spec": spec}), SPACE)
        await self.world.advance(2.0)

    async def get(self, kind: str, name: str, namespace: str = SPACE) -> Any:
        return await self.world.client.get(_BY_KIND[kind], name, namespace)

    async def delete(self, kind: str, name: str) -> None:
        await self.world.client.delete(_BY_KIND[kind], name, SPACE)
        await self.world.advance(2.0)

    async def gone(self, kind: str, name: str) -> bool:
        try:
            await self.get(kind, name)
        except NotFound:
            return True
        return False

    async def ready(self, kind: str, name: str, namespace: str = SPACE) -> tuple[str, str]:
        """Status and reason of the condition Ready; empty while it is about an older generation."""
        obj = await self.get(kind, name, namespace)
        condition = find_condition(obj.status.conditions, "Ready")
        generations = {obj.metadata.generation, obj.status.observed_generation}
        if condition is None or {condition.observed_generation} != generations:
            return "", ""
        return condition.status, condition.reason

    async def until(self, kind: str, name: str, reason: str = "Applied", *, limit: float = 400.0) -> Any:
        waited = 0.0
        while (await self.ready(kind, name))[1] != reason:
            assert waited < limit, (await self.get(kind, name)).status
            await self.world.advance(1.0)
            waited += 1.0
        return await self.get(kind, name)

    # -------------------------------------------------------------- the servers

    @property
    def servers(self) -> ContentApi:
        """As somebody else uses them, with the right of the servers themselves."""
        member = self.simulated.member("nacos-0")
        key, value = member.settings.identity
        return ContentApi(
            servers=HttpNacosServers(self.simulated.connect),
            uid="",
            addresses=(member.settings.ip,),
            third=member.settings.line >= (3,),
            identity=Identity(key, value) if key else None,
            tokens=Tokens(),
        )

    async def stored(self, key: ConfigKey = APP) -> StoredConfig | None:
        return await self.servers.config(key)

    async def content(self, key: ConfigKey = APP) -> str | None:
        stored = await self.stored(key)
        return stored.content if stored is not None else None

    def writes_of(self) -> list[tuple[str, str]]:
        """The history of all configurations on the servers: operation and content."""
        return [(operation, content) for _, operation, content in self.simulated.member("nacos-0").data.kept.history]


@asynccontextmanager
async def a_nacos(spec: dict[str, Any] = SECOND) -> AsyncIterator[ContentWorld]:
    """A Nacos that runs, with an operator."""
    async with a_simulated_world() as (world, simulated), world.operating():
        await world.up("nacos", spec)
        yield ContentWorld(world, simulated)
