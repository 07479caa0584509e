"""Three replicas as processes on the real kube-apiserver: one is killed, one stopped and continued, one replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from konverge.client import Client, MergePatch, load_config
from konverge.objects.kinds.coordination_v1 import Lease
from konverge.objects.kinds.core_v1 import ConfigMap
from konverge.objects.meta import ObjectMeta
from konverge.runtime.sharding.assignment import ANNOTATION, Assignment
from tests.real.clients.waiting import LIMIT
from tests.real.sharded_operator import STAMP
from tools.control_plane import ControlPlane

pytestmark = pytest.mark.spec("R-78", "R-79")

OBJECTS = 40


class Replicas:
    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._plane = plane
        self.notes = folder / "notes"
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        command = [sys.executable, "-m", "tests.real.sharded_operator"]
        command += [str(self._plane.kubeconfig), name, str(self.notes)]
        self.processes[name] = subprocess.Popen(command, env={**os.environ, "KONVERGE_LOG_LEVEL": "error"})

    def send(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    async def reap(self, name: str) -> int:
        return await asyncio.to_thread(self.processes.pop(name).wait, LIMIT)


@contextmanager
def replicas_of(plane: ControlPlane, folder: Path) -> Iterator[Replicas]:
    replicas = Replicas(plane, folder)
    try:
        yield replicas
    finally:
        for process in replicas.processes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(LIMIT):
        while not await condition():
            await asyncio.sleep(0.05)


class Driver:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.turn = 0

    async def change_all(self) -> None:
        self.turn += 1
        patch = MergePatch({"data": {"turn": str(self.turn)}})
        await asyncio.gather(*(self.client.patch(ConfigMap, f"c{n}", patch, "default") for n in range(OBJECTS)))

    async def all_stamped(self) -> bool:
        listed = await self.client.list(ConfigMap, "default", label_selector="stamped")
        prefix = f"{STAMP}{self.turn}-"
        return all(any(a.startswith(prefix) for a in item.metadata.annotations) for item in listed.items)

    async def check_stamped_once(self) -> None:
        await eventually(self.all_stamped)
        await asyncio.sleep(0.5)
        for item in (await self.client.list(ConfigMap, "default", label_selector="stamped")).items:
            turns = [name.removeprefix(STAMP).partition("-")[0] for name in item.metadata.annotations]
            assert len(turns) == len(set(turns)), f"{item.metadata.name} was stamped twice: {item.metadata.annotations}"

    async def settled(self, members: int) -> None:
        async def shared() -> bool:
            for lease in (await self.client.list(Lease, "default", field_selector="metadata.name=stamps-shards")).items:
                assignment = msgspec.json.decode(lease.metadata.annotations[ANNOTATION], type=Assignment)
                return assignment.settled and len(assignment.members) == members
            return False

        await eventually(shared)


async def test_one_owner_through_a_kill_a_stop_and_a_replacement(real_server: ControlPlane, tmp_path: Path) -> None:
    async with Client.connect(load_config(kubeconfig=real_server.kubeconfig)) as client:
        driver = Driver(client)
        for number in range(OBJECTS):
            metadata = ObjectMeta(name=f"c{number}", namespace="default", labels={"stamped": "yes"})
            await client.create(ConfigMap(metadata=metadata))
        with replicas_of(real_server, tmp_path) as replicas:
            for name in ("a", "b", "c"):
                replicas.start(name)
            await driver.settled(3)
            await driver.change_all()
            await driver.check_stamped_once()
            # killed in the middle of its work
            await driver.change_all()
            replicas.send("a", signal.SIGKILL)
            await replicas.reap("a")
            await driver.settled(2)
            await driver.check_stamped_once()
            # stopped in the middle of its work, until the others have its keys; then it goes on
            await driver.change_all()
            replicas.send("b", signal.SIGSTOP)
            await driver.settled(1)
            await eventually(driver.all_stamped)
            replicas.send("b", signal.SIGCONT)
            await driver.settled(2)
            await driver.check_stamped_once()
            # replaced, as a rolling restart does it
            replicas.start("d")
            await driver.settled(3)
            await driver.change_all()
            replicas.send("c", signal.SIGTERM)
            assert await replicas.reap("c") == 0
            await driver.settled(2)
            await driver.change_all()
            await driver.check_stamped_once()
    check_no_two_at_once((tmp_path / "notes").read_text())


def check_no_two_at_once(text: str) -> None:
    """In one pass: no key is in work at two of the replicas that were running (a and b were killed and stopped)."""
    in_work: dict[str, str] = {}
    for line in sorted(text.splitlines(), key=lambda line: float(line.split()[0])):
        _, what, key, replica = line.split()
        if what == "begin":
            assert in_work.get(key, replica) in (replica, "a", "b"), line
            in_work[key] = replica
        elif in_work.get(key) == replica:
            del in_work[key]
