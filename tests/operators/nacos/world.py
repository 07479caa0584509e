"""A simulated cluster with the Nacos operator, and servers whose answers the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from konverge.client import Client, MergePatch, Recording
from konverge.objects import crd, from_dict
from konverge.objects.kinds.core_v1 import Event, Pod, Secret
from konverge.operators.nacos.operator import OPERATOR, controllers
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.server import PORT, HttpNacosServers, Identity, Leader, Member, NacosError, Reason
from konverge.operators.nacos.steps import Options
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.operators.nacos.versions import version_of_image
from konverge.runtime import Manager, find_condition
from konverge.sim.cluster import Cluster
from konverge.sim.databases import SimulatedDatabases, SimulatedServer
from konverge.sim.nacos import SimulatedNacos

SPACE = "default"
GROUP = "naming_persistent_service_v2"
STANDALONE: dict[str, Any] = {
    "type": "standalone",
    "image": "harbor.cloud.io/nacos/nacos-server:v2.0.4",
    "replicas": 1,
    "database": {"type": "embedded"},
    "volume": {"enabled": True, "requests": {"storage": "10Gi"}},
}
CLUSTER: dict[str, Any] = {
    "type": "cluster",
    "image": "harbor.cloud.io/nacos/nacos-server:v2.0.4",
    "replicas": 3,
    "database": {"type": "embedded"},
}
EMBEDDED: dict[str, Any] = {**CLUSTER, "image": "nacos/nacos-server:v2.4.3"}
POSTGRES: dict[str, Any] = {
    **EMBEDDED,
    "database": {"type": "postgresql"},
    "postgres": {"host": "pg", "database": "nacos", "credentialsSecretRef": {"name": "pg"}},
    "adminCredentialsSecretRef": {"name": "admin"},
}
MYSQL: dict[str, Any] = {
    **CLUSTER,
    "database": {"type": "mysql", "mysqlHost": "my", "mysqlUser": "nacos", "mysqlPassword": "word"},
}


class ScriptedServers(HttpNacosServers):
    """Servers that are up as soon as their pods are ready; pod `leading` leads. Faults are by pod name."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster
        self.leading = 0
        self.faults: dict[str, NacosError] = {}
        self.delay: dict[str, float] = {}
        self.claims: dict[str, Leader] = {}
        """The leader that a server names, in place of the true one."""
        self.unverified: set[str] = set()
        self.departed: set[str] = set()
        """Raft addresses that all servers still count, though none lists them."""
        self.unremovable: NacosError | None = None
        self.version = ""
        """That all servers report; empty: each reports that of its image."""
        self.calls: list[tuple[str, Identity | None]] = []
        self.under_way = 0
        self.most_under_way = 0

    def _pod_at(self, address: str) -> Pod | None:
        pods = self._cluster.server.objects.scan("", "pods")
        return next((from_dict(Pod, pod) for pod in pods if pod["status"].get("podIP") == address), None)

    async def nodes(
        self, address: str, *, port: int = PORT, identity: Identity | None = None, timeout: float = 5.0
    ) -> tuple[Member, ...]:
        pod = self._pod_at(address)
        name = pod.metadata.name if pod is not None else ""
        self.calls.append((name, identity))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            async with asyncio.timeout(timeout):
                await asyncio.sleep(self.delay.get(name, 0.0))
        except TimeoutError:
            raise NacosError("Timeout", f"{address} gave no answer within {timeout:g} s") from None
        finally:
            self.under_way -= 1
        if pod is None:
            raise NacosError("Unreachable", f"{address} refuses connections")
        if name in self.faults:
            raise self.faults[name]
        return self._answer(pod)

    def _answer(self, pod: Pod) -> tuple[Member, ...]:
        listed = self._listed(pod)
        app = pod.metadata.labels["app"]
        version = self.version or str(version_of_image(pod.spec.containers[0].image or ""))
        truth = Leader(f"{listed[min(self.leading, len(listed) - 1)].partition(':')[0]}:7848", 3)
        members = []
        for address in listed:
            host = address.partition(":")[0]
            name = host.partition(".")[0]
            assert name.startswith(app)
            known = name not in self.unverified
            leader = self.claims.get(name, truth)
            peers = frozenset({f"{other.partition(':')[0]}:7848" for other in listed} | self.departed)
            members.append(
                Member(
                    host=host,
                    version=version if known else None,
                    leaders={GROUP: leader} if known else None,
                    groups={GROUP: peers} if known else {},
                )
            )
        return tuple(members)

    def _listed(self, pod: Pod) -> list[str]:
        """Of the template, or of a file that is updated at once."""
        variables = {variable.name: variable for variable in pod.spec.containers[0].env}
        servers = variables.get("NACOS_SERVERS")
        if servers is None:
            return [f"{pod.metadata.name}:{PORT}"]
        if servers.value_from is None or servers.value_from.config_map_key_ref is None:
            return (servers.value or "").split()
        ref, name = servers.value_from.config_map_key_ref, pod.metadata.name
        config = self._cluster.server.objects.get("", "configmaps", pod.metadata.namespace, ref.name or "")
        assert config is not None
        listed = config["data"][ref.key].split()
        if not any(address.startswith(f"{name}.") for address in listed):  # a server keeps itself in its list
            listed.append(f"{name}.{listed[0].partition('.')[2]}")
        return listed

    async def login(
        self, address: str, *, port: int = PORT, username: str, password: str, timeout: float = 5.0
    ) -> bool:
        return True

    async def bootstrap_admin(self, address: str, *, port: int = PORT, password: str, timeout: float = 5.0) -> bool:
        return False

    async def remove_peer(
        self, address: str, *, port: int = PORT, peer: str, identity: Identity | None = None, timeout: float = 5.0
    ) -> None:
        if self.unremovable is not None:
            raise self.unremovable
        self.departed.discard(peer)

    def fail(self, pod: str, reason: Reason, message: str = "an injected fault") -> None:
        self.faults[pod] = NacosError(reason, message)


class World:
    """A cluster, and an operator on it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client
        self.servers = ScriptedServers(cluster)
        self.asked: HttpNacosServers = self.servers
        """The servers that the operator asks."""
        self.databases = SimulatedDatabases()
        self.versions = False
        """Whether v1beta1 is served; then the operator converts."""
        self.operator: Manager
        self.recording: Recording
        """All requests of the operator."""

    @asynccontextmanager
    async def operating(
        self,
        *,
        paused: Sequence[str] = (),
        client: Client | None = None,
        options: Options | None = None,
        check_permissions: bool = False,
    ) -> AsyncIterator[Manager]:
        """`check_permissions` is for a client that has not all of them: asking for each takes longer than the rest of
        the operator's start."""
        self.recording = Recording(client or self.client)
        self.operator = Manager(
            self.recording,
            name="nacos-operator",
            paused=paused,
            shutdown_timeout=1.0,
            check_permissions=check_permissions,
        )
        for controller in controllers(self.databases, self.asked, options=options):
            self.operator.add(controller)
        webhooks = self.operator.webhooks
        assert webhooks is not None
        place = self.cluster.webhook_place()
        self.operator.webhooks = replace(webhooks, place=place) if self.versions else None
        async with self.operator.running():
            yield self.operator

    async def create(self, name: str, spec: dict[str, Any], **metadata: Any) -> Nacos:
        body = {
            "apiVersion": "nacos.io/v1alpha1",
            "kind": "Nacos",
            "metadata": {"name": name, "namespace": SPACE, **metadata},
            "spec": spec,
        }
        return from_dict(Nacos, await self.client.create(body, resource=Nacos.resource))

    async def change(self, name: str, **spec: Any) -> None:
        await self.client.patch(Nacos, name, MergePatch({"spec": spec}), SPACE)

    async def nacos(self, name: str) -> Nacos:
        return await self.client.get(Nacos, name, SPACE)

    async def up(self, name: str, spec: dict[str, Any]) -> Nacos:
        """Create a resource, and wait until it runs."""
        await self.create(name, spec)
        return await self.until(name)

    async def update(self, name: str, **spec: Any) -> Nacos:
        """Change a resource, and wait until it runs again."""
        await self.change(name, **spec)
        await self.advance(2.0)
        return await self.until(name)

    async def advance(self, seconds: float) -> None:
        await self.cluster.clock.advance(seconds)

    async def until(self, name: str, phase: str = "Running", *, limit: float = 900.0) -> Nacos:
        """Until the resource is in a phase and Ready accordingly."""
        waited = 0.0
        while True:
            nacos = await self.nacos(name)
            if nacos.status.phase == phase and (phase != "Running" or is_ready(nacos)):
                return nacos
            assert waited < limit, f"{name} is {nacos.status.phase}, not {phase}: {conditions(nacos)}"
            await self.advance(2.0)
            waited += 2.0

    async def until_ready(self, *, limit: float = 1800.0) -> int:
        """Until the Nacos is as desired; the lowest number of ready pods on the way."""
        lowest, waited = 99, 0.0
        await self.advance(2.0)
        while True:
            lowest = min(lowest, sum(map(pod_is_ready, await self.pods())))
            nacos = await self.nacos("nacos")
            if nacos.status.phase == "Running" and condition(nacos, "Ready")[0] == "True":
                return lowest
            assert waited < limit, nacos.status
            await self.advance(5.0)
            waited += 5.0

    async def events(self, reason: str) -> list[str]:
        events = await self.client.list(Event, SPACE)
        return [event.message or "" for event in events if event.reason == reason]

    async def pods(self, name: str = "nacos") -> list[Pod]:
        return (await self.client.list(Pod, SPACE, label_selector=f"app={name}")).items

    async def uids(self) -> dict[str, str]:
        """Of the pods by name: a pod that was restarted has another one."""
        return {pod.metadata.name: pod.metadata.uid for pod in await self.pods()}

    async def restarted(self, uids: dict[str, str]) -> list[str]:
        """The pods that were restarted since `uids` was read."""
        return [name for name, uid in (await self.uids()).items() if uids[name] != uid]

    def replaced(self) -> list[str]:
        """The pods that the operator deleted, in order."""
        deletions = [call for call in self.recording.calls if call.verb == "delete" and call.resource == Pod.resource]
        return [call.name for call in deletions]

    async def secret(self, name: str, **values: str) -> None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": SPACE}}
        await self.client.create({**body, "stringData": values})

    async def replace_secret(self, name: str, **values: str) -> None:
        if (await self.client.list(Secret, SPACE, field_selector=f"metadata.name={name}")).items:
            await self.client.delete(Secret, name, SPACE)
        await self.secret(name, **values)

    def mysql(self) -> SimulatedServer:
        """The server of the spec MYSQL."""
        server = self.databases.add_server("my", 3306, "mysql")
        server.add("nacos", "nacos", "word")
        return server

    async def postgres(self) -> SimulatedServer:
        """The server of the spec POSTGRES, and its Secrets."""
        server = self.databases.add_server("pg", 5432, "postgresql")
        server.add("nacos", "nacos", "word")
        await self.secret("pg", username="nacos", password="word")
        await self.secret("admin", username="nacos", password="first")
        return server


@asynccontextmanager
async def a_world(*, versions: bool = False, **options: Any) -> AsyncIterator[World]:
    """`versions`: with v1beta1. By default the definition has the stored version alone, as before there were two."""
    async with Cluster(**options) as cluster:
        for definition in OPERATOR.definitions():
            alone = definition["metadata"]["name"] == Nacos.resource.group_resource and not versions
            await cluster.client.create(crd(Nacos) if alone else definition)
        await cluster.settle()
        world = World(cluster)
        world.versions = versions
        yield world


@asynccontextmanager
async def a_simulated_world(**options: Any) -> AsyncIterator[tuple[World, SimulatedNacos]]:
    """The same with servers that boot, elect, lag and split like real ones."""
    seed = options.pop("nacos_seed", 0)
    async with (
        a_world(**options) as world,
        SimulatedNacos(world.cluster, databases=world.databases, seed=seed) as simulated,
    ):
        world.asked = HttpNacosServers(simulated.connect)
        yield world, simulated


def condition(nacos: Nacos, type: str) -> tuple[str, str]:
    """Status and reason of a Kubernetes condition."""
    entry = find_condition(nacos.status.kube_conditions, type)
    return (entry.status, entry.reason) if entry is not None else ("", "")


def is_ready(nacos: Nacos) -> bool:
    up_to_date = nacos.status.observed_generation == nacos.metadata.generation
    return up_to_date and condition(nacos, "Ready")[0] == "True"


def conditions(nacos: Nacos) -> str:
    return "; ".join(f"{c.type}={c.status} {c.reason} {c.message}" for c in nacos.status.kube_conditions)
