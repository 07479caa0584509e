"""The Nacos operator with many clusters: what it costs while nothing happens, and that it writes nothing meanwhile.

Clusters of three servers are brought up by the operator in a simulated Kubernetes, in virtual time and in waves. Their
objects are then put into an API server of their own, and a fresh operator in a process of its own finds them there: of
that process CPU time and memory are measured, while every server is asked for its members about twice a minute.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from bench._nacos import KUBECONFIG, SERVERS, SPACE, Answers, Cost, Reconciles, operator, servers_of
from bench._progress import say
from bench._report import OURS, Figure, Report
from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects import crd
from konverge.operators.nacos.resource import Nacos
from konverge.operators.nacos.steps import Options
from konverge.sim import run as simulate
from konverge.sim.cluster import Cluster

PODS_OF_A_NODE = 100
WAVE = 50
SECONDS = 120.0
LIMIT = 600.0
OURS_TO_WRITE = (
    "nacos.io/nacos",
    "apps/statefulsets",
    "policy/poddisruptionbudgets",
    "/services",
    "/configmaps",
    "/secrets",
    "/pods",
)
Tables = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Measured:
    """What an operator with many clusters costs, and how often it wrote."""

    cost: Cost
    writes_at_rest: int
    writes: int
    """With those of its start."""
    bring_up: float
    """CPU seconds of operator and Kubernetes, for all clusters."""


def measure(count: int) -> Measured:
    began = time.process_time()
    objects = simulate(_brought_up(count))
    bring_up = time.process_time() - began
    cost, at_rest, writes = asyncio.run(_measured(objects, count))
    return Measured(cost, at_rest, writes, bring_up)


def run(*, quick: bool = False) -> Report:
    count = 50 if quick else 500
    report = Report("nacos", f"{count} Nacos clusters of 3 servers on one operator, {SECONDS:g} quiet seconds")
    measured = measure(count)
    cost = measured.cost
    values = {
        "CPU": (cost.cpu * 1e3 / SECONDS, "ms/s"),
        "memory": (cost.resident / 2**20, "MB"),
        "memory without clusters": (cost.empty / 2**20, "MB"),
        "start": (cost.start, "s"),
        "rounds": (cost.reconciles / SECONDS, "/s"),
        "questions": (cost.questions / SECONDS, "/s"),
        "questions at once": (float(cost.at_once), ""),
        "bring-up with Kubernetes": (measured.bring_up, "s"),
    }
    report.figures += [Figure.of(metric, OURS, [value], unit) for metric, (value, unit) in values.items()]
    report.notes.append("CPU: milliseconds of CPU time for each second that passes; start and bring-up: CPU time")
    _judge(report, cost, measured.writes_at_rest)
    return report


def _judge(report: Report, cost: Cost, writes: int) -> None:
    if writes:
        report.failures.append(f"{writes} writes while nothing happened")
    if cost.at_once > Options().concurrency:
        report.failures.append(f"{cost.at_once} questions under way at a time")


# ------------------------------------------------------------------ in virtual time


async def _brought_up(count: int) -> Tables:
    """All objects that the operator and Kubernetes create for so many clusters."""
    answers = Answers()
    async with Cluster(nodes=-(-count * 3 // PODS_OF_A_NODE), events=False) as cluster:
        await cluster.client.create(crd(Nacos))
        await cluster.settle()
        async with operator(cluster.client, answers, Reconciles(count)).running():
            for first in range(0, count, WAVE):
                wave = range(first, min(first + WAVE, count))
                for number in wave:
                    await cluster.client.create(_nacos(number), resource=Nacos.resource)
                await _until_running(cluster, answers)
                say(f"nacos: {wave.stop} of {count} clusters run")
            await cluster.clock.advance(120.0)
        tables = cluster.server.store.tables
        return {
            name: [record.decode() for record in tables[name].records.values()]
            for name in OURS_TO_WRITE
            if name in tables
        }


def _nacos(number: int) -> dict[str, Any]:
    spec = {"type": "cluster", "replicas": 3, "image": "nacos/nacos-server:v2.4.3"}
    meta = {"name": f"nacos-{number}", "namespace": SPACE}
    return {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": meta, "spec": spec}


async def _until_running(cluster: Cluster, answers: Answers) -> None:
    while True:
        await cluster.clock.advance(10.0)
        answers.learn(servers_of(cluster.server.objects.scan("", "pods", SPACE)))
        phases = {nacos.status.phase for nacos in await cluster.client.list(Nacos, SPACE)}
        if phases == {"Running"}:
            return


# ------------------------------------------------------------------ in real time


async def _measured(objects: Tables, count: int) -> tuple[Cost, int, int]:
    """What a process of the operator costs, and how often anything was written: in its steady state, and at all."""
    with tempfile.TemporaryDirectory(prefix="konverge-bench-") as folder:
        async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
            await client.create(crd(Nacos))
            for name, stored in objects.items():
                for obj in stored:
                    server.store.put(server.store.table(name), obj, expected=None)
            url = await server.listen("127.0.0.1", 0)
            (Path(folder) / KUBECONFIG).write_text(yaml.safe_dump(server.kubeconfig(url)))
            (Path(folder) / SERVERS).write_text(json.dumps(servers_of(objects["/pods"])))
            say(f"nacos: the operator starts with {count} clusters, and is watched for {SECONDS:g} s")
            return await _watched(server, folder, count)


async def _watched(server: ApiServer, folder: str, count: int) -> tuple[Cost, int, int]:
    command = (sys.executable, "-m", "bench._nacos", folder, str(count), str(SECONDS))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    revisions: list[int] = []
    try:
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            noting = group.create_task(_note(server, revisions), name="what is written")
            output, _ = await process.communicate()
            noting.cancel()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError("the operator ended: see its error above")
    steady = revisions[-int(SECONDS) :]
    return Cost(**json.loads(output)), steady[-1] - steady[0], steady[-1] - revisions[0]


async def _note(server: ApiServer, revisions: list[int]) -> None:
    """The last revision of all that the operator writes, second by second."""
    while True:
        revisions.append(sum(server.store.table(name).revision for name in OURS_TO_WRITE))
        await asyncio.sleep(1.0)
