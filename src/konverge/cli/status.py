"""`konverge status`: the clusters that `konverge up` started on this machine, and how they are."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from konverge.cli.arguments import add_output, command
from konverge.cli.cluster_names import cluster_name
from konverge.cli.exit import FAILED

if TYPE_CHECKING:
    from konverge.cli.cluster_folders import Record

ANSWERS_WITHIN = 3.0
COLUMNS = ("name", "state", "url", "version", "age", "nodes", "objects", "operators", "memory", "data")


def add(commands: Any) -> None:
    about = "list the clusters that `konverge up` started, and how they are"
    parser = command(commands, "status", about, "konverge status", "konverge status dev --output json")
    parser.add_argument("names", nargs="*", type=cluster_name, metavar="NAME", help="names of clusters (all)")
    add_output(parser, "text", "json")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Exit code 1 if a cluster that was asked for by name does not run."""
    import asyncio

    from konverge.cli.cluster_folders import ClusterFolder, known_clusters

    named = [ClusterFolder(name) for name in dict.fromkeys(arguments.names)]
    records = [(folder.name, folder.record()) for folder in named or known_clusters()]
    running = {name for name, record in records if record is not None and ClusterFolder(name).running}
    known = [(record, name in running) for name, record in records if record is not None]
    clusters = asyncio.run(_look(known))
    if named:
        clusters += [{"name": name, "state": "not there"} for name, record in records if record is None]
    if arguments.output == "json":
        print(json.dumps(clusters, indent=1))
    elif clusters:
        print(_table(clusters))
    else:
        print("no cluster runs; `konverge up --detach` starts one")
    return FAILED if named and any(cluster["state"] != "running" for cluster in clusters) else 0


async def _look(known: list[tuple[Record, bool]]) -> list[dict[str, Any]]:
    import asyncio

    return list(await asyncio.gather(*(_facts(record, running) for record, running in known)))


async def _facts(record: Record, running: bool) -> dict[str, Any]:
    """What is known of a cluster, and what it answers."""
    from konverge.cli.local_processes import resident_bytes
    from konverge.objects import times

    facts = {
        "name": record.name,
        "state": _state(record, running),
        "url": record.url,
        "version": "",
        "since": record.since,
        "seconds": round(times.seconds_since(record.since)),
        "nodes": None,
        "objects": None,
        "operators": list(record.operators),
        "memory": resident_bytes(record.pid) if record.process_seen else 0,
        "data": record.data_dir,
        "pid": record.pid,
        "kubeconfig": record.kubeconfig,
        "merged": record.merged,
        "console": record.console,
        "metrics": record.metrics,
        "log": record.log,
        "arguments": list(record.arguments),
    }
    return {**facts, **await _answers(record)} if facts["state"] == "running" else facts


def _state(record: Record, running: bool) -> str:
    if not running:
        return "crashed"
    return "running" if record.url else "starting"


async def _answers(record: Record) -> dict[str, Any]:
    import asyncio

    from konverge.client import Client, ClientError, Kubeconfig
    from konverge.objects.kinds.core_v1 import Node
    from konverge.wire.errors import WireError

    try:
        async with (
            asyncio.timeout(ANSWERS_WITHIN),
            Client.connect(Kubeconfig.read(record.kubeconfig).config()) as client,
        ):
            version = (await client.version())["gitVersion"]
            nodes = len(await client.list(Node))
            return {"version": version, "nodes": nodes, "objects": await _objects(client)}
    except (ClientError, WireError, TimeoutError, OSError):
        return {"state": "not answering"}


async def _objects(client: Any) -> int:
    """How many objects the server stores, by its metrics."""
    from konverge.client.call import Call

    page = (await client.caller.call(Call("get", None, path="/metrics"))).body.decode()
    lines = [line for line in page.splitlines() if line.startswith("apiserver_storage_objects")]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines)


def _table(clusters: list[dict[str, Any]]) -> str:
    from konverge.cli.terminal import table

    rows = [tuple(_cell(cluster, column) for column in COLUMNS) for cluster in clusters]
    used = [index for index in range(len(COLUMNS)) if any(row[index] for row in rows)]
    lines = [tuple(row[index] for index in used) for row in [tuple(map(str.upper, COLUMNS)), *rows]]
    return "\n".join(table(lines))


def _cell(cluster: dict[str, Any], column: str) -> str:
    from konverge.apiserver.table.cells import duration

    if column == "age":
        return duration(cluster["seconds"]) if "seconds" in cluster else ""
    value = cluster.get(column)
    if column == "memory":
        return f"{value / (1 << 20):.0f} MiB" if value else ""
    if isinstance(value, list):
        return ",".join(value)
    return "" if value is None else str(value)
