"""Simulated servers on the pods of a simulated cluster, asked by the operator's own client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import PersistentVolumeClaim, Pod, Secret
from konverge.operators.nacos.server import PORT, HttpNacosServers, Identity, NacosError, Verdict, View, judge
from konverge.sim.cluster import Cluster
from konverge.sim.databases import SimulatedDatabases, simulated_hash
from konverge.sim.nacos import Fault, SimulatedNacos
from konverge.wire.message import Headers, Request, Response

IDENTITY = Identity("serverIdentity", "letmein")
CONTROLLERS = ("statefulset", "pvc-protection", "pv-protection")
PODS = ("nacos-0", "nacos-1", "nacos-2")
pytestmark = pytest.mark.virtual


def _probe(path: str, port: int, **more: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": port}, "periodSeconds": 5, **more}


def stateful_set(
    image: str, *, replicas: int = 3, name: str = "nacos", volume: str = "claim", **env: str
) -> StatefulSet:
    """`volume`: claim, emptyDir, or empty for data in the container itself."""
    console, port = ("/v3/console/health", 8080) if ":v3" in image else ("/nacos/v1/console/health", 8848)
    hosts = " ".join(f"{name}-{i}.{name}-headless.default.svc.cluster.local:8848" for i in range(replicas))
    variables = {"NACOS_SERVERS": hosts, "MODE": "cluster" if replicas > 1 else "standalone", **env}
    secrets = [
        {"name": f"NACOS_AUTH_{key}", "valueFrom": {"secretKeyRef": {"name": "auth", "key": key}}}
        for key in ("TOKEN", "IDENTITY_KEY", "IDENTITY_VALUE")
    ]
    container = {
        "name": "nacos",
        "image": image,
        "env": [*({"name": key, "value": value} for key, value in variables.items()), *secrets],
        "startupProbe": _probe(f"{console}/liveness", port, failureThreshold=60),
        "readinessProbe": _probe(f"{console}/readiness", port),
        "livenessProbe": _probe(f"{console}/liveness", port),
        "volumeMounts": [{"name": "data", "mountPath": "/home/nacos/data"}] if volume else [],
    }
    labels = {"app": name}
    spec: dict[str, Any] = {
        "replicas": replicas,
        "serviceName": f"{name}-headless",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    if volume == "claim":
        asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": asked}]
    elif volume:
        spec["template"]["spec"]["volumes"] = [{"name": "data", volume: {}}]
    return from_dict(StatefulSet, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})


class Play:
    """A cluster, its simulated servers, and the client that asks them."""

    def __init__(self, cluster: Cluster, nacos: SimulatedNacos) -> None:
        self.cluster = cluster
        self.nacos = nacos
        self.servers = HttpNacosServers(nacos.connect)

    async def pods(self) -> dict[str, Pod]:
        pods = await self.cluster.client.list(Pod, "default")
        return {pod.metadata.name: pod for pod in pods.items}

    async def ready(self) -> list[str]:
        await self.cluster.settle()
        return sorted(
            name
            for name, pod in (await self.pods()).items()
            if any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)
        )

    async def verdict(self, identity: Identity | None = IDENTITY, timeout: float = 5.0) -> Verdict:
        pods = await self.pods()
        views = await asyncio.gather(*(self._view(pod, identity, timeout) for pod in pods.values()))
        return judge(views, len(pods))

    async def _view(self, pod: Pod, identity: Identity | None, timeout: float) -> View:
        name, address = pod.metadata.name, pod.status.pod_ip or ""
        try:
            members = await self.servers.nodes(address, identity=identity, timeout=timeout)
        except NacosError as error:
            return View(pod=name, address=address, error=str(error))
        return View(pod=name, address=address, members=members)

    async def address(self, pod: str = "nacos-0") -> str:
        return (await self.pods())[pod].status.pod_ip or ""

    async def publish(self, content: str, pod: str = "nacos-0") -> Response:
        body = f"dataId=app&group=DEFAULT_GROUP&content={content}".encode()
        headers = Headers.of({IDENTITY.key: IDENTITY.value})
        new = self.nacos.member(pod).settings.line >= (3,)
        path = "/nacos/v3/admin/cs/config" if new else "/nacos/v1/cs/configs"
        return await self.nacos.exchange(await self.address(pod), PORT, Request("POST", path, headers, body))

    async def config(self, pod: str = "nacos-0") -> str:
        """The configuration that a client gets; empty: there is none."""
        path = "/nacos/v1/cs/configs?dataId=app&group=DEFAULT_GROUP"
        answer = await self.nacos.exchange(await self.address(pod), PORT, Request("GET", path))
        return answer.body.decode() if answer.status == 200 else ""

    async def lose_claim(self, pod: str) -> None:
        """The pod and its claim; both come back, and the claim with another volume."""
        await self.cluster.client.delete(PersistentVolumeClaim, f"data-{pod}", "default")
        await self.cluster.client.delete(Pod, pod, "default")
        await self.after(150)

    async def get(self, path: str) -> Response:
        return await self.nacos.exchange(await self.address(), PORT, Request("GET", path))

    async def after(self, seconds: float) -> None:
        await self.cluster.clock.advance(seconds)
        await self.cluster.settle()


@asynccontextmanager
async def playing(image: str = "nacos/nacos-server:v2.4.3", **options: Any) -> AsyncIterator[Play]:
    env = options.pop("env", {})
    replicas, volume = options.pop("replicas", 3), options.pop("volume", "claim")
    data = {"TOKEN": "t" * 40, "IDENTITY_KEY": IDENTITY.key, "IDENTITY_VALUE": IDENTITY.value}
    async with Cluster(controllers=CONTROLLERS) as cluster, SimulatedNacos(cluster, **options) as nacos:
        secret = {"metadata": {"name": "auth", "namespace": "default"}, "stringData": data}
        await cluster.client.create(from_dict(Secret, secret))
        await cluster.client.create(stateful_set(image, replicas=replicas, volume=volume, **env))
        await cluster.settle()
        yield Play(cluster, nacos)


@pytest.mark.spec("N-18", "N-10")
@pytest.mark.parametrize("version", ["2.1.1", "2.4.3", "3.0.3"])
async def test_pods_become_ready_when_their_servers_are(version: str) -> None:
    async with playing(f"nacos/nacos-server:v{version}", env={"NACOS_AUTH_ENABLE": "true"}) as play:
        assert await play.ready() == []
        starting = await play.verdict()
        assert not starting.quorum
        assert all("Unreachable" in problem for problem in starting.problems[:3])
        await play.after(90)
        assert await play.ready() == list(PODS)
        verdict = await play.verdict()
        assert verdict.healthy, verdict.problems
        assert verdict.version == version
        assert verdict.leader == play.nacos.leader()


async def test_a_standalone_server() -> None:
    async with playing(replicas=1) as play:
        await play.after(90)
        verdict = await play.verdict()
        assert verdict.healthy, verdict.problems
        assert [member.role for member in verdict.members] == ["standalone"]


async def test_a_killed_server_is_started_again_by_its_kubelet() -> None:
    async with playing() as play:
        await play.after(90)
        old = play.nacos.leader()
        play.nacos.kill(old)
        await play.after(3)
        assert old not in await play.ready()
        await play.after(10)
        during = await play.verdict()
        assert during.quorum
        assert during.leader not in ("", old)
        await play.after(120)
        assert await play.ready() == list(PODS)
        assert (await play.verdict()).healthy
        statuses = (await play.pods())[old].status.container_statuses
        assert [status.restart_count for status in statuses] == [1]
        assert statuses[0].last_state is not None
        assert statuses[0].last_state.terminated is not None
        assert statuses[0].last_state.terminated.exit_code == 137


async def test_a_deleted_pod_comes_back_under_its_name_and_a_new_address() -> None:
    async with playing() as play:
        await play.after(90)
        before = await play.address()
        await play.cluster.client.delete(Pod, "nacos-0", "default")
        await play.after(120)
        assert await play.address() != before
        assert (await play.verdict()).healthy


async def test_a_frozen_server_answers_nothing_and_is_restarted_by_its_liveness_probe() -> None:
    async with playing() as play:
        await play.after(90)
        play.nacos.freeze("nacos-1")
        with pytest.raises(NacosError) as caught:
            await play.servers.nodes(await play.address("nacos-1"), identity=IDENTITY, timeout=2)
        assert caught.value.reason == "Timeout"
        await play.after(30)
        assert (await play.pods())["nacos-1"].status.container_statuses[0].restart_count == 1
        await play.after(120)
        assert (await play.verdict()).healthy


async def test_a_thawed_server_answers_what_it_was_asked() -> None:
    async with playing() as play:
        await play.after(90)
        play.nacos.freeze("nacos-1")
        asked = asyncio.create_task(play.servers.nodes(await play.address("nacos-1"), identity=IDENTITY, timeout=60))
        await asyncio.sleep(5)
        assert not asked.done()
        play.nacos.thaw("nacos-1")
        assert len(await asked) == 3


async def test_a_split_network() -> None:
    async with playing() as play:
        await play.after(90)
        old = play.nacos.leader()
        play.nacos.split([old], set(PODS) - {old})
        await play.after(20)
        apart = await play.verdict()
        assert apart.split
        assert any("answers, but is DOWN for" in problem for problem in apart.problems)
        assert await play.ready() == sorted(set(PODS) - {old})
        play.nacos.heal()
        await play.after(20)
        assert (await play.verdict()).healthy


async def test_a_lost_majority_makes_embedded_servers_unready() -> None:
    async with playing() as play:
        await play.after(90)
        play.nacos.kill("nacos-1")
        play.nacos.kill("nacos-2")
        await play.after(20)
        assert await play.ready() == []
        assert (await play.get("/nacos/v1/console/health/readiness")).status == 500


async def test_servers_with_a_database_stay_ready_without_a_majority() -> None:
    env = {"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "db", "MYSQL_SERVICE_DB_NAME": "nacos"}
    databases = SimulatedDatabases()
    databases.add_server("db", 3306, "mysql").add("nacos", "u", "p")
    async with playing(env=env, databases=databases) as play:
        await play.after(90)
        assert (await play.verdict()).healthy
        play.nacos.kill("nacos-1")
        play.nacos.kill("nacos-2")
        await play.after(20)
        assert await play.ready() == ["nacos-0"]
        assert not (await play.verdict()).quorum


@pytest.mark.spec("N-20")
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault.FORBIDDEN, "Forbidden"),
        (Fault.ERROR, "ServerError"),
        (Fault.GARBAGE, "BadAnswer"),
        (Fault.HTML, "BadAnswer"),
        (Fault.NESTED, "BadAnswer"),
        (Fault.OVERSIZED, "BadAnswer"),
        (Fault.RESET, "Unreachable"),
        (Fault.SLOW, "Timeout"),
    ],
)
async def test_bad_answers(fault: Fault, reason: str) -> None:
    async with playing(replicas=1) as play:
        await play.after(90)
        play.nacos.spoil("nacos-0", fault)
        with pytest.raises(NacosError) as caught:
            await play.servers.nodes(await play.address(), identity=IDENTITY, timeout=5)
        assert caught.value.reason == reason
        play.nacos.mend()
        assert (await play.verdict()).healthy


async def test_one_seed_gives_the_same_faults_twice() -> None:
    async def history() -> list[str]:
        async with playing(replicas=1, fault_rate=0.5, seed=7) as play:
            await play.after(90)
            return [(await play.verdict()).problems[0][:40] if not v.healthy else "" for v in [await play.verdict()]]

    assert await history() == await history()


@pytest.mark.parametrize("version", ["2.4.3", "3.0.3"])
async def test_an_identity_is_asked_for(version: str) -> None:
    async with playing(f"nacos/nacos-server:v{version}", replicas=1, env={"NACOS_AUTH_ENABLE": "true"}) as play:
        await play.after(90)
        for identity in (None, Identity(IDENTITY.key, "wrong")):
            with pytest.raises(NacosError) as caught:
                await play.servers.nodes(await play.address(), identity=identity)
            assert caught.value.reason == "Forbidden"
            assert "wrong" not in str(caught.value)
        assert len(await play.servers.nodes(await play.address(), identity=IDENTITY)) == 1


@pytest.mark.parametrize("version", ["2.4.3", "3.0.3"])
async def test_the_first_administrator(version: str) -> None:
    async with playing(f"nacos/nacos-server:v{version}", env={"NACOS_AUTH_ENABLE": "true"}) as play:
        await play.after(90)
        address = await play.address()
        state = "/nacos/v3/admin/core/state" if version.startswith("3.") else "/nacos/v1/console/server/state"
        assert b'"auth_admin_request":"true"' in (await play.get(state)).body
        assert not await play.servers.login(address, username="nacos", password="nacos")
        assert await play.servers.bootstrap_admin(address, password="s3cret")
        assert not await play.servers.bootstrap_admin(address, password="other")
        assert b'"auth_admin_request":"false"' in (await play.get(state)).body
        await asyncio.sleep(16)
        assert not await play.servers.login(address, username="nacos", password="wrong")
        await asyncio.sleep(16)
        assert await play.servers.login(address, username="nacos", password="s3cret")


async def test_servers_before_2_4_have_the_seeded_user() -> None:
    async with playing("nacos/nacos-server:v2.1.1", replicas=1) as play:
        await play.after(90)
        address = await play.address()
        assert await play.servers.login(address, username="nacos", password="nacos")
        assert b"auth_admin_request" not in (await play.get("/nacos/v1/console/server/state")).body
        with pytest.raises(NacosError) as caught:
            await play.servers.bootstrap_admin(address, password="x")
        assert caught.value.reason == "Gone"


@pytest.mark.spec("N-06")
async def test_a_rotated_password_is_accepted_within_15_seconds() -> None:
    env = {"SPRING_DATASOURCE_PLATFORM": "mysql", "MYSQL_SERVICE_HOST": "db", "MYSQL_SERVICE_DB_NAME": "nacos"}
    databases = SimulatedDatabases()
    database = databases.add_server("db", 3306, "mysql").add("nacos", "u", "p")
    database.content.users["nacos"] = (simulated_hash("old"), True)
    async with playing(replicas=1, env=env, databases=databases) as play:
        await play.after(90)
        address = await play.address()
        assert await play.servers.login(address, username="nacos", password="old")
        database.content.users["nacos"] = (simulated_hash("new"), True)
        assert not await play.servers.login(address, username="nacos", password="new")
        assert await play.servers.login(address, username="nacos", password="old")
        await asyncio.sleep(15)
        assert await play.servers.login(address, username="nacos", password="new")
        assert not await play.servers.login(address, username="nacos", password="old")
        databases.servers["db", 3306].down = True
        assert (await play.get("/nacos/v1/console/health/readiness")).status == 500


@pytest.mark.spec("N-15")
async def test_another_image_is_another_server_at_the_next_start() -> None:
    async with playing(replicas=1, env={"NACOS_AUTH_ENABLE": "true"}) as play:
        await play.after(90)
        assert (await play.verdict()).version == "2.4.3"
        await play.cluster.client.delete(StatefulSet, "nacos", "default")
        await play.cluster.client.delete(Pod, "nacos-0", "default")
        await play.cluster.client.create(stateful_set("nacos/nacos-server:v3.0.3", replicas=1))
        await play.after(150)
        assert (await play.verdict()).version == "3.0.3"


@pytest.mark.parametrize("version", ["2.4.3", "3.0.3"])
async def test_a_peer_is_removed_over_http(version: str) -> None:
    async with playing(f"nacos/nacos-server:v{version}", env={"NACOS_AUTH_ENABLE": "true"}) as play:
        await play.after(90)
        address, peer = await play.address(), play.nacos.member("nacos-2").settings.raft_address
        with pytest.raises(NacosError):
            await play.servers.remove_peer(address, peer=peer)
        await play.servers.remove_peer(address, peer=peer, identity=IDENTITY)
        own = (await play.servers.nodes(address, identity=IDENTITY))[0]
        assert len(own.peers) == 2
        assert peer not in own.peers


async def test_other_pods_are_left_alone() -> None:
    async with playing("registry.example/web:1") as play:
        await play.cluster.settle()
        with pytest.raises(LookupError, match="no Nacos runs"):
            play.nacos.kill("nacos-0")


async def test_time_does_not_tick_when_nothing_happens() -> None:
    async with playing() as play:
        await play.after(90)
        loop = asyncio.get_running_loop()
        assert play.nacos.ensemble.due == float("inf")
        before = loop.time()
        await play.cluster.settle()
        assert loop.time() == before
