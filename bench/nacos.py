"""The Nacos operator with many clusters: what it costs while nothing happens, and that it writes nothing meanwhile.

Clusters of three servers, on simulated nodes in virtual time; every server is asked for its members about twice a
minute, through the real HTTP client and judge, by answers of the size of real ones. Counted is CPU time of this process
less what the cluster uses without the operator; sockets and kernel are not in it. Memory is what a new process of the
operator adds when all clusters run.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bench._report import OURS, Figure, Report
from konverge.objects.kinds.core_v1 import Pod
from konverge.operators.nacos.operator import Report as Round
from konverge.operators.nacos.operator import controllers
from konverge.operators.nacos.resource import Nacos, definition
from konverge.operators.nacos.server import HttpNacosServers
from konverge.runtime import Manager
from konverge.sim import run as simulate
from konverge.sim.cluster import Cluster
from konverge.sim.databases import SimulatedDatabases
from konverge.wire.message import Headers, Request, Response

PODS_OF_A_NODE = 100
MINUTES = 4
_GROUPS = ("naming_persistent_service", "naming_persistent_service_v2", "naming_service_metadata", "nacos_config")
_JSON = Headers([(b"content-type", b"application/json")])


def run(*, quick: bool = False) -> Report:
    count = 50 if quick else 500
    report = Report("nacos", f"{count} Nacos clusters of 3 servers on one operator, {MINUTES} quiet minutes")
    found = simulate(_many(count))
    units = {"CPU": "ms/s", "memory": "MB", "start": "s", "rounds": "/s", "questions": "/s"}
    report.figures += [Figure.of(metric, OURS, [found[metric]], unit) for metric, unit in units.items()]
    report.notes.append(
        "CPU: milliseconds of CPU time for each second that passes; start: CPU time until all are known"
    )
    if found["writes"]:
        report.failures.append(f"{found['writes']:g} writes while nothing happened")
    return report


async def _many(count: int) -> Mapping[str, float]:
    answers = _Answers()
    async with Cluster(nodes=-(-count * 3 // PODS_OF_A_NODE), events=False) as cluster:
        await cluster.client.create(definition())
        await cluster.settle()
        async with _operator(cluster, answers, []).running():
            for number in range(count):
                await cluster.client.create(_nacos(number), resource=Nacos.resource)
            await _until_running(cluster, answers)
        alone = await _cost_of_waiting(cluster)
        gc.collect()
        before, began = _resident(), time.process_time()
        rounds: list[Round] = []
        async with _operator(cluster, answers, rounds).running():
            await cluster.clock.advance(5.0)
            started = time.process_time() - began
            await cluster.clock.advance(120.0)
            answers.asked, revision = 0, _revision(cluster)
            rounds.clear()
            used = await _cost_of_waiting(cluster)
            seconds = MINUTES * 60
            return {
                "CPU": (used - alone) * 1e3 / seconds,
                "memory": (_resident() - before) / 2**20,
                "start": started,
                "rounds": len(rounds) / seconds,
                "questions": answers.asked / seconds,
                "writes": float(_revision(cluster) - revision),
            }


def _operator(cluster: Cluster, answers: _Answers, rounds: list[Round]) -> Manager:
    manager = Manager(cluster.client, name="nacos-operator", check_permissions=False)
    for controller in controllers(SimulatedDatabases(), HttpNacosServers(answers.connect), told=rounds.append):
        manager.add(controller)
    return manager


def _nacos(number: int) -> dict[str, Any]:
    spec = {"type": "cluster", "replicas": 3, "image": "nacos/nacos-server:v2.4.3"}
    meta = {"name": f"nacos-{number}", "namespace": "default"}
    return {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": meta, "spec": spec}


async def _until_running(cluster: Cluster, answers: _Answers) -> None:
    while True:
        await cluster.clock.advance(30.0)
        answers.learn((await cluster.client.list(Pod, "default")).items)
        phases = {one.status.phase for one in await cluster.client.list(Nacos, "default")}
        if phases == {"Running"}:
            await cluster.clock.advance(120.0)
            return


async def _cost_of_waiting(cluster: Cluster) -> float:
    began = time.process_time()
    await cluster.clock.advance(MINUTES * 60.0)
    return time.process_time() - began


def _revision(cluster: Cluster) -> int:
    """Of what the operator writes: the last change of any of it."""
    ours = ("nacos.io/nacos", "apps/statefulsets", "/services", "/configmaps", "/secrets", "/pods", "/events")
    tables = cluster.server.store.tables
    return sum(tables[name].revision for name in ours if name in tables)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class _Answers:
    """Servers that say the same for ever, by address."""

    def __init__(self) -> None:
        self.asked = 0
        self._bodies: dict[str, bytes] = {}

    def learn(self, pods: list[Pod]) -> None:
        for pod in pods:
            if pod.status.pod_ip and pod.status.pod_ip not in self._bodies:
                env = {one.name: one.value or "" for one in pod.spec.containers[0].env}
                members = [_member(address) for address in env["NACOS_SERVERS"].split()]
                body = {"code": 200, "message": None, "data": members}
                self._bodies[pod.status.pod_ip] = msgspec.json.encode(body)

    def connect(self, address: str, port: int) -> _Answer:
        return _Answer(self, address)

    def body(self, address: str) -> bytes | None:
        self.asked += 1
        return self._bodies.get(address)


class _Answer:
    def __init__(self, answers: _Answers, address: str) -> None:
        self._answers = answers
        self._address = address

    async def send(self, request: Request) -> Response:
        body = self._answers.body(self._address)
        return Response(200, _JSON, body) if body is not None else Response(503, _JSON, b"{}")

    async def aclose(self) -> None:
        """Nothing is open."""


def _member(address: str) -> dict[str, Any]:
    """One entry, as 2.4.3 has it."""
    host = address.partition(":")[0]
    pod, _, rest = host.partition(".")
    peers = [f"{pod.rpartition('-')[0]}-{number}.{rest}:7848" for number in range(3)]
    groups = {name: {"leader": peers[0], "raftGroupMember": peers, "term": 1} for name in _GROUPS}
    extend = {"lastRefreshTime": 1794703662234, "raftPort": "7848", "version": "2.4.3"}
    return {
        "ip": host,
        "port": 8848,
        "state": "UP",
        "address": address,
        "failAccessCnt": 0,
        "extendInfo": {**extend, "raftMetaData": {"metaDataMap": groups}},
        "abilities": {"remoteAbility": {"supportRemoteConnection": True}},
    }
