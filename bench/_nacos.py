"""The Nacos operator with servers that always answer the same; as a program, what `bench nacos` measures.

`python -m bench._nacos FOLDER COUNT SECONDS` runs the operator until all clusters are known to be healthy,
then measures itself for SECONDS, and prints the result as one line of JSON. The servers' answers have the size of real
ones and take as long as in a network; they come through the real HTTP client, without sockets.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from bench._usage import cpu, resident
from konverge.client import Client, load_config
from konverge.operators.nacos.operator import controllers
from konverge.operators.nacos.resource import AnyNacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps import Options
from konverge.runtime import Context, Manager, Reconciler, Result
from konverge.runtime import Request as Key
from konverge.sim.databases import SimulatedDatabases
from konverge.wire.message import Headers, Request, Response

SPACE = "default"
KUBECONFIG, SERVERS = "kubeconfig", "servers.json"
STEADY_AFTER = 60.0
"""Seconds after which nothing of the start is left."""
ANSWER = 0.02
"""Seconds that a server takes."""
_GROUPS = ("naming_persistent_service", "naming_persistent_service_v2", "naming_service_metadata", "nacos_config")
_JSON = Headers([(b"content-type", b"application/json")])


@dataclass(slots=True)
class Cost:
    """What the operator costs. CPU in seconds, memory in bytes."""

    start: float = 0.0
    ready: float = 0.0
    """Seconds that passed until every cluster was found healthy."""
    cpu: float = 0.0
    reconciles: int = 0
    questions: int = 0
    at_once: int = 0
    """Questions under way at a time, at most, in the steady state."""
    empty: int = 0
    """Resident before the operator began: the interpreter and its modules."""
    resident: int = 0


class Answers:
    """Servers that give the same answer for ever, by address."""

    def __init__(self) -> None:
        self.asked = 0
        self.under_way = 0
        self.at_once = 0
        self._bodies: dict[str, bytes] = {}

    def learn(self, servers: Mapping[str, str]) -> None:
        for server, members in servers.items():
            if server not in self._bodies:
                body = {"code": 200, "message": None, "data": [_member(address) for address in members.split()]}
                self._bodies[server] = msgspec.json.encode(body)

    def connect(self, address: str, port: int) -> _Answer:
        return _Answer(self, address)

    async def body(self, address: str) -> bytes | None:
        self.asked += 1
        self.under_way += 1
        self.at_once = max(self.at_once, self.under_way)
        await asyncio.sleep(ANSWER)
        self.under_way -= 1
        return self._bodies.get(address)


class _Answer:
    def __init__(self, answers: Answers, address: str) -> None:
        self._answers = answers
        self._address = address

    async def send(self, request: Request) -> Response:
        body = await self._answers.body(self._address)
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


class Reconciles:
    """Counts reconciles, and knows when every cluster has been found healthy."""

    def __init__(self, expected: int) -> None:
        self.count = 0
        self.all_healthy = asyncio.Event()
        self._expected = expected
        self._healthy: set[object] = set()

    def saw(self, request: Key, result: Result | None) -> None:
        self.count += 1
        healthy = result is not None and (result.requeue_after or 0.0) > Options().requeue
        if healthy and not self.all_healthy.is_set():
            self._healthy.add(request)
            if len(self._healthy) == self._expected:
                self.all_healthy.set()


class Counted(Reconciler[AnyNacos]):
    """The operator's reconciler, counted."""

    def __init__(self, inner: Reconciler[AnyNacos], reconciles: Reconciles) -> None:
        self._inner = inner
        self._reconciles = reconciles

    async def reconcile(self, ctx: Context[AnyNacos]) -> Result | None:
        result = await self._inner.reconcile(ctx)
        self._reconciles.saw(ctx.request, result)
        return result


def operator(client: Client, answers: Answers, reconciles: Reconciles) -> Manager:
    manager = Manager(client, name="nacos-operator", check_permissions=False)
    for controller in controllers(SimulatedDatabases(), HttpNacosServers(answers.connect)):
        assert isinstance(controller.reconciler, Reconciler)
        manager.add(replace(controller, reconciler=Counted(controller.reconciler, reconciles)))
    manager.webhooks = None  # the definition has the stored version alone
    return manager


def servers_of(pods: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The servers in these pods: their addresses, and the lists of members that they are given."""
    servers = {}
    for pod in pods:
        env = {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0]["env"]}
        if address := pod.get("status", {}).get("podIP"):
            servers[address] = env["NACOS_SERVERS"]
    return servers


async def measure(folder: Path, count: int, seconds: float) -> Cost:
    answers, reconciles, cost = Answers(), Reconciles(count), Cost()
    answers.learn(json.loads((folder / SERVERS).read_text()))
    async with Client.connect(load_config(kubeconfig=folder / KUBECONFIG)) as client:
        began, cost.empty, at = cpu(), resident(), time.monotonic()
        async with operator(client, answers, reconciles).running():
            await reconciles.all_healthy.wait()
            cost.start, cost.ready = cpu() - began, time.monotonic() - at
            await asyncio.sleep(STEADY_AFTER)
            answers.at_once = 0
            before = cpu(), reconciles.count, answers.asked
            await asyncio.sleep(seconds)
            cost.cpu = cpu() - before[0]
            cost.reconciles = reconciles.count - before[1]
            cost.questions = answers.asked - before[2]
            cost.at_once, cost.resident = answers.at_once, resident()
    return cost


if __name__ == "__main__":
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(measure(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
    print(json.dumps(asdict(result)))
