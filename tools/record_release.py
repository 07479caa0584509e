"""Record what the operators of a release leave in a cluster: `python -m tools.record_release TREE`.

TREE is a checkout of that release (`git worktree add /tmp/first COMMIT`). Its operators run in its own simulated
cluster, on virtual time, until the samples and the objects below are as declared. Then every object of the API server
is written down as it is stored, with uids, revisions, times, status and managedFields, one in a line; the tests of
upgrades (tests/operators/first_release) start today's operators on them.

So this file imports of konverge only what the release has as well. Not recorded: Events, Leases, and what an API
server makes for itself when it starts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Obj = dict[str, Any]

FOLDER = Path(__file__).parents[1] / "tests" / "operators" / "first_release" / "recorded"
SPACE = "default"
READY = frozenset(("Running", "Stopped", "Succeeded"))
"""The phases in which an object of ours is as declared."""
LONG_ENOUGH = 1800.0
"""Virtual seconds until everything is at rest."""
LEFT_OUT = (
    "/events",
    "events.k8s.io/",
    "coordination.k8s.io/",
    "flowcontrol.apiserver.k8s.io/",
    "rbac.authorization.k8s.io/",
    "apiregistration.k8s.io/",
    "scheduling.k8s.io/",
)
"""How the names of tables begin that are not recorded."""
SCRIPT = "sim.konverge.dev/behaviour"
OURS = ("nacos.io/", "vm.novasphere.dev/", "apps.konverge.dev/")


def nacos(name: str, **spec: Any) -> Obj:
    return {"apiVersion": "nacos.io/v1alpha1", "kind": "Nacos", "metadata": _meta(name), "spec": spec}


def wukong(name: str, **spec: Any) -> Obj:
    return {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "Wukong", "metadata": _meta(name), "spec": spec}


def snapshot(name: str, of: str) -> Obj:
    wanted = {"wukongName": of}
    return {"apiVersion": "vm.novasphere.dev/v1alpha1", "kind": "WukongSnapshot", "metadata": _meta(name),
            "spec": wanted}  # fmt: skip


def webapp(name: str, **spec: Any) -> Obj:
    return {"apiVersion": "apps.konverge.dev/v1", "kind": "WebApp", "metadata": _meta(name), "spec": spec}


def _meta(name: str) -> Obj:
    return {"name": name, "namespace": SPACE, "labels": {"team": "a"}, "annotations": {"example.com/note": "of a user"}}


OBJECTS: dict[str, list[Obj]] = {
    "nacos": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta("own-lines"), "data": {"user.properties": "x=1\n"}},
        nacos(
            "embedded",
            type="cluster",
            image="nacos/nacos-server:v3.0.3",
            replicas=3,
            database={"type": "embedded"},
            volume={"enabled": True, "requests": {"storage": "1Gi"}},
            certification={"enabled": True},
            userConfigRef={"name": "own-lines"},
            ingress={"enabled": True, "host": "nacos.example.com"},
            metrics={"enabled": True},
            env=[{"name": "JVM_XMS", "value": "512m"}],
            tolerations=[{"operator": "Exists"}],
            k8sWrapper={"PodSpec": {"terminationGracePeriodSeconds": 20}},
        ),
        nacos(
            "oldest",
            type="standalone",
            image="nacos/nacos-server:v2.0.4",
            replicas=1,
            config="a=1\n",
            service={"type": "NodePort"},
            database={
                "type": "mysql",
                "mysqlHost": "mysql.default.svc",
                "mysqlDb": "nacos",
                "mysqlUser": "nacos",
                "mysqlPassword": "change-me",
            },
        ),
    ],
    "wukong": [
        wukong(
            "storage",
            cpu=2,
            memory="2Gi",
            disks=[
                {"name": "system", "size": "10Gi", "image": "https://example.com/noble.img", "boot": True},
                {"name": "data", "size": "5Gi", "deletePolicy": "Retain"},
                {"name": "logs", "size": "1Gi", "bus": "scsi"},
            ],
            networks=[
                {"name": "default"},
                {"name": "lan", "type": "bridge", "bridgeName": "br-lan", "vlanId": 7, "ipConfig": {"mode": "dhcp"}},
            ],
            cloudInitUser={"name": "admin", "password": "change-me"},
            startStrategy={"runStrategy": "Always"},
            expose=[{"name": "ssh", "port": 22}],
        ),
        snapshot("storage-first", "storage"),
        snapshot("storage-second", "storage"),
        wukong(
            "movable",
            cpu=1,
            memory="1Gi",
            disks=[{"name": "system", "size": "1Gi", "accessModes": ["ReadWriteMany"]}],
        ),
        wukong("off", cpu=1, memory="1Gi", disks=[{"name": "system", "size": "1Gi"}], powerState="Stopped"),
    ],
    "webapp": [
        webapp("none", image="nginx:1.27", replicas=0),
        webapp("shop", image="shop:4", replicas=2, port=8080, env={"MODE": "production", "PORT": "8080"}),
    ],
}
"""What is made beside the samples, by operator."""

LATER: dict[str, list[tuple[str, str, Obj]]] = {
    "wukong": [("wukongs.vm.novasphere.dev", "storage", {"spec": {"restoreFromSnapshot": "storage-first"}})],
    "webapp": [("webapps.apps.konverge.dev", "shop", {"spec": {"replicas": 3}})],
}
"""What is changed when all of it runs: resource, name and patch."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what the operators of a release leave in a cluster.")
    parser.add_argument("tree", type=Path, help="a checkout of the release")
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder for the records (%(default)s)")
    given = parser.parse_args()
    if not (given.tree / "src" / "konverge" / "operators").is_dir():
        parser.error(f"{given.tree} is no checkout of konverge: src/konverge/operators is missing")
    given.to.mkdir(parents=True, exist_ok=True)
    for name in OBJECTS:
        environment = {**os.environ, "PYTHONPATH": str((given.tree / "src").resolve())}
        command = [sys.executable, "-P", __file__, name]
        recorded = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        path = given.to / f"{name}.jsonl"
        path.write_text(recorded.stdout)
        print(f"{path}: {recorded.stdout.count(chr(10))} lines, {len(recorded.stdout) // 1024} KiB")


# ---------------------------------------------------------------- with the konverge of the release


async def record(name: str) -> list[Obj]:
    """The head, and every object."""
    from konverge.client import MergePatch
    from konverge.operators.catalog import find
    from konverge.runtime import Manager
    from konverge.sim.cluster import Cluster

    operator = find(name)
    async with Cluster() as cluster, simulated(cluster, name) as (controllers, databases):
        client = cluster.client
        for definition in operator.definitions():
            await client.create(definition)
        await cluster.settle()
        manager = Manager(client, name=operator.identity)
        for controller in controllers():
            manager.add(controller)
        async with manager.running():
            for item in [*operator.sample_objects(), *OBJECTS[name]]:
                await client.create(item, field_manager="kubectl-create")
            await _at_rest(cluster)
            for resource, changed, patch in LATER.get(name, []):
                await client.patch(resource, changed, MergePatch(patch), SPACE, field_manager="kubectl-patch")
            await _at_rest(cluster)
        store = cluster.server.store
        head = {"operator": name, "revision": store.revision, "time": cluster.clock.now(), "databases": databases()}
        return [head, *({"table": table, "object": obj} for table, obj in _objects(store))]


def _objects(store: Any) -> list[tuple[str, Obj]]:
    result = []
    for table in sorted(store.tables):
        if not table.startswith(LEFT_OUT):
            result += [(table, _adapted(record.decode())) for _, record in sorted(store.tables[table].records.items())]
    return result


def _adapted(obj: Obj) -> Obj:
    """What a script for the simulation says, in today's words: a container that only says how it stops ends by now."""
    annotations = obj["metadata"].get("annotations") or {}
    script = annotations.get(SCRIPT, "")
    if script.startswith("stop "):
        annotations[SCRIPT] = f"runs, {script}"
    return obj


async def _at_rest(cluster: Any) -> None:
    await cluster.clock.advance(LONG_ENOUGH)
    for table, obj in _objects(cluster.server.store):
        phase = obj.get("status", {}).get("phase")
        if table.startswith(OURS) and phase not in READY:
            raise SystemExit(f"{table} {obj['metadata']['name']} is {phase}: {json.dumps(obj.get('status'))}")


@asynccontextmanager
async def simulated(cluster: Any, name: str) -> AsyncIterator[tuple[Callable[[], list[Any]], Callable[[], list[Obj]]]]:
    """What the operator talks to. Its controllers, and what is in its databases."""
    if name == "nacos":
        from konverge.operators.nacos.operator import controllers
        from konverge.operators.nacos.server import HttpNacosServers
        from konverge.sim.databases import SimulatedDatabases
        from konverge.sim.nacos import QUICK, SimulatedNacos

        databases = SimulatedDatabases()
        databases.add_server("mysql.default.svc", 3306, "mysql").add("nacos", "nacos", "change-me")
        databases.add_server("postgres.default.svc", 5432, "postgresql").add("nacos", "nacos", "change-me")
        async with SimulatedNacos(cluster, databases=databases, timings=QUICK) as servers:
            yield lambda: controllers(databases, HttpNacosServers(servers.connect)), lambda: _contents(databases)
    elif name == "wukong":
        from konverge.operators.wukong import operator
        from konverge.sim.kubevirt import QUICK as FAST
        from konverge.sim.kubevirt import SimulatedKubeVirt

        async with SimulatedKubeVirt(cluster, timings=FAST):
            yield operator.controllers, list
    else:
        from konverge.operators.catalog import find

        yield find(name).controllers, list


def _contents(databases: Any) -> list[Obj]:
    """Tables and users; passwords are those of the samples."""
    return [
        {
            "host": host,
            "port": port,
            "engine": server.engine,
            "tables": {table: sorted(columns) for table, columns in sorted(content.tables.items())},
            "version": content.version,
            "users": content.users,
            "admins": sorted(content.admins),
        }
        for (host, port), server in databases.servers.items()
        for content in [database.content for database in server.databases.values()]
    ]


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in OBJECTS:
        from konverge.sim import run

        for line in run(record(sys.argv[1])):
            print(json.dumps(line, separators=(",", ":"), sort_keys=True))
    else:
        main()
