"""A scenario that a Nacos must survive: the user changes the spec, faults happen, the operator is killed.

At the end all faults are repaired, and everything must be as declared; or one fault stays, and the resource must be
Failed and name it. One seed gives one scenario; `konverge.sim.run` runs it on virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random
from typing import Any

from konverge import clock
from konverge.client import Client, MergePatch, Static
from konverge.objects.kinds.apps_v1 import StatefulSet
from konverge.objects.kinds.core_v1 import ConfigMap, Pod, Service
from konverge.operators.nacos.backup.kinds import NacosBackup
from konverge.operators.nacos.resource import ALLOW, Nacos
from konverge.operators.nacos.server import HttpNacosServers
from konverge.operators.nacos.steps.pods import is_ready as pod_is_ready
from konverge.sim import run
from konverge.sim.databases import SimulatedServer
from konverge.sim.faults import Faulty, Plan
from konverge.sim.kubelet.behaviour import Rule
from konverge.sim.nacos import QUICK, Fault, SimulatedNacos
from tests.operators.nacos.world import CLUSTER, POSTGRES, SPACE, World, a_world, condition, is_ready

TAGS = ("v2.4.3", "v2.5.0", "v3.0.3")
CONTROLLERS = (
    "disruption",
    "garbage-collector",
    "node-lifecycle",
    "pod-garbage-collector",
    "pv-protection",
    "pvc-protection",
    "serviceaccount",
    "statefulset",
    "taint-eviction",
)
"""The controllers that matter to a Nacos: without the others a scenario takes three quarters of the time."""
Action = Callable[[], Awaitable[None]]
NEEDED = 3600.0
"""Simulated seconds until everything must be repaired: several rollouts, with healing in between."""


def run_scenario(seed: int, *, day_2: bool = False) -> list[str]:
    """What happened; raises when the end was wrong. `day_2`: with sleep, gated upgrades and backups as well."""
    happened: list[str] = []
    try:
        run((Day2Scenario if day_2 else Scenario)(seed, happened).play(), seed=seed)
    except AssertionError as error:
        raise AssertionError(f"seed {seed} after {'; '.join(happened)}: {error}") from error
    return happened


class Scenario:
    """The scenario of one seed."""

    controllers: tuple[str, ...] = CONTROLLERS

    def __init__(self, seed: int, happened: list[str]) -> None:
        self.rng: Random = clock.seeded(seed)
        self.seed = seed
        self.happened = happened
        self.postgres = self.rng.random() < 0.4
        self.replicas = 3
        self.tag = self.rng.choice(TAGS[:2])
        self.password = "first"
        self.world: World
        self.nacos: SimulatedNacos
        self.server: SimulatedServer

    async def play(self) -> None:
        rules = [Rule(image="*:v3.0.9", behave="image-pull-error")]
        async with a_world(nodes=5, rules=rules, events=False, controllers=self.controllers) as self.world:
            nacos = SimulatedNacos(self.world.cluster, databases=self.world.databases, timings=QUICK, seed=self.seed)
            async with nacos as self.nacos:
                self.world.asked = HttpNacosServers(nacos.connect)
                self.server = await self.world.postgres()
                async with AsyncExitStack() as operator:
                    await self._start_operator(operator)
                    await self._live(operator)
                    await self._end_well()
                    if self.rng.random() < 0.25:
                        await self._end_badly()

    async def _start_operator(self, stack: AsyncExitStack) -> None:
        """A process of the operator, with faults of its own on the way to the API server."""
        server = self.world.cluster.server
        plan = Plan.of(self.rng.randrange(1 << 30), faults=6, exchanges=200)
        faulty = Faulty(server.transport, plan.faults)
        client = await stack.enter_async_context(Client(faulty, credentials=Static.bearer(server.token)))
        await stack.enter_async_context(self.world.operating(client=client))

    async def _live(self, operator: AsyncExitStack) -> None:
        await self.world.create("nacos", {**self._base(), "image": f"nacos/nacos-server:{self.tag}"})
        self.happened.append(f"created on {'postgres' if self.postgres else 'embedded storage'}, {self.tag}")
        for _ in range(self.rng.randrange(3, 9)):
            await self.world.advance(self.rng.choice((0.5, 3.0, 10.0, 40.0, 120.0)))
            if self.rng.random() < 0.15:
                self.happened.append("operator restarted")
                await operator.aclose()
                await self._start_operator(operator)
                continue
            await self._something()

    def _base(self) -> dict[str, Any]:
        return POSTGRES if self.postgres else CLUSTER

    async def _something(self) -> None:
        await self.rng.choice(self._actions())()

    def _actions(self) -> list[Action]:
        actions: list[Action] = [self._scale, self._upgrade, self._configure]
        actions += [self._delete_a_child, self._break_a_server, self._cut]
        if self.postgres:
            actions += [self._break_the_database, self._rotate]
        return actions

    # -------------------------------------------------------------- actions of the user

    async def _scale(self) -> None:
        self.replicas = self.rng.choice((3, 4, 5))
        self.happened.append(f"scaled to {self.replicas}")
        await self.world.change("nacos", replicas=self.replicas)

    async def _upgrade(self) -> None:
        self.tag = self.rng.choice(TAGS)
        self.happened.append(f"image {self.tag}")
        patch = {"metadata": {"annotations": {ALLOW: f"version={self.tag[1:]}"}}}  # it may be a downgrade
        await self.world.client.patch(Nacos, "nacos", MergePatch(patch), SPACE)
        await self.world.change("nacos", image=f"nacos/nacos-server:{self.tag}")

    async def _configure(self) -> None:
        number = self.rng.randrange(100)
        self.happened.append(f"config {number}")
        await self.world.change("nacos", config=f"number={number}\n")

    async def _rotate(self) -> None:
        self.password = f"word-{self.rng.randrange(1000)}"
        self.happened.append("rotated")
        await self.world.replace_secret("admin", username="nacos", password=self.password)

    # -------------------------------------------------------------- faults

    async def _delete_a_child(self) -> None:
        kind: Any = self.rng.choice((StatefulSet, Service, ConfigMap, Pod))
        children = await self.world.client.list(kind, SPACE, label_selector="app=nacos")
        if children.items:
            name = self.rng.choice(sorted(child.metadata.name for child in children))
            self.happened.append(f"{kind.__name__} {name} deleted")
            await self.world.client.delete(kind, name, SPACE, propagation="Background")

    async def _break_a_server(self) -> None:
        pods = await self.world.uids()
        if not pods:
            return
        pod = self.rng.choice(sorted(pods))
        fault = self.rng.choice(("kill", "freeze", "spoil"))
        self.happened.append(f"{fault} {pod}")
        try:
            if fault == "kill":
                self.nacos.kill(pod)
            elif fault == "freeze":
                self.nacos.freeze(pod)
            else:
                self.nacos.spoil(pod, self.rng.choice(list(Fault)))
        except LookupError:
            self.happened.append("which did not run")

    async def _cut(self) -> None:
        names = [f"nacos-{number}" for number in range(3)]
        chosen = self.rng.choice(names)
        self.happened.append(f"{chosen} cut off")
        try:
            self.nacos.split([chosen], [name for name in names if name != chosen])
        except LookupError:
            self.happened.append("which did not run")

    async def _break_the_database(self) -> None:
        self.happened.append("database broken")
        match self.rng.choice(("down", "standby", "slow", "full")):
            case "down":
                self.server.down = True
            case "standby":
                self.server.read_only = "standby"
            case "slow":
                self.server.freeze()
            case "full":
                self.server.full = True

    # -------------------------------------------------------------- the end

    async def _repair(self) -> None:
        self.nacos.mend()
        self.nacos.heal()
        for pod in await self.world.uids():
            try:
                self.nacos.thaw(pod)
            except LookupError:
                continue
        self.server.down = self.server.full = False
        self.server.read_only = ""
        self.server.thaw()

    async def _end_well(self) -> None:
        await self.world.advance(self.rng.choice((1.0, 60.0, 300.0)))
        await self._repair()
        waited = 0.0
        while not await self._as_declared():
            assert waited < NEEDED, f"not as declared: {await self._state()}"
            await self.world.advance(5.0)
            waited += 5.0
        await self.world.advance(120.0)
        revision = self.world.cluster.server.store.tables["nacos.io/nacos"].revision
        await self.world.advance(300.0)
        assert self.world.cluster.server.store.tables["nacos.io/nacos"].revision == revision, "writes without a cause"
        assert await self._as_declared(), f"no longer as declared: {await self._state()}"

    async def _as_declared(self) -> bool:
        nacos = await self.world.nacos("nacos")
        if nacos.status.phase != "Running" or not is_ready(nacos):
            return False
        pods = await self.world.pods()
        images = {pod.spec.containers[0].image for pod in pods}
        return (
            len(pods) == self.replicas == len(nacos.status.servers)
            and images == {f"nacos/nacos-server:{self.tag}"}
            and nacos.status.version == self.tag[1:]
            and nacos.status.leader == self.nacos.leader()
            and self._raft_group() == {f"nacos-{number}" for number in range(self.replicas)}
            and (not self.postgres or self.server.databases["nacos"].accepts("nacos", self.password))
        )

    def _raft_group(self) -> set[str]:
        """The pods that the leader counts: also one that left, until it is removed, and none that was not admitted."""
        leader = self.nacos.leader()
        return {address.partition(".")[0] for address in self.nacos.member(leader).peers} if leader else set()

    async def _state(self) -> str:
        nacos = await self.world.nacos("nacos")
        pods = await self.world.pods()
        shown = {pod.metadata.name: f"{pod.status.phase}, {'' if pod_is_ready(pod) else 'not '}ready" for pod in pods}
        last = nacos.status.event[-1].message if nacos.status.event else ""
        group = sorted(self._raft_group())
        return f"{nacos.status.phase}, desired {self.replicas} of {self.tag}, {shown}, raft group {group}, {last}"

    async def _end_badly(self) -> None:
        """One fault stays, and the resource names it."""
        if self.postgres:
            self.server.down, expected = True, "refused"
        else:
            await self.world.change("nacos", image="nacos/nacos-server:v3.0.9")
            expected = "ImagePull"
        self.happened.append(f"broken for good: {expected}")
        nacos = await self.world.until("nacos", "Failed", limit=900.0)
        assert expected in nacos.status.event[-1].message, await self._state()
        assert condition(nacos, "Ready")[0] == "False"
        assert asyncio.get_running_loop().time() > 0


class Day2Scenario(Scenario):
    """The same with what operations people do: put a Nacos to sleep, hold upgrades back, ask for backups and make them.

    Embedded data is in volumes, or a Nacos would not be put to sleep.
    """

    controllers = (*CONTROLLERS, "job")

    def __init__(self, seed: int, happened: list[str]) -> None:
        super().__init__(seed, happened)
        self.asleep = False
        self.backups = 0

    def _base(self) -> dict[str, Any]:
        return {**super()._base(), "volume": {"enabled": True, "requests": {"storage": "1Gi"}}}

    def _actions(self) -> list[Action]:
        actions = [*super()._actions(), self._sleep_or_wake, self._sleep_or_wake, self._hold_upgrades]
        return [*actions, self._back_up, self._back_up] if self.postgres else actions

    async def _sleep_or_wake(self) -> None:
        self.asleep = not self.asleep
        self.happened.append("put to sleep" if self.asleep else "woken")
        await self.world.change("nacos", hibernate=self.asleep)

    async def _hold_upgrades(self) -> None:
        paused = self.rng.random() < 0.5
        within = "1h" if self.postgres and self.rng.random() < 0.5 else ""
        self.happened.append(f"upgrades: paused {paused}, backup within {within or 'any time'}")
        await self.world.change("nacos", upgrade={"paused": paused, "requireBackupWithin": within})

    async def _back_up(self) -> None:
        if not self.backups:
            claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
            await self._made("v1", "PersistentVolumeClaim", "backups", claim)
        self.backups += 1
        self.happened.append(f"backup {self.backups}")
        spec = {"nacosRef": {"name": "nacos"}, "storage": {"volume": {"claimName": "backups"}}}
        await self._made("nacos.io/v1alpha1", "NacosBackup", f"backup-{self.backups}", spec)

    async def _made(self, version: str, kind: str, name: str, spec: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": SPACE}
        body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
        await self.world.client.create(body, resource=NacosBackup.resource if kind == "NacosBackup" else None)

    async def _repair(self) -> None:
        await super()._repair()
        self.asleep = False
        await self.world.change("nacos", hibernate=False, upgrade={"paused": False, "requireBackupWithin": ""})

    async def _end_well(self) -> None:
        """And every backup came to an end, also those that were asked for while nothing could be stored."""
        await super()._end_well()
        if self.postgres:
            await self._back_up()
            await self.world.advance(300.0)
            phases = [item.status.phase for item in await self.world.client.list(NacosBackup, SPACE)]
            last = await self.world.client.get(NacosBackup, f"backup-{self.backups}", SPACE)
            assert last.status.phase == "Completed", last.status
            assert {"Completed", "Failed"}.issuperset(phases), phases
