"""A Nacos on a simulated database, a volume for backups, and what tests do with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from konverge.client import MergePatch, NotFound
from konverge.objects import from_dict
from konverge.objects.kinds.batch_v1 import Job
from konverge.operators.nacos.backup.kinds import KINDS, NacosBackup
from konverge.operators.nacos.backup.manifest import SUFFIX
from konverge.runtime import find_condition
from konverge.sim.databases import SimulatedDatabase
from konverge.sim.nacos import SimulatedNacos
from konverge.sim.nacos.buckets import SimulatedEndpoint, StoredFile
from tests.operators.nacos.world import MYSQL, POSTGRES, SPACE, STANDALONE, World, a_simulated_world

PG: dict[str, Any] = {
    **{key: value for key, value in POSTGRES.items() if key != "adminCredentialsSecretRef"},
    "type": "standalone",
    "replicas": 1,
}
MY: dict[str, Any] = {**MYSQL, "type": "standalone", "replicas": 1}
EMBEDDED: dict[str, Any] = {**STANDALONE, "image": "nacos/nacos-server:v2.4.3"}
CLAIM = "backups"
ENDPOINT, BUCKET = "https://s3.example", "backups"
S3: dict[str, Any] = {"endpoint": ENDPOINT, "bucket": BUCKET, "credentialsSecret": {"name": "s3"}}
KEY = ("public", "DEFAULT_GROUP", "app.yaml")
_BY_KIND = {kind.resource.kind: kind for kind in KINDS}


class BackupWorld:
    """Backups of the Nacos `nacos`."""

    def __init__(self, world: World, simulated: SimulatedNacos) -> None:
        self.world = world
        self.simulated = simulated
        self.client = world.client

    # -------------------------------------------------------------- resources

    async def create(self, kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> Any:
        body = {
            "apiVersion": "nacos.io/v1alpha1",
            "kind": kind,
            "metadata": {"name": name, "namespace": SPACE, **metadata},
            "spec": spec,
        }
        cls = _BY_KIND[kind]
        return from_dict(cls, await self.client.create(body, resource=cls.resource))

    async def back_up(self, name: str = "first", **spec: Any) -> NacosBackup:
        given = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": CLAIM}}}
        backup: NacosBackup = await self.create("NacosBackup", name, {**given, **spec})
        return backup

    async def get(self, name: str = "first", kind: str = "NacosBackup") -> Any:
        return await self.client.get(_BY_KIND[kind], name, SPACE)

    async def until(self, phase: str, name: str = "first", kind: str = "NacosBackup", limit: float = 300.0) -> Any:
        waited = 0.0
        while (obj := await self.get(name, kind)).status.phase != phase:
            assert waited < limit, obj.status
            await self.world.advance(1.0)
            waited += 1.0
        return obj

    async def until_reason(self, reason: str, name: str = "first", kind: str = "NacosBackup") -> Any:
        for _ in range(300):
            obj = await self.get(name, kind)
            if condition(obj)[1] == reason:
                return obj
            await self.world.advance(1.0)
        raise AssertionError(obj.status)

    async def gone(self, name: str = "first", kind: str = "NacosBackup") -> bool:
        try:
            await self.get(name, kind)
        except NotFound:
            return True
        return False

    async def delete(self, name: str = "first", kind: str = "NacosBackup") -> None:
        await self.client.delete(_BY_KIND[kind], name, SPACE)

    async def until_gone(self, name: str = "first", kind: str = "NacosBackup", limit: int = 300) -> None:
        for _ in range(limit):
            if await self.gone(name, kind):
                return
            await self.world.advance(1.0)
        raise AssertionError((await self.get(name, kind)).status)

    async def patch(self, name: str, kind: str = "NacosBackup", **spec: Any) -> None:
        await self.client.patch(_BY_KIND[kind], name, MergePatch({"spec": spec}), SPACE)

    async def claim(self, name: str = CLAIM) -> None:
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
        meta = {"name": name, "namespace": SPACE}
        await self.client.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec})

    async def jobs(self) -> list[Job]:
        return (await self.client.list(Job, SPACE)).items

    # -------------------------------------------------------------- data

    async def bucket(self, *, secret: bool = True) -> SimulatedEndpoint:
        """A service with an empty bucket, and the Secret of its only user."""
        self.simulated.jobs.storage.willing = False
        endpoint = self.simulated.jobs.storage.endpoint(ENDPOINT, BUCKET)
        endpoint.users = {"konverge": "open sesame"}
        if secret:
            await self.world.replace_secret("s3", accessKeyId="konverge", secretAccessKey="open sesame")
        return endpoint

    def objects(self) -> dict[str, StoredFile]:
        """The data in the bucket, by key."""
        objects = self.simulated.jobs.storage.endpoints[ENDPOINT].buckets.get(BUCKET, {})
        return {key: stored for key, stored in objects.items() if not key.endswith(SUFFIX)}

    def database(self, host: str = "pg") -> SimulatedDatabase:
        servers = self.world.databases.servers
        return next(server for (name, _), server in servers.items() if name == host).databases["nacos"]

    def files(self) -> dict[str, StoredFile]:
        """The data in all volumes, by path."""
        return {path: file for path, file in self.everything().items() if not path.endswith(SUFFIX)}

    def everything(self) -> dict[str, StoredFile]:
        """With the manifests."""
        volumes = self.simulated.jobs.volumes.values()
        return {path.removeprefix("/backup/"): file for volume in volumes for path, file in volume.items()}


def condition(obj: Any, type: str = "Ready") -> tuple[str, str]:
    entry = find_condition(obj.status.conditions, type)
    return (entry.status, entry.reason) if entry is not None else ("", "")


def message(obj: Any, type: str = "Ready") -> str:
    entry = find_condition(obj.status.conditions, type)
    return entry.message if entry is not None else ""


@asynccontextmanager
async def prepared(spec: dict[str, Any] | None = None) -> AsyncIterator[BackupWorld]:
    """Databases, the Nacos `nacos`, and a claim; the operator does not run."""
    async with a_simulated_world() as (world, simulated):
        await world.postgres()
        world.mysql().databases["nacos"].initialise("2.0")
        backups = BackupWorld(world, simulated)
        await backups.claim()
        async with world.operating():
            await world.up("nacos", PG if spec is None else spec)
        yield backups


@asynccontextmanager
async def a_backed_up_nacos(spec: dict[str, Any] | None = None) -> AsyncIterator[BackupWorld]:
    """The same with an operator."""
    async with prepared(spec) as backups, backups.world.operating():
        yield backups
