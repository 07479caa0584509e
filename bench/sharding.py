"""Several replicas of one operator at work at once: what each costs, how long keys take to move, and whether each
object is worked on once.

Processes on one machine against the embedded server. For each number of replicas every object is changed once, and each
change is answered by one stamp. Then one replica ends in order, and one is killed: the time until the others have its
keys is measured, and every object is changed again.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench._progress import say
from bench._report import OURS, Figure, Report
from bench._sharded import GROUP, STAMP
from konverge.client import Client, MergePatch
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap, Namespace
from konverge.objects.meta import ObjectMeta
from konverge.runtime.sharding.assignment import ANNOTATION, Assignment

OBJECTS = 10_000
NAMESPACES = 100
AT_ONCE = 32
LIMIT = 600.0
TICKS = os.sysconf("SC_CLK_TCK")


class Replicas:
    """The processes of the operator."""

    def __init__(self, kubeconfig: Path, by: str) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KONVERGE_LOG_LEVEL": "error"}
        self._by = by
        self._started = 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._started += 1
        command = [sys.executable, "-m", "bench._sharded", "replica", f"r{self._started}", self._by]
        self.running.append(subprocess.Popen(command, env=self._environment))

    def end(self, number: signal.Signals) -> subprocess.Popen[bytes]:
        process = self.running.pop()
        process.send_signal(number)
        return process

    def cpu(self) -> list[float]:
        fields = [Path(f"/proc/{p.pid}/stat").read_text().rpartition(")")[2].split() for p in self.running]
        return [(int(f[11]) + int(f[12])) / TICKS for f in fields]

    def memory(self) -> list[float]:
        statuses = [Path(f"/proc/{p.pid}/status").read_text() for p in self.running]
        return [int(text.split("VmRSS:")[1].split()[0]) / 1024 for text in statuses]

    def stop(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait(30)


class Driver:
    """Changes objects, and looks at what the replicas made of it."""

    def __init__(self, client: Client, objects: int) -> None:
        self._client = client
        self._names = [(f"ns-{n * 7919 % NAMESPACES:03d}x{n % NAMESPACES}", f"o{n}") for n in range(objects)]
        self.turn = 0

    async def create(self) -> None:
        for space in sorted({space for space, _ in self._names}):
            await self._client.create(Namespace(metadata=ObjectMeta(name=space)))
        await self._each(self._create)

    async def _create(self, space: str, name: str) -> None:
        metadata = ObjectMeta(name=name, namespace=space, labels={"bench": "yes"})
        await self._client.create(ConfigMap(metadata=metadata, data={"payload": "x" * 1000}))

    async def change_all(self) -> list[str]:
        """Change every object and wait for the stamps. What went wrong is returned."""
        self.turn += 1
        await self._each(self._change)
        prefix, deadline = f"{STAMP}{self.turn}-", time.monotonic() + LIMIT
        while True:
            listed = await self._client.list(ConfigMap, label_selector="bench")
            stamps = [[a for a in item.metadata.annotations if a.startswith(prefix)] for item in listed.items]
            missing = sum(not found for found in stamps)
            if not missing or time.monotonic() > deadline:
                break
            await asyncio.sleep(0.5)
        double = sum(len(found) > 1 for found in stamps)
        return [
            f"{n} objects {what} in turn {self.turn}"
            for n, what in ((missing, "left out"), (double, "stamped twice"))
            if n
        ]

    async def _change(self, space: str, name: str) -> None:
        await self._client.patch(ConfigMap, name, MergePatch({"data": {"turn": str(self.turn)}}), space)

    async def _each(self, act: Callable[[str, str], object]) -> None:
        left = iter(self._names)

        async def work() -> None:
            for space, name in left:
                await act(space, name)  # type: ignore[misc]

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def settled(self, members: int) -> float:
        """Wait until so many replicas share the work; returns when that was."""
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline:
            leases = await self._client.list(Lease, "default", field_selector=f"metadata.name={GROUP}-shards")
            for lease in leases.items:
                assignment = msgspec.json.decode(lease.metadata.annotations[ANNOTATION], type=Assignment)
                if assignment.settled and len(assignment.members) == members:
                    return time.monotonic()
            await asyncio.sleep(0.02)
        raise TimeoutError(f"{members} replicas did not share the work within {LIMIT:g} s")


def run(quick: bool, objects: int = 0) -> Report:
    return asyncio.run(_run(objects or (1000 if quick else OBJECTS)))


async def _run(objects: int) -> Report:
    report = Report(
        "sharding", f"sharding: {objects} ConfigMaps of 1 kB in {NAMESPACES} namespaces, processes on one machine"
    )
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "bench._sharded", "serve", str(kubeconfig)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:  # noqa: ASYNC220 - nothing else runs yet
            assert server.stdout is not None
            try:
                server.stdout.readline()
                os.environ["KUBECONFIG"] = str(kubeconfig)
                async with Client.connect() as client:
                    driver = Driver(client, objects)
                    await driver.create()
                    for by in ("key", "namespace"):
                        await _measure(report, driver, Replicas(kubeconfig, by), by)
            finally:
                server.send_signal(signal.SIGTERM)
    report.notes = ["CPU and memory are the mean over the replicas; a hand-over ends when the others have the keys"]
    return report


async def _measure(report: Report, driver: Driver, replicas: Replicas, by: str) -> None:
    def note(metric: str, value: float, unit: str) -> None:
        report.figures.append(Figure(f"by {by}: {metric}", OURS, value, unit))

    try:
        for count in (1, 2, 4):
            say(f"by {by}: {count} replicas")
            while len(replicas.running) < count:
                replicas.start()
            await driver.settled(count)
            before = replicas.cpu()
            report.failures += await driver.change_all()
            used = [after - earlier for after, earlier in zip(replicas.cpu(), before, strict=True)]
            note(f"{count} replicas, CPU of each per turn", sum(used) / count, "s")
            note(f"{count} replicas, memory of each", sum(replicas.memory()) / count, "MB")
        for number, what in ((signal.SIGTERM, "that ends"), (signal.SIGKILL, "that is killed (lease 15 s)")):
            began = time.monotonic()
            ended = replicas.end(number)
            note(f"hand-over of one {what}", await driver.settled(len(replicas.running)) - began, "s")
            await asyncio.to_thread(ended.wait, 30)
            report.failures += await driver.change_all()
    finally:
        replicas.stop()
