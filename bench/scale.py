"""Our operators at the size of a company: 500 Nacos clusters, and 2,000 machines, each on one operator.

They are brought up in a simulated Kubernetes (with a simulated KubeVirt and CDI), in virtual time and in waves; of the
machines those of one namespace, which are copied to the others. Their objects are then put into an API server of their
own, and a fresh operator in a process of its own finds them there: a restart. Of that process the time until all is
known to be well, the writes, and then CPU time and memory at rest are measured.
"""

from __future__ import annotations

import asyncio
import functools
import json
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bench import nacos
from bench._machines import Cost
from bench._progress import say
from bench._report import OURS, Figure, Report
from konverge.apiserver import ApiServer
from konverge.client import Client, Static
from konverge.objects.kinds.storage_v1 import StorageClass
from konverge.objects.meta import ObjectMeta
from konverge.operators.wukong.operator import OPERATOR, controllers
from konverge.operators.wukong.options import Options
from konverge.operators.wukong.resource import AnyWukong, Wukong
from konverge.runtime import Manager
from konverge.sim import run as simulate
from konverge.sim.cluster import Cluster
from konverge.sim.kubevirt import PARTS, QUICK, SimulatedKubeVirt
from konverge.sim.kubevirt.crds import definitions

CLUSTERS, MACHINES = 500, 2000
SPACES = 20
"""Namespaces of the machines. Bringing up all would take a quarter of an hour of CPU time, and measures nothing."""
MACHINES_OF_A_NODE = 50
WAVE = 20
SECONDS = 120.0
LIMIT = 900.0
SPACE = "default"
MOST_CPU = 5.0
"""Per cent of a core, at rest."""
MOST_MEMORY = 150.0
"""Megabytes."""
LONGEST_START = 60.0
"""Seconds from the start of an operator until all is known to be well."""
OURS_TO_WRITE = (
    "vm.novasphere.dev/wukongs",
    "kubevirt.io/virtualmachines",
    "cdi.kubevirt.io/datavolumes",
    "k8s.cni.cncf.io/network-attachment-definitions",
    "/persistentvolumeclaims",
    "/secrets",
    "/services",
)
SEEN = (*OURS_TO_WRITE, "kubevirt.io/virtualmachineinstances", "storage.k8s.io/storageclasses")
Tables = dict[str, list[dict[str, Any]]]
UID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


def run(*, quick: bool = False) -> Report:
    clusters, machines = (10, 40) if quick else (CLUSTERS, MACHINES)
    report = Report(
        "scale", f"{clusters} Nacos clusters, {machines} machines, {SECONDS:g} quiet seconds after a restart"
    )
    measured = nacos.measure(clusters)
    cost = measured.cost
    _note(report, "Nacos", cpu=cost.cpu / nacos.SECONDS, memory=cost.resident, ready=cost.ready, writes=measured.writes)
    began = time.process_time()
    objects = in_all_spaces(simulate(_brought_up(machines // SPACES)))
    report.notes.append(f"bring-up of the machines with Kubernetes: {time.process_time() - began:.0f} s of CPU time")
    of_machines, writes = asyncio.run(_measured(objects, machines))
    rest = of_machines.cpu / SECONDS
    _note(report, "machines", cpu=rest, memory=of_machines.resident, ready=of_machines.ready, writes=writes)
    return report


def _note(report: Report, what: str, *, cpu: float, memory: int, ready: float, writes: int) -> None:
    """The figures of one operator, and the promises that it did not keep."""
    figures = {
        "CPU at rest": (cpu * 100, "%", MOST_CPU),
        "memory": (memory / 2**20, "MB", MOST_MEMORY),
        "restart": (ready, "s", LONGEST_START),
        "writes": (float(writes), "", 0.0),
    }
    for metric, (value, unit, most) in figures.items():
        report.figures.append(Figure.of(f"{what}: {metric}", OURS, [value], unit))
        if value > most:
            report.failures.append(f"{what}: {metric} is {value:.1f} {unit}, and may be {most:g}".replace("  ", " "))


# ------------------------------------------------------------------ in virtual time


async def _brought_up(count: int) -> Tables:
    """All objects that the operator, KubeVirt and Kubernetes create for so many machines."""
    nodes = -(-count // MACHINES_OF_A_NODE) + 1
    async with Cluster(nodes=nodes, events=False) as cluster, SimulatedKubeVirt(cluster, timings=QUICK):
        for definition in OPERATOR.definitions():
            await cluster.client.create(definition)
        await cluster.client.create(_storage_class())
        await cluster.settle()
        manager = Manager(cluster.client, name=OPERATOR.identity, check_permissions=False)
        for controller in controllers(Options()):
            manager.add(controller)
        async with manager.running():
            for first in range(0, count, WAVE):
                wave = range(first, min(first + WAVE, count))
                for number in wave:
                    await cluster.client.create(_machine(number), resource=Wukong.resource)
                await _until_running(cluster)
                say(f"scale: {wave.stop} of {count} machines run")
            await cluster.clock.advance(120.0)
        tables = cluster.server.store.tables
        return {name: [record.decode() for record in tables[name].records.values()] for name in SEEN if name in tables}


def _storage_class() -> StorageClass:
    return StorageClass(
        metadata=ObjectMeta(name="fast"),
        provisioner="konverge.dev/volumes",
        volume_binding_mode="Immediate",
        allow_volume_expansion=True,
    )


def _machine(number: int) -> dict[str, Any]:
    """With an image and a data disk, a second network and a user: what a usual machine has.

    Without addresses of its own they would follow from its uid, which copies do not share.
    """
    address = f"02:00:00:00:{number // 256:02x}:{number % 256:02x}"
    other = f"02:00:00:01:{number // 256:02x}:{number % 256:02x}"
    spec = {
        "cpu": 1,
        "memory": "64Mi",
        "disks": [
            {"name": "system", "size": "1Gi", "storageClassName": "fast", "image": "https://example.com/noble.img"},
            {"name": "data", "size": "1Gi", "storageClassName": "fast"},
        ],
        "networks": [
            {"name": "default", "macAddress": address},
            {"name": "lan", "type": "bridge", "bridgeName": "br-lan", "macAddress": other},
        ],
        "cloudInitUser": {"name": "ubuntu", "passwordHash": "$6$x$y"},
    }
    meta = {"name": f"m-{number}", "namespace": SPACE}
    return {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "metadata": meta, "spec": spec}


async def _until_running(cluster: Cluster) -> None:
    while True:
        await cluster.clock.advance(10.0)
        phases = {wukong.status.phase for wukong in await cluster.client.list(AnyWukong, SPACE)}
        if phases == {"Running"}:
            return


def in_all_spaces(objects: Tables) -> Tables:
    """The objects of one namespace in `SPACES`, each with a uid of its own; those without a namespace once."""
    return {
        name: [made for obj in stored for made in ([obj, *_copies(obj)] if "namespace" in obj["metadata"] else [obj])]
        for name, stored in objects.items()
    }


def _copies(obj: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text = json.dumps(obj)
    for number in range(1, SPACES):
        space = f"{SPACE}-{number}"
        named = text.replace(f"--namespace {SPACE}", f"--namespace {space}")  # in commands that the status tells
        made = json.loads(UID.sub(functools.partial(_uid_in, space), named))
        made["metadata"]["namespace"] = space
        yield made


def _uid_in(space: str, found: re.Match[str]) -> str:
    return str(uuid.uuid5(uuid.UUID(found[0]), space))


# ------------------------------------------------------------------ in real time


async def _measured(objects: Tables, count: int) -> tuple[Cost, int]:
    """What a process of the operator costs, and how often it has written anything since its start."""
    with tempfile.TemporaryDirectory(prefix="konverge-bench-") as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        async with ApiServer() as server, Client(server.transport, credentials=Static.bearer(server.token)) as client:
            for definition in [*OPERATOR.definitions(), *(item for part in PARTS for item in definitions(part))]:
                await client.create(definition)
            for name, stored in objects.items():
                for obj in stored:
                    server.store.put(server.store.table(name), obj, expected=None)
            url = await server.listen("127.0.0.1", 0)
            kubeconfig.write_text(yaml.safe_dump(server.kubeconfig(url)))
            say(f"scale: the operator starts with {count} machines, and is watched for {SECONDS:g} s")
            before = _revision(server)
            output = await _output("-m", "bench._machines", str(kubeconfig), str(count), str(SECONDS))
            return Cost(**json.loads(output)), _revision(server) - before


def _revision(server: ApiServer) -> int:
    return sum(server.store.table(name).revision for name in OURS_TO_WRITE)


async def _output(*arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(LIMIT):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError("the operator ended: see its error above")
    return output
