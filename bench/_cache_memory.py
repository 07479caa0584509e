"""What a cache of many large objects costs in memory, whole and with each option, beside controller-runtime.

Every cache is in a process of its own and counts what that process grows by, from before the list until some seconds
after it. The server is the real one, so that what the server leaves out is what it really leaves out.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from bench._cache_worker import FORMS
from bench._operator import PEERS
from bench._progress import turns
from bench._report import OURS, Bar, Figure, Report
from bench._server import api_server
from bench._workload import each
from konverge.client import Client, load_config

NAMESPACE = "bench"
CONTENT = 15_000
"""Bytes in each Secret: 20 kB as base64."""
LIMIT = 20.0
"""MB that the metadata of 10,000 Secrets may cost."""
_GO = PEERS / "go-controller-runtime" / "bin" / "memory"
PEER = "controller-runtime"


def measure(report: Report, *, objects: int, rounds: int) -> None:
    """Add the figures of all forms to a report."""
    measured: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    commands = {(OURS, form): [sys.executable, "-m", "bench._cache_worker", form, NAMESPACE] for form in FORMS}
    if _GO.exists():
        commands |= {(PEER, form): [str(_GO), form] for form in ("whole", "metadata only")}
    with api_server() as (kubeconfig, described):
        asyncio.run(_fill(kubeconfig, objects))
        for who, form in turns("cache, memory", rounds, commands, " ".join):
            measured[who, form].append(_run(commands[who, form], kubeconfig, objects))
    report.notes.append(f"{objects} Secrets of 20 kB on {described}")
    for metric, unit in (("memory", "MB"), ("peak", "MB"), ("cpu", "s")):
        for (who, form), figures in measured.items():
            name = f"{metric}: {form}" if metric != "cpu" else f"CPU of the list: {form}"
            report.figures.append(Figure.of(name, who, [figure[metric] for figure in figures], unit))
    _judge(report, objects)


def _judge(report: Report, objects: int) -> None:
    whole = report.ours("memory: whole").value
    for form in list(FORMS)[1:]:
        cost = report.ours(f"memory: {form}").value
        report.notes.append(f"{form}: {cost:.1f} MB, {cost / whole:.3f} of the whole cache")
    metadata, allowed = report.ours("memory: metadata only").value, LIMIT * max(objects, 10_000) / 10_000
    if metadata >= allowed:
        report.failures.append(f"metadata of {objects} Secrets: {metadata:.1f} MB, allowed {allowed:g}")
    if _GO.exists():
        report.bars += [Bar("memory: whole", 1.0, PEER), Bar("memory: metadata only", 1.0, PEER)]
    else:
        report.notes.append(f"not built, so not measured: {PEER} (make bench-peers)")


def _run(command: list[str], kubeconfig: Path, objects: int) -> dict[str, float]:
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "BENCH_NS": NAMESPACE}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if ended.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {ended.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(ended.stdout)
    if figures["objects"] != objects:
        raise RuntimeError(f"{' '.join(command)} has {figures['objects']:g} objects instead of {objects}")
    return figures


async def _fill(kubeconfig: Path, objects: int) -> None:
    """Content that no compression makes smaller."""
    rng = random.Random(17)
    async with Client.connect(load_config(kubeconfig=kubeconfig)) as client:
        await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})

        async def create(number: int) -> None:
            metadata = {"name": f"s-{number:05d}", "namespace": NAMESPACE, "labels": {"app": "bench"}}
            data = {"payload": base64.b64encode(rng.randbytes(CONTENT)).decode()}
            await client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

        await each(range(objects), 32, create)
